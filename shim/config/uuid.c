/*
 * uuid.c - device UUIDs as nvidia-smi and CUDA_VISIBLE_DEVICES spell them.
 */
#include <string.h>

#include "config.h"
#include "util/digits.h"

static const uint8_t group_bytes[] = {4, 2, 2, 2, 6};
#define GROUPS sizeof(group_bytes)

bool gps_parse_uuid(const char *text, uint8_t uuid[GPS_UUID_BYTES]) {
    char lower[GPS_UUID_TEXT];
    size_t length = strlen(text);
    if (length >= sizeof(lower) || (strncmp(text, "GPU-", 4) != 0 && strncmp(text, "MIG-", 4) != 0))
        return false;
    for (size_t i = 0; i <= length; i++)
        lower[i] = (char)(text[i] >= 'A' && text[i] <= 'F' ? text[i] + ('a' - 'A') : text[i]);
    const char *at = lower + 3;
    uint8_t bytes[GPS_UUID_BYTES];
    uint8_t *next = bytes;
    for (size_t i = 0; i < GROUPS; next += group_bytes[i++])
        if (*at++ != '-' || !gps_hex_parse(&at, next, group_bytes[i]))
            return false;
    if (*at != '\0')
        return false;
    memcpy(uuid, bytes, sizeof(bytes));
    return true;
}

void gps_format_uuid(const uint8_t uuid[GPS_UUID_BYTES], char text[GPS_UUID_TEXT]) {
    memcpy(text, "GPU", 3);
    text += 3;
    for (size_t i = 0; i < GROUPS; i++) {
        *text++ = '-';
        gps_hex_format(uuid, group_bytes[i], text);
        uuid += group_bytes[i];
        text += 2 * group_bytes[i];
    }
}
