#include "printable.h"

#include <stdio.h>
#include <string.h>

#include "config/value.h"
#include "util/text.h"

#define ARGUMENTS_SHOWN 24

struct printable printable_size(uint64_t bytes) {
    struct printable printable = {""};
    struct gps_text out = GPS_TEXT(printable.text);
    gps_text_size(&out, bytes);
    return printable;
}

struct printable printable_whole_size(uint64_t bytes) {
    struct printable printable = {""}, value = printable_size_value(bytes);
    const size_t digits = strspn(value.text, "0123456789");
    const char *unit = value.text[digits] ? &value.text[digits] : "bytes";
    snprintf(printable.text, sizeof(printable.text), "%.*s %s", (int)digits, value.text, unit);
    return printable;
}

struct printable printable_exact_size(uint64_t bytes) {
    struct printable printable = {""};
    struct gps_text out = GPS_TEXT(printable.text);
    gps_text_size(&out, bytes);
    if (bytes >= 1024)
        gps_text_add(&out, " (%lu bytes)", bytes);
    return printable;
}

struct printable printable_duration(uint64_t nanos) {
    struct printable printable = {""};
    struct gps_text out = GPS_TEXT(printable.text);
    gps_text_duration(&out, nanos);
    return printable;
}

struct printable printable_arguments(const char *arguments) {
    struct printable printable = {""};
    struct gps_text out = gps_text_on(printable.text, ARGUMENTS_SHOWN + 1);
    gps_text_plain(&out, arguments);
    if (out.cut)
        strcpy(printable.text + out.length, "...");
    return printable;
}

struct printable printable_id(const struct gps_id *id) {
    struct printable printable = {""};
    gps_id_format(id, printable.text);
    return printable;
}

struct printable printable_uuid(const uint8_t uuid[GPS_UUID_BYTES]) {
    struct printable printable = {""};
    gps_format_uuid(uuid, printable.text);
    return printable;
}

enum { SHORTEST = 12 /* "GPU-" and 8 digits */, NOTED = 64 };
static struct {
    struct printable texts[NOTED];
    size_t count, width;
} noted = {.width = SHORTEST};

void printable_note_uuid(const uint8_t uuid[GPS_UUID_BYTES]) {
    const struct printable text = printable_uuid(uuid);
    for (size_t i = 0; i < noted.count; i++) {
        size_t alike = 0;
        while (text.text[alike] && text.text[alike] == noted.texts[i].text[alike])
            alike++;
        if (!text.text[alike])
            return; /* it is the same */
        noted.width = alike < noted.width ? noted.width : alike + 1;
    }
    if (noted.count < NOTED)
        noted.texts[noted.count++] = text;
}

struct printable printable_short_uuid(const uint8_t uuid[GPS_UUID_BYTES]) {
    struct printable printable = printable_uuid(uuid);
    printable.text[noted.width] = 0;
    return printable;
}

struct printable printable_size_value(uint64_t bytes) {
    struct printable printable = {""};
    struct gps_text out = GPS_TEXT(printable.text);
    gps_value_size_text(bytes, &out);
    return printable;
}

struct printable printable_indices_value(uint64_t min, uint64_t max) {
    struct printable printable = {""};
    struct gps_text out = GPS_TEXT(printable.text);
    gps_value_range_text(min, max, &gps_indices, &out);
    return printable;
}
