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
#include <string.h>

/* The digits of four bytes, those of bytes[0] first; all eight are made at once. */
static inline uint64_t gps_hex_of_four(const uint8_t bytes[4]) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint32_t four;
    memcpy(&four, bytes, sizeof(four));
    uint64_t digits = (four | (uint64_t)four << 16) & UINT64_C(0x0000ffff0000ffff);
    digits = (digits | digits << 8) & UINT64_C(0x00ff00ff00ff00ff);
    digits = (digits >> 4 | digits << 8) & (ones * 0x0f);
    const uint64_t letters = (digits + ones * 6) >> 4 & ones; /* 1 where a digit is 10 or more */
    return digits + ones * '0' + letters * ('a' - '0' - 10);
}

static inline void gps_hex_format(const uint8_t *bytes, size_t count, char *text) {
    for (; count >= 4; count -= 4, bytes += 4, text += 8) {
        const uint64_t digits = gps_hex_of_four(bytes);
        memcpy(text, &digits, sizeof(digits));
    }
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
    uint64_t bytes; /* the highest first */
    if (!gps_hex_parse(text, (uint8_t *)&bytes, sizeof(bytes)))
        return false;
    *value = __builtin_bswap64(bytes);
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
