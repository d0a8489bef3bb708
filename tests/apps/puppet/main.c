/*
 * main.c - takes commands and answers them.
 */
#include "puppet.h"

/* --- what it holds, by name --- */

enum { THINGS = 4096 };

static struct thing {
    char name[32];
    u64 value;
} things[THINGS];

static struct thing *thing(const char *name) {
    size_t i = 0;
    while (i < THINGS - 1 && *things[i].name && strcmp(things[i].name, name) != 0)
        i++;
    snprintf(things[i].name, sizeof(things[i].name), "%s", name);
    return &things[i];
}

u64 value(const char *name) {
    return thing(name)->value;
}

void keep(const char *name, u64 what) {
    thing(name)->value = what;
}

/* --- words --- */

u64 number(const char *word) {
    return word ? strtoull(word, NULL, 0) : 0;
}

u64 hex(const char *word) {
    return word ? strtoull(word, NULL, 16) : 0;
}

size_t from_hex(const char *word, unsigned char *bytes, size_t max) {
    size_t count = 0;
    for (; word && word[0] && word[1] && count < max; word += 2, count++) {
        const char pair[3] = {word[0], word[1], '\0'};
        bytes[count] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return count;
}

u64 argument(char *word) {
    char *const offset = strchr(word, '+');
    if (*word >= '0' && *word <= '9')
        return number(word);
    if (offset)
        *offset = '\0';
    return value(word) + number(offset ? offset + 1 : NULL);
}

CUstream stream_of(const char *name) {
    return strcmp(name, "-") == 0 ? NULL : (CUstream)(uintptr_t)value(name);
}

char *join(char **w) {
    static char line[LINE];
    *line = '\0';
    for (; *w; w++) {
        strncat(line, *line ? " " : "", sizeof(line) - strlen(line) - 1);
        strncat(line, *w, sizeof(line) - strlen(line) - 1);
    }
    return line;
}

/* --- replies --- */

_Thread_local char reply[LINE];
_Thread_local size_t reply_length;

void say(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int length =
        vsnprintf(reply + reply_length, sizeof(reply) - reply_length, format, arguments);
    va_end(arguments);
    if (length > 0)
        reply_length += (size_t)length;
    if (reply_length >= sizeof(reply))
        reply_length = sizeof(reply) - 1;
}

void say_hex(const unsigned char *bytes, size_t count) {
    say(" ");
    for (size_t i = 0; i < count; i++)
        say("%02x", bytes[i]);
}

void put(const char *text, size_t count) {
    while (count) {
        const ssize_t done = write(1, text, count);
        if (done < 0 && errno != EINTR)
            _exit(111);
        if (done > 0) {
            text += done;
            count -= (size_t)done;
        }
    }
}

int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void nap(u64 ms) {
    const struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

int pointer_reply(const char *name, int code, u64 pointer) {
    if (!code)
        keep(name, pointer);
    say(" %llx", pointer);
    return code;
}

int handle_reply(int code, const unsigned char handle[64]) {
    if (!code)
        say_hex(handle, 64);
    return code;
}

/* --- commands --- */

static int c_help(char **w);
static const struct command main_commands[] = {{"help", "", c_help}, {0}};
static const struct command *const tables[] = {
    main_commands,  context_commands, memory_commands,  address_commands, copy_commands,
    event_commands, stream_commands,  graph_commands,   newer_commands,   vmm_commands,
    churn_commands, many_commands,    process_commands, want_commands,    around_commands};
enum { TABLES = sizeof(tables) / sizeof(*tables) };

static int c_help(char **w) {
    const char *between = "";
    for (size_t i = 0; i < TABLES; i++)
        for (const struct command *one = tables[i]; one->name; one++, between = ",")
            say("%s %s %s", between, one->name, one->arguments);
    return 0;
}

static const struct command *find(const char *name) {
    for (size_t i = 0; name && i < TABLES; i++)
        for (const struct command *one = tables[i]; one->name; one++)
            if (strcmp(one->name, name) == 0)
                return one;
    return NULL;
}

int obey(char *line) {
    char *words[WORDS + 1] = {NULL};
    size_t count = 0;
    for (char *word; (word = strsep(&line, " \n")) != NULL;)
        if (*word && count < WORDS)
            words[count++] = word;
    const struct command *command = find(words[0]);
    enum { CODE = 12 }; /* room for the code, which comes first and is known last */
    char code_text[CODE];
    reply_length = 0;
    const int code = command ? command->fn(words) : BAD;
    if (code == SAID)
        return 0;
    const size_t length = (size_t)snprintf(code_text, sizeof(code_text), "%d", code);
    if (reply_length + length >= sizeof(reply))
        reply_length = sizeof(reply) - length - 1;
    memmove(reply + length, reply, reply_length);
    memcpy(reply, code_text, length);
    reply_length += length;
    reply[reply_length] = '\0';
    return code;
}

static bool get_line(char *line, size_t size) {
    size_t used = 0;
    while (used < size - 1) {
        const ssize_t count = read(0, line + used, 1);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        if (line[used] == '\n')
            break;
        used++;
    }
    line[used] = '\0';
    return true;
}

void obey_all(void) {
    static char line[LINE];
    while (get_line(line, sizeof(line)) && obey(line) != QUIT) {
        reply[reply_length++] = '\n';
        put(reply, reply_length);
    }
}

int main(void) {
    obey_all();
    return 0;
}
