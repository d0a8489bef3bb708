/*
 * A row for each interpreter says which of its options take an argument, so that the argument is
 * not taken for the script.
 */
#include "program.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/procfs.h"
#include "util/text.h"

#define WORDS_BYTES 4096
#define RANK_BYTES  sizeof(((struct gps_program *)0)->rank)

static const struct interpreter {
    const char *executable; /* a glob */
    const char *takes;  /* letters of options whose argument is the rest of the word or the next */
    const char *ends;   /* letters of options whose argument, if any, is the rest of the word */
    const char *code;   /* letters of options that bring the program itself: there is no script */
    char module;        /* letter of the option that names a module; 0: none */
    const char *longer; /* long options that take the next word, each with a blank behind it */
} interpreters[] = {
    {"python*", "WX", "", "c", 'm', "--check-hash-based-pycs "},
    {"pypy*", "WX", "", "c", 'm', ""},
    {"perl*", "I", "0CDFMVdilmx", "eE", 0, ""},
    {"ruby*", "CEIr", "0FKTWix", "e", 0, ""},
    {"bash", "Oo", "", "cs", 0, "--rcfile --init-file "},
    {"*sh", "o", "", "cs", 0, ""}, /* sh, dash, ksh, zsh */
};

static const struct interpreter loader = {
    "ld*.so*",
    "",
    "",
    "",
    0,
    "--library-path --preload --argv0 --audit --inhibit-rpath --glibc-hwcaps-prepend "
    "--glibc-hwcaps-mask "};

/* The words of a command line, of which the last may be cut. */
struct words {
    const char *at, *end;
};

static const char *next_word(struct words *words) {
    const char *word = words->at;
    if (word >= words->end)
        return NULL;
    words->at += strlen(word) + 1;
    return word;
}

/* Skips an option. *named: the module that it names. False: there is no script. */
static bool skip_option(const struct interpreter *of, const char *word, struct words *words,
                        const char **named) {
    if (word[1] == '-') {
        const char *at = strstr(of->longer, word);
        if (at && at[strlen(word)] == ' ')
            next_word(words);
        return true;
    }
    for (const char *letter = word + 1; *letter; letter++) {
        const bool module = of->module && *letter == of->module;
        if (strchr(of->code, *letter))
            return false;
        if (strchr(of->ends, *letter))
            return true;
        if (!module && !strchr(of->takes, *letter))
            continue;
        const char *argument = letter[1] ? letter + 1 : next_word(words);
        *named = module ? argument : NULL;
        return argument;
    }
    return true;
}

static const char *script_of(const struct interpreter *of, struct words *words) {
    const char *word, *named = NULL;
    while ((word = next_word(words))) {
        if (strcmp(word, "--") == 0)
            return next_word(words);
        if (word[0] != '-' || !word[1])
            return word[0] == '-' ? NULL : word; /* "-": from standard input */
        if (!skip_option(of, word, words, &named))
            return NULL;
        if (named)
            return named;
    }
    return NULL;
}

static const char *java_class_of(struct words *words) {
    static const char with_argument[] =
        "-cp -classpath --class-path -p --module-path --add-modules ";
    const char *word;
    while ((word = next_word(words)) && word[0] == '-') {
        const char *at = strstr(with_argument, word);
        if (strcmp(word, "-jar") == 0 || strcmp(word, "-m") == 0 || strcmp(word, "--module") == 0)
            return next_word(words);
        if (at && at[strlen(word)] == ' ')
            next_word(words);
    }
    return word;
}

/* The script or module that an interpreter runs, and `words` behind it; NULL: the executable is no
 * interpreter, or the script has no name. */
static const char *run_by(const char *executable, struct words *words) {
    if (strcmp(executable, "java") == 0)
        return java_class_of(words);
    for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++)
        if (gps_glob_match(interpreters[i].executable, executable))
            return script_of(&interpreters[i], words);
    return NULL;
}

static void words_join(struct words words, char arguments[GPS_ARGUMENT_BYTES]) {
    static const char more[] = "...";
    struct gps_text text = gps_text_on(arguments, GPS_ARGUMENT_BYTES - (sizeof(more) - 1));
    const char *word, *blank = "";
    while ((word = next_word(&words)) && !text.cut) {
        gps_text_str(&text, blank);
        gps_text_plain(&text, word);
        blank = " ";
    }
    if (text.cut)
        memcpy(arguments + text.length, more, sizeof(more));
}

/* The file name of a path; NULL for none. */
static const char *base_of(const char *path) {
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *base = slash ? slash + 1 : path;
    return base && *base ? base : NULL;
}

/* Skips the loader, where a program was started through it: the executable is that program. */
static void skip_loader(struct gps_program *program, struct words *words) {
    struct words left = *words;
    const bool is_loader = gps_glob_match(loader.executable, program->executable);
    const char *run = is_loader ? base_of(script_of(&loader, &left)) : NULL;
    if (!run)
        return;
    struct gps_text executable = GPS_TEXT(program->executable);
    gps_text_str(&executable, run);
    *words = left;
}

void gps_program_read(struct gps_program *program, const char *words, size_t count,
                      const char *given) {
    struct words left = {words, words + count};
    next_word(&left); /* the name that it was started by */
    skip_loader(program, &left);
    const struct words all = left;
    const char *run = base_of(run_by(program->executable, &left));
    const char *named = base_of(given);
    struct gps_text name = GPS_TEXT(program->name);
    gps_text_str(&name, named ? named : run ? run : program->executable);
    words_join(run ? left : all, program->arguments);
}

/* Reads the rank from variables of Open MPI, other PMIx and PMI launchers, Slurm and torchrun. */
static void read_rank(char rank[RANK_BYTES]) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                        "SLURM_PROCID", "RANK"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = secure_getenv(names[i]);
        const size_t length = value ? strspn(value, "0123456789") : 0;
        if (length == 0 || length >= RANK_BYTES || value[length])
            continue;
        while (value[0] == '0' && value[1])
            value++;
        strcpy(rank, value);
        return;
    }
}

bool gps_program_of(uint32_t pid, struct gps_program *program) {
    char words[WORDS_BYTES], path[GPS_PROCFS_PATH];
    struct gps_text exe = GPS_TEXT(path), name = GPS_TEXT(program->executable);
    gps_text_add(&exe, "/proc/%u/exe", pid);
    const ssize_t length = readlink(path, words, sizeof(words) - 1);
    if (length <= 0)
        return false;
    words[length] = '\0';
    gps_text_str(&name, base_of(words) ? base_of(words) : "?");
    exe = GPS_TEXT(path);
    gps_text_add(&exe, "/proc/%u/cmdline", pid);
    const ssize_t count = gps_procfs_read(path, words, sizeof(words));
    program->rank[0] = '\0';
    gps_program_read(program, words, count > 0 ? (size_t)count : 0, NULL);
    return true;
}

void gps_program_self(struct gps_program *program) {
    char words[WORDS_BYTES];
    char path[GPS_PROCFS_PATH];
    gps_procfs_path("cmdline", path);
    const ssize_t count = gps_procfs_read(path, words, sizeof(words));
    gps_procfs_executable(program->executable, sizeof(program->executable));
    program->rank[0] = '\0';
    read_rank(program->rank);
    gps_program_read(program, words, count > 0 ? (size_t)count : 0,
                     secure_getenv("GPUSHARE_PROGRAM"));
}
