/* wait.c - see wait.h. */
#include "wait.h"

#include "log/log.h"
#include "process/membership.h"
#include "process/references.h"
#include "util/clock.h"
#include "util/text.h"

void gps_wait_begin(struct gps_wait *wait, enum gps_slot_via whom, const char *name,
                    const struct gps_id *id, uint64_t most, unsigned what) {
    *wait = (struct gps_wait){.whom = whom,
                              .name = name,
                              .id = id,
                              .began = gps_clock_monotonic(),
                              .most = most,
                              .slot = GPS_NO_SLOT};
    gps_watch_open(&wait->watch, gps_membership_store(), what);
}

static void add_name(struct gps_text *text, const struct gps_wait *wait) {
    char id[GPS_ID_HEX];
    if (*wait->name) {
        gps_text_str(text, wait->name);
        return;
    }
    gps_id_format(wait->id, id);
    gps_text_bytes(text, id, 8);
}

static void publish(struct gps_wait *wait) {
    const uint64_t since = gps_clock_now() - (gps_clock_monotonic() - wait->began);
    struct gps_wait_slot slot = {.state = GPS_SLOT_OPEN,
                                 .via = (uint32_t)wait->whom,
                                 .since = since,
                                 .until = since + wait->most};
    struct gps_text name = GPS_TEXT(slot.name);
    add_name(&name, wait);
    (void)gps_references_wait(&slot, &wait->slot);
}

static void say(const struct gps_wait *wait) {
    char message[256];
    struct gps_text text = GPS_TEXT(message);
    gps_text_str(&text, "waiting up to ");
    gps_text_duration(&text, wait->most);
    gps_text_strs(&text, " for ", gps_wait_whom(wait->whom));
    add_name(&text, wait);
    gps_log_notice(GPS_LEVEL_WARNING, message);
}

void gps_wait_turn(struct gps_wait *wait, uint64_t nanos) {
    if (!wait->said && gps_clock_monotonic() - wait->began >= GPS_SECOND) {
        wait->said = true;
        publish(wait);
        say(wait);
    }
    gps_watch_wait(&wait->watch, nanos);
}

void gps_wait_end(struct gps_wait *wait) {
    gps_references_end(wait->slot);
    gps_watch_close(&wait->watch);
}
