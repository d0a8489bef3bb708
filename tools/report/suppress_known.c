/*
 * suppress_known.c - the suppressions that are part of the tool: config/suppressions.conf.
 */
#include "cli/tool.h"
#include "suppress.h"

__asm__(".pushsection .rodata\n"
        "suppress_known_text: .incbin \"config/suppressions.conf\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char suppress_known_text[];

void suppress_add_known(struct suppressions *suppressions) {
    TOOL_TEMP char *text = tool_copy(suppress_known_text);
    (void)suppress_parse(suppressions, "config/suppressions.conf", text, strlen(text),
                         tool_error_in, NULL);
    for (size_t i = 0; i < suppressions->count; i++)
        suppressions->sections[i].known = suppress_name(&suppressions->sections[i]);
}
