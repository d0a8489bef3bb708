#include "assertion.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "text.h"

void gps_assertion_failed(const char *what, const char *was, const char *becomes) {
    const char *path = secure_getenv("GPUSHARE_ASSERTIONS");
    char line[256];
    struct gps_text text = GPS_TEXT(line);
    if (!path)
        return;
    gps_text_strs(&text, "gpushare: assertion failed: ", what, ": ", was, " -> ", becomes, "\n");
    const int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    const bool told =
        write(file, line, text.length) > 0 && write(STDERR_FILENO, line, text.length) > 0;
    (void)told;
    abort();
}
