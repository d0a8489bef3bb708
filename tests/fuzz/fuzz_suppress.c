/*
 * fuzz_suppress.c - any bytes as suppressions: libFuzzer's entry.
 *
 * What parses has sections that say something; what does not parse says why, and leaves none.
 */
#include "fuzz.h"

#include "cli/tool.h"
#include "report/suppress.h"

/* tool.c names it for the top's --help, which nobody asks for here. */
const struct tool_verb tool_verb_help = {.name = "help"};

static void on_error(void *arg, const char *file, unsigned line, const char *message) {
    unsigned *errors = arg;
    need(strcmp(file, "fuzz") == 0 && line <= 1u << 20 && message[0] != '\0');
    need(strchr(message, '\n') == NULL);
    (*errors)++;
}

static void use(const struct suppression *section) {
    bool any = false;
    need(section->line > 0 && strncmp(section->title, "suppress", 8) == 0);
    for (size_t i = 0; i < SUPPRESS_KEY_COUNT; i++) {
        any = any || section->keys[i] != NULL;
        if (section->keys[i] != NULL)
            (void)gps_glob_match(section->keys[i], "some_function(char*)");
    }
    need(any);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct suppressions suppressions = {.file = NULL};
    unsigned errors = 0;
    char *text = memcpy(malloc(size + 1), data, size);
    int status = suppress_parse(&suppressions, "fuzz", text, size, on_error, &errors);
    need((status == 0) == (errors == 0));
    need(status == 0 || suppressions.count == 0);
    for (size_t i = 0; i < suppressions.count; i++)
        use(&suppressions.sections[i]);
    suppress_free(&suppressions);
    free(text);
    return 0;
}
