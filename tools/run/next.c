#include "next.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A word of a command line, as a shell is to be given it. */
static void put_word(const char *word) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+-./:=@_,";
    if (*word && word[strspn(word, plain)] == 0) {
        fprintf(stderr, " %s", word);
        return;
    }
    fputs(" '", stderr);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[2]){*word, 0}, stderr);
    putc('\'', stderr);
}

void next_tell(const char *before, char **command, const char *path) {
    const bool file = path && strcmp(path, "-") != 0;
    fprintf(stderr, "%s%s: gpushare run -c", before, file ? "" : ", with the rules in a file");
    put_word(file ? path : "FILE");
    fputs(" --", stderr);
    for (; *command; command++)
        put_word(*command);
    putc('\n', stderr);
}
