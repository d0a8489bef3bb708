/* frame_words.h - what an exporter's rule gives its importers to see, in words. */
#pragma once

#include "config/config.h"

/* "frames = latest: importers have memory of their own, ..."; malloc'ed. NULL: without frames. */
char *frame_words(const struct gps_rule *rule);
