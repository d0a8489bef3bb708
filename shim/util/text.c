/*
 * text.c - formats text into a buffer of the caller's.
 *
 * Every function ends in gps_text_bytes, which cuts. Nothing is added behind the cut: a text is
 * always a prefix of the whole text.
 */
#include "text.h"

#include <errno.h>
#include <string.h>

#include "digits.h"

struct gps_text gps_text_on(char *buffer, size_t size) {
    buffer[0] = '\0';
    return (struct gps_text){.bytes = buffer, .size = size, .length = 0, .cut = false};
}

void gps_text_bytes(struct gps_text *text, const char *bytes, size_t count) {
    size_t room = text->cut ? 0 : text->size - 1 - text->length;
    if (count > room) {
        text->cut = true;
        count = room;
    }
    memcpy(text->bytes + text->length, bytes, count);
    text->length += count;
    text->bytes[text->length] = '\0';
}

void gps_text_str(struct gps_text *text, const char *string) {
    if (string)
        gps_text_bytes(text, string, strlen(string));
}

void gps_text_list(struct gps_text *text, const char *const *strings, size_t count) {
    for (size_t i = 0; i < count; i++)
        gps_text_str(text, strings[i]);
}

/* Adds at least `width` digits, with leading zeros. */
static void dec(struct gps_text *text, uint64_t value, unsigned width) {
    char reversed[64];
    size_t at = sizeof(reversed);
    do {
        reversed[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0 || sizeof(reversed) - at < width);
    gps_text_bytes(text, reversed + at, sizeof(reversed) - at);
}

/* The same; the width is at most 16. */
static void hex(struct gps_text *text, uint64_t value, unsigned width) {
    char digits[17];
    const uint64_t reversed = __builtin_bswap64(value);
    gps_hex_format((const uint8_t *)&reversed, sizeof(reversed), digits);
    const unsigned zeros = (unsigned)__builtin_clzll(value | 1) / 4;
    const unsigned skipped = zeros < 16 - width ? zeros : 16 - width;
    gps_text_bytes(text, digits + skipped, 16 - skipped);
}

void gps_text_dec(struct gps_text *text, uint64_t value) {
    dec(text, value, 1);
}

/* Carries out the conversion behind a %. Returns the rest of the format. */
static const char *convert(struct gps_text *text, const char *at, va_list *args) {
    unsigned width = 0;
    if (*at == 's') {
        gps_text_str(text, va_arg(*args, const char *));
        return at + 1;
    }
    for (; *at >= '0' && *at <= '9'; at++)
        width = 10 * width + (unsigned)(*at - '0');
    bool is_long = *at == 'l';
    uint64_t value = is_long ? va_arg(*args, unsigned long) : va_arg(*args, unsigned);
    at += is_long;
    (*at == 'x' ? hex : dec)(text, value, width);
    return at + 1;
}

void gps_text_addv(struct gps_text *text, const char *format, va_list args) {
    va_list left;
    va_copy(left, args);
    while (*format != '\0') {
        const char *percent = strchrnul(format, '%');
        gps_text_bytes(text, format, (size_t)(percent - format));
        format = *percent == '\0' ? percent : convert(text, percent + 1, &left);
    }
    va_end(left);
}

void gps_text_add(struct gps_text *text, const char *format, ...) {
    va_list args;
    va_start(args, format);
    gps_text_addv(text, format, args);
    va_end(args);
}

/* value/unit with one decimal, rounded down ("1023.9 KiB", never "1024.0"), or none for 0. */
static void with_unit(struct gps_text *text, uint64_t value, uint64_t unit, const char *name) {
    uint64_t tenth = value % unit * 10 / unit; /* the largest unit is 2^60: no overflow */
    gps_text_add(text, tenth != 0 ? "%lu.%lu " : "%lu ", value / unit, tenth);
    gps_text_str(text, name);
}

void gps_text_size(struct gps_text *text, uint64_t bytes) {
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    unsigned power = 0;
    while (power < 6 && bytes >> (10 * power) >= 1024)
        power++;
    with_unit(text, bytes, UINT64_C(1) << (10 * power), names[power]);
}

const struct gps_unit gps_time_units[] = {
    {"h", UINT64_C(3600000000000)},
    {"min", UINT64_C(60000000000)},
    {"m", UINT64_C(60000000000)},
    {"s", 1000000000},
    {"ms", 1000000},
    {"us", 1000},
    {"ns", 1},
    {NULL, 0},
};

void gps_text_duration(struct gps_text *text, uint64_t nanos) {
    const struct gps_unit *unit = gps_time_units;
    while (nanos != 0 && nanos < unit->factor)
        unit++; /* ends at ns */
    if (nanos == 0)
        gps_text_str(text, "0 s");
    else
        with_unit(text, nanos, unit->factor, unit->name);
}

struct date {
    uint64_t year;
    unsigned month, day;
};

/* Days since 1970-01-01 in the Gregorian calendar, counted in years that begin in March, so that
 * the leap day is the last of its year. */
static struct date date_of(uint64_t days) {
    uint64_t shifted = days + 719468; /* days from 0000-03-01 to 1970-01-01 */
    uint64_t era = shifted / 146097;  /* days in 400 years */
    uint64_t day = shifted % 146097;
    uint64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    unsigned left = (unsigned)(day - (365 * year + year / 4 - year / 100));
    unsigned month = (5 * left + 2) / 153; /* 0: March */
    return (struct date){.year = era * 400 + year + (month >= 10),
                         .month = month < 10 ? month + 3 : month - 9,
                         .day = left - (153 * month + 2) / 5 + 1};
}

void gps_text_time(struct gps_text *text, uint64_t realtime_ns) {
    uint64_t seconds = realtime_ns / 1000000000;
    struct date date = date_of(seconds / 86400);
    gps_text_add(text, "%04lu-%02u-%02uT%02lu:%02lu:%02lu.%06luZ", date.year, date.month, date.day,
                 seconds / 3600 % 24, seconds / 60 % 60, seconds % 60,
                 realtime_ns / 1000 % 1000000);
}

/* The length of the UTF-8 sequence at `s`, and its code point; 0: it is not valid. Never reads past
 * a NUL, which is not a continuation byte. */
static size_t decode(const char *s, uint32_t *code) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint8_t first = (uint8_t)s[0];
    size_t length = first < 0x80           ? 1
                    : (first >> 5) == 0x06 ? 2
                    : (first >> 4) == 0x0e ? 3
                    : (first >> 3) == 0x1e ? 4
                                           : 0;
    uint32_t value = length == 1 ? first : first & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if (((uint8_t)s[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | ((uint8_t)s[i] & 0x3f);
    }
    if (length == 0 || value < least[length] || value > 0x10ffff || (value >> 11) == 0x1b)
        return 0;
    *code = value;
    return length;
}

/* C0, DEL and C1, which a terminal may take for commands. */
static bool is_control(uint32_t code) {
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/* A character that ends a line, or turns the direction of the text behind it. */
static bool is_misleading(uint32_t code) {
    return (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

size_t gps_text_character(const char *string, uint32_t *code) {
    const size_t length = decode(string, code);
    return length == 0 || is_control(*code) || is_misleading(*code) ? 0 : length;
}

void gps_text_plain(struct gps_text *text, const char *string) {
    while (string && *string != '\0') {
        uint32_t code;
        const size_t length = decode(string, &code);
        if (gps_text_character(string, &code) == 0)
            gps_text_str(text, "?");
        else if (length <= text->size - 1 - text->length)
            gps_text_bytes(text, string, length);
        else
            text->cut = true;
        string += length == 0 ? 1 : length;
    }
}

static void json_char(struct gps_text *text, const char *at, size_t length, uint32_t code) {
    if (length == 0) {
        gps_text_str(text, "\xef\xbf\xbd");
    } else if (code == '"' || code == '\\') {
        gps_text_str(text, "\\");
        gps_text_bytes(text, at, 1);
    } else if (is_control(code)) {
        gps_text_str(text, "\\u");
        hex(text, code, 4);
    } else {
        gps_text_bytes(text, at, length);
    }
}

/* The length of the part that needs no escape, which is nearly always the whole string. */
static size_t plain_length(const char *string) {
    size_t length = 0;
    while (string[length] >= ' ' && string[length] < 0x7f && string[length] != '"' &&
           string[length] != '\\')
        length++;
    return length;
}

void gps_text_json(struct gps_text *text, const char *string) {
    if (!string) {
        gps_text_str(text, "null");
        return;
    }
    gps_text_str(text, "\"");
    while (*string != '\0') {
        uint32_t code = 0;
        size_t length = plain_length(string);
        if (length > 0) {
            gps_text_bytes(text, string, length);
        } else {
            length = decode(string, &code);
            json_char(text, string, length, code);
        }
        string += length == 0 ? 1 : length;
    }
    gps_text_str(text, "\"");
}

/* No pointers: they would be relocated. */
static const struct {
    int error;
    char text[40];
} texts[] = {
    {EPERM, "Operation not permitted"},
    {ENOENT, "No such file or directory"},
    {EINTR, "Interrupted system call"},
    {EIO, "Input/output error"},
    {ENXIO, "No such device or address"},
    {EBADF, "Bad file descriptor"},
    {EAGAIN, "Resource temporarily unavailable"},
    {ENOMEM, "Cannot allocate memory"},
    {EACCES, "Permission denied"},
    {EFAULT, "Bad address"},
    {EBUSY, "Device or resource busy"},
    {EEXIST, "File exists"},
    {EXDEV, "Invalid cross-device link"},
    {ENODEV, "No such device"},
    {ENOTDIR, "Not a directory"},
    {EISDIR, "Is a directory"},
    {EINVAL, "Invalid argument"},
    {ENFILE, "Too many open files in system"},
    {EMFILE, "Too many open files"},
    {ENOTTY, "Inappropriate ioctl for device"},
    {ETXTBSY, "Text file busy"},
    {EFBIG, "File too large"},
    {ENOSPC, "No space left on device"},
    {ESPIPE, "Illegal seek"},
    {EROFS, "Read-only file system"},
    {EMLINK, "Too many links"},
    {EPIPE, "Broken pipe"},
    {ENAMETOOLONG, "File name too long"},
    {ENOSYS, "Function not implemented"},
    {ENOTEMPTY, "Directory not empty"},
    {ELOOP, "Too many levels of symbolic links"},
    {EOVERFLOW, "Value too large for defined data type"},
    {EBADMSG, "Bad message"},
    {EPROTO, "Protocol error"},
    {EDQUOT, "Disk quota exceeded"},
    {EOPNOTSUPP, "Operation not supported"},
    {ECONNREFUSED, "Connection refused"},
    {ECONNRESET, "Connection reset by peer"},
    {ETIMEDOUT, "Connection timed out"},
    {ESTALE, "Stale file handle"},
};

const char *gps_error_text(int error) {
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].error == error)
            return texts[i].text;
    return "unknown error";
}
