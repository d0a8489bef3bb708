#include "wording.h"

#include <string.h>

#include "util/text.h"

static struct {
    const char *vendor; /* NULL: the texts are right as they are */
    bool by_range;
} state;

void gps_wording_start(const char *vendor, bool by_range) {
    state.vendor = strcmp(vendor, "cuda") == 0 ? NULL : vendor;
    state.by_range = by_range;
}

bool gps_wording_is_by_range(void) {
    return state.by_range;
}

/* Of small letters. */
static void add_upper(struct gps_text *to, const char *word) {
    for (; *word; word++)
        gps_text_bytes(to, (const char[]){(char)(*word - 'a' + 'A')}, 1);
}

/* The prefix of a function's name, or the vendor's own. */
static bool add_vendor(struct gps_text *to, const char *from) {
    if (strncmp(from, "CUDA", 4) == 0)
        add_upper(to, state.vendor);
    else if (strncmp(from, "cuda", 4) == 0 && from[4] >= 'A' && from[4] <= 'Z')
        gps_text_str(to, state.vendor);
    else
        return false;
    return true;
}

const char *gps_wording(const char *text, char room[GPS_WORDING_BYTES]) {
    if (!text || !state.vendor)
        return text;
    struct gps_text to = gps_text_on(room, GPS_WORDING_BYTES);
    while (*text) {
        if (add_vendor(&to, text))
            text += 4;
        else
            gps_text_bytes(&to, text++, 1);
    }
    return room;
}
