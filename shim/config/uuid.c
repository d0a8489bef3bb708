/*
 * uuid.c - device UUIDs as nvidia-smi and CUDA_VISIBLE_DEVICES spell them.
 */
#include <string.h>

#include "config.h"

static int hex_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Whether a dash stands before this byte: 8-4-4-4-12 digits. */
static bool dash_before(size_t byte) {
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

bool gps_parse_uuid(const char *text, uint8_t uuid[GPS_UUID_BYTES]) {
    if (strncmp(text, "GPU-", 4) != 0 && strncmp(text, "MIG-", 4) != 0)
        return false;
    text += 4;
    uint8_t bytes[GPS_UUID_BYTES];
    for (size_t i = 0; i < GPS_UUID_BYTES; i++) {
        if (dash_before(i) && *text++ != '-')
            return false;
        int high = hex_value(text[0]);
        int low = high < 0 ? -1 : hex_value(text[1]);
        if (low < 0)
            return false;
        bytes[i] = (uint8_t)(high << 4 | low);
        text += 2;
    }
    if (*text != '\0')
        return false;
    memcpy(uuid, bytes, sizeof(bytes));
    return true;
}

void gps_format_uuid(const uint8_t uuid[GPS_UUID_BYTES], char text[41]) {
    memcpy(text, "GPU-", 4);
    text += 4;
    for (size_t i = 0; i < GPS_UUID_BYTES; i++) {
        if (dash_before(i))
            *text++ = '-';
        *text++ = "0123456789abcdef"[uuid[i] >> 4];
        *text++ = "0123456789abcdef"[uuid[i] & 15];
    }
    *text = '\0';
}
