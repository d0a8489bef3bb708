/*
 * digits.h - formats and parses the numbers in file names: fixed-width hex and strict decimal.
 *
 * The parsers read names that other processes wrote, and accept one spelling of each value: no
 * sign, no blank, no leading zero, no upper case, no overflow. On success a parser moves *text past
 * the digits; otherwise it changes nothing. Pure functions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline void gps_hex_format(const uint8_t *bytes, size_t count, char *text) {
    for (; count > 0; count--, bytes++) {
        *text++ = "0123456789abcdef"[*bytes >> 4];
        *text++ = "0123456789abcdef"[*bytes & 15];
    }
    *text = '\0';
}

/* The value of a lower-case hex digit, or -1. */
static inline int gps_hex_digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses exactly 2 * count digits. The caller checks the text behind them. */
static inline bool gps_hex_parse(const char **text, uint8_t *bytes, size_t count) {
    const char *at = *text;
    for (size_t i = 0; i < count; i++, at += 2) {
        int high = gps_hex_digit(at[0]);
        int low = high < 0 ? -1 : gps_hex_digit(at[1]); /* at[0] may be the NUL */
        if (low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    *text = at;
    return true;
}

static inline bool gps_hex64_parse(const char **text, uint64_t *value) {
    uint8_t bytes[8];
    if (!gps_hex_parse(text, bytes, sizeof(bytes)))
        return false;
    *value = 0;
    for (unsigned i = 0; i < 8; i++)
        *value = *value << 8 | bytes[i];
    return true;
}

static inline bool gps_dec_parse(const char **text, uint64_t *value) {
    const char *at = *text;
    uint64_t sum = 0;
    if (*at < '0' || *at > '9' || (at[0] == '0' && at[1] >= '0' && at[1] <= '9'))
        return false;
    for (; *at >= '0' && *at <= '9'; at++) {
        unsigned digit = (unsigned)(*at - '0');
        if (sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *text = at;
    *value = sum;
    return true;
}
