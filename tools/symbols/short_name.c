#include "symbol.h"

#include <ctype.h>

#include "cli/tool.h"

#define ELLIPSIS "..."
#define NESTED   64

/* The length of brackets at `at` that are part of a name, as in operator(); 0: there are none. */
static size_t length_of_name(const char *name, const char *at) {
    static const char *const operators[] = {"()", "<=>", "<<=", "<<", "<=",  "<",
                                            ">=", ">>=", ">>",  ">",  "->*", "->"};
    static const char word[] = "operator", anonymous[] = "(anonymous namespace)";
    const size_t length = sizeof(word) - 1, before = (size_t)(at - name);
    if (strncmp(at, anonymous, sizeof(anonymous) - 1) == 0)
        return sizeof(anonymous) - 1;
    if (before < length || strncmp(at - length, word, length) != 0 ||
        (before > length &&
         (isalnum((unsigned char)at[-1 - (int)length]) || at[-1 - (int)length] == '_')))
        return 0;
    for (size_t i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
        if (strncmp(at, operators[i], strlen(operators[i])) == 0)
            return strlen(operators[i]);
    return 0;
}

/* Finds the bracket that closes the one at `open`, or the end of the name. A '>' in parentheses is
 * a comparison, and one behind a '-' is part of an arrow. */
static const char *closing(const char *open) {
    char stack[NESTED];
    size_t depth = 0;
    for (const char *at = open; *at != 0; at++) {
        if ((*at == '(' || *at == '<') && depth < NESTED)
            stack[depth++] = *at;
        else if (*at == '>' && stack[depth - 1] == '<' && at[-1] != '-')
            depth--;
        while (*at == ')' && depth > 0 && stack[--depth] != '(')
            continue;
        if (depth == 0)
            return at;
    }
    return open + strlen(open);
}

/* Replaces the text in brackets of these kinds by "..." where that is shorter. */
static void short_name_drop(char *name, const char *kinds) {
    const char *from = name;
    char *to = name;
    while (*from != 0) {
        size_t whole = length_of_name(name, from);
        const char *end = whole == 0 && strchr(kinds, *from) ? closing(from) : from;
        if (end > from + sizeof(ELLIPSIS)) {
            *to++ = *from;
            memcpy(to, ELLIPSIS, sizeof(ELLIPSIS) - 1);
            to += sizeof(ELLIPSIS) - 1;
            from = end;
            continue;
        }
        for (whole = whole > 0 ? whole : 1; whole > 0; whole--)
            *to++ = *from++;
    }
    *to = 0;
}

char *short_name_function(const char *name) {
    char *shortened = tool_copy(name);
    if (strlen(shortened) > SHORT_NAME_MAX)
        short_name_drop(shortened, "(");
    if (strlen(shortened) > SHORT_NAME_MAX)
        short_name_drop(shortened, "<");
    if (strlen(shortened) > SHORT_NAME_MAX)
        memcpy(shortened + SHORT_NAME_MAX - strlen(ELLIPSIS), ELLIPSIS, sizeof(ELLIPSIS));
    return shortened;
}
