/*
 * text.h - formats onto a buffer of the caller's.
 *
 * The printf family allocates, takes locale locks and is not safe inside signal handlers or
 * half-initialised processes; this is the little of it that reports need. A text never overflows:
 * what does not fit is cut, and `cut` says so; after a cut nothing more is added. Always
 * NUL-terminated. A NULL string adds nothing. No allocation, no state.
 */
#ifndef GPS_TEXT_H
#define GPS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gps_text {
    char *bytes;
    size_t size;   /* of the buffer, with room for the NUL */
    size_t length; /* without the NUL */
    bool cut;
};

/* Starts an empty text on a buffer of at least one byte. */
struct gps_text gps_text_on(char *buffer, size_t size);
#define GPS_TEXT(buffer) gps_text_on((buffer), sizeof(buffer))

void gps_text_str(struct gps_text *text, const char *string);
void gps_text_bytes(struct gps_text *text, const char *bytes, size_t count);
void gps_text_dec(struct gps_text *text, uint64_t value);
void gps_text_sdec(struct gps_text *text, int64_t value);
void gps_text_hex(struct gps_text *text, uint64_t value);        /* 0x..., lower case, no padding */
void gps_text_size(struct gps_text *text, uint64_t bytes);       /* "64 MiB", "1.5 GiB", "1000 B" */
void gps_text_duration(struct gps_text *text, uint64_t nanos);   /* "30 s", "1.2 ms", "5 min" */
void gps_text_time(struct gps_text *text, uint64_t realtime_ns); /* 2026-11-21T02:34:05.123456Z */
/* Text from outside, for a terminal: control characters (C1 too) and invalid UTF-8 become '?'. */
void gps_text_plain(struct gps_text *text, const char *string);
/* A JSON string with its quotes; what is not valid UTF-8 becomes U+FFFD. NULL becomes null. */
void gps_text_json(struct gps_text *text, const char *string);

#endif
