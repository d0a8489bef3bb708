#include "frame_words.h"

#include "cli/printable.h"
#include "cli/tool.h"

char *frame_words(const struct gps_rule *rule) {
    const char *own = "importers have memory of their own, and get";
    if (rule->frames == GPS_FRAMES_LATEST)
        return tool_format("frames = latest: %s the newest frame that is whole; nobody waits", own);
    if (rule->frames == GPS_FRAMES_EACH)
        return tool_format("frames = each: %s each whole frame, in order; who is late is waited "
                           "for, for %s at most",
                           own, printable_duration(rule->frames_timeout).text);
    return NULL;
}
