/*
 * json.c - writes JSON to stdout as it goes.
 */
#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"
#include "util/text.h"

static void new_line(const struct json *json) {
    printf("\n%*s", 2 * json->depth, "");
}

static void start(struct json *json, const char *key) {
    if (json->filled)
        putchar(',');
    if (json->depth > 0)
        new_line(json);
    if (key)
        printf("\"%s\": ", key);
    json->filled = true;
}

void json_open(struct json *json, const char *key, char bracket) {
    start(json, key);
    putchar(bracket);
    json->depth++;
    json->filled = false;
}

void json_close(struct json *json, char bracket) {
    json->depth--;
    if (json->filled)
        new_line(json);
    putchar(bracket);
    json->filled = true;
    if (json->depth == 0)
        putchar('\n');
}

void json_text(struct json *json, const char *key, const char *value) {
    size_t size = !value ? 8 : 6 * strlen(value) + 3; /* \u00xx each, quotes, NUL */
    char *buffer = tool_resize(NULL, size, 1);
    struct gps_text text = gps_text_on(buffer, size);
    gps_text_json(&text, value);
    start(json, key);
    fputs(buffer, stdout);
    free(buffer);
}

void json_number(struct json *json, const char *key, uint64_t value) {
    start(json, key);
    printf("%" PRIu64, value);
}

void json_bool(struct json *json, const char *key, bool value) {
    start(json, key);
    fputs(value ? "true" : "false", stdout);
}

void json_seconds(struct json *json, const char *key, uint64_t nanos) {
    start(json, key);
    printf("%" PRIu64 ".%03" PRIu64, nanos / 1000000000, nanos / 1000000 % 1000);
}
