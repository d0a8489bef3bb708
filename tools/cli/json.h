/*
 * json.h - writes JSON to stdout as it goes, indented, commas where they belong.
 *
 * `key` is NULL for an element of an array. Strings of any bytes come out as valid JSON; numbers of
 * 64 bits are written whole.
 */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>

struct json {
    int depth;
    bool filled; /* something stands in the innermost array or object */
};

void json_open(struct json *json, const char *key, char bracket);      /* '{' or '[' */
void json_close(struct json *json, char bracket);                      /* '}' or ']' */
void json_text(struct json *json, const char *key, const char *value); /* NULL: null */
void json_number(struct json *json, const char *key, uint64_t value);
void json_bool(struct json *json, const char *key, bool value);
/* Nanoseconds as seconds with a fraction. */
void json_seconds(struct json *json, const char *key, uint64_t nanos);

#endif
