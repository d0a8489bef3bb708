/* details.c - see details.h. */
#include "details.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/tool.h"

/* A process of its own: it reads the directory anew, and its messages belong to what is shown. The
 * target has digits, letters and @ only. */
char *details_text(const char *target) {
    TOOL_TEMP char *line = tool_format("exec /proc/%d/exe show %s 2>&1", getpid(), target);
    FILE *said = popen(line, "re");
    size_t size;
    char *text = said ? tool_read(fileno(said), &size) : tool_copy("gpushare show cannot be run");
    if (said)
        pclose(said);
    return text;
}
