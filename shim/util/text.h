/*
 * text.h - formats text into a buffer of the caller's.
 *
 * The printf family allocates, takes locale locks and is not safe in signal handlers or in
 * processes that are still starting. This module has the few formats that reports need. A text that
 * does not fit is cut, which sets `cut`, and nothing is added after that. A text is always
 * NUL-terminated. A NULL string adds nothing. No allocation, no state; async-signal-safe.
 */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gps_text {
    char *bytes;
    size_t size;   /* of the buffer, with room for the NUL */
    size_t length; /* without the NUL */
    bool cut;
};

struct gps_unit {
    const char *name;
    uint64_t factor;
};
/* From h to ns, in nanoseconds; the last row has no name. The first name of a factor is written. */
extern const struct gps_unit gps_time_units[];

/* Whether names of regions and namespaces may have this character. */
static inline bool gps_is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

/* By ASCII, in no locale. */
static inline char gps_lower(char c) {
    return (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
}

/* Starts an empty text on a buffer of at least one byte. */
struct gps_text gps_text_on(char *buffer, size_t size);
#define GPS_TEXT(buffer) gps_text_on((buffer), sizeof(buffer))
/* Declares a text with a buffer of its own, until the end of the block. */
#define GPS_NEW_TEXT(text, size)                                                                   \
    char text##_buffer[size];                                                                      \
    struct gps_text text = GPS_TEXT(text##_buffer)

void gps_text_str(struct gps_text *text, const char *string);
void gps_text_list(struct gps_text *text, const char *const *strings, size_t count);
/* Adds several strings. */
#define gps_text_strs(text, ...)                                                                   \
    gps_text_list((text), (const char *const[]){__VA_ARGS__},                                      \
                  sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
/* Adds as printf, for %s, %u, %lu, %x and %lx; a number may have leading zeros, as %02u. */
void gps_text_add(struct gps_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void gps_text_addv(struct gps_text *text, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));
void gps_text_bytes(struct gps_text *text, const char *bytes, size_t count);
void gps_text_dec(struct gps_text *text, uint64_t value);
void gps_text_size(struct gps_text *text, uint64_t bytes);       /* "64 MiB", "1.5 GiB", "1000 B" */
void gps_text_duration(struct gps_text *text, uint64_t nanos);   /* "30 s", "1.2 ms", "5 min" */
void gps_text_time(struct gps_text *text, uint64_t realtime_ns); /* 2026-11-21T02:34:05.123456Z */
/* The length of the UTF-8 character at `string`, and its number. 0: it is none that a terminal may
 * get, but a control character (C1, too), one that ends a line or turns the direction of writing,
 * or no valid UTF-8. */
size_t gps_text_character(const char *string, uint32_t *code);
/* Adds a foreign string for a terminal: what may not get there becomes '?'. Cuts no character. */
void gps_text_plain(struct gps_text *text, const char *string);
/* Adds a JSON string with its quotes; invalid UTF-8 becomes U+FFFD. NULL becomes null. */
void gps_text_json(struct gps_text *text, const char *string);

/* The meaning of an errno, in glibc's words; its strerror locks and may allocate. Never NULL. */
const char *gps_error_text(int error);
