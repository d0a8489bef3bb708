/* policy.c - see policy.h. */
#include "policy.h"

#include "ops.h"

static struct gps_answer say(enum gps_verdict verdict, enum gps_finding finding) {
    return (struct gps_answer){verdict, GPS_OK, finding};
}

static struct gps_answer deny(int code, enum gps_finding finding) {
    return (struct gps_answer){GPS_DENY, code, finding};
}

/* Others hold the memory. The first answer carries the finding; the one after a wait does not. */
static struct gps_answer free_held(const struct gps_question *q) {
    enum gps_finding finding = q->waited ? GPS_NO_FINDING : GPS_FREE_WHILE_OPEN;
    if (q->mode == GPS_MODE_AUDIT || q->exiting)
        return say(GPS_FORWARD, finding);
    switch (q->on_free) {
    case GPS_FREE_WAIT:
        return say(q->waited ? GPS_DEFER : GPS_WAIT, finding);
    case GPS_FREE_REFUSE:
        return deny(GPS_NOT_PERMITTED, finding);
    case GPS_FREE_ALLOW:
        return say(GPS_FORWARD, finding);
    case GPS_FREE_DEFER:
        break;
    }
    return say(GPS_DEFER, finding);
}

static struct gps_answer on_free(const struct gps_question *q) {
    switch (q->known) {
    case GPS_KNOWN_HELD:
        return free_held(q);
    case GPS_KNOWN_RESULT:
        return say(q->exiting ? GPS_FORWARD : GPS_HAND_OVER, GPS_NO_FINDING);
    case GPS_KNOWN_DEFERRED: /* the driver would free it: for the program it is freed already */
        return deny(GPS_INVALID_VALUE, GPS_DOUBLE_FREE);
    case GPS_KNOWN_FREED:
        return say(GPS_FORWARD, GPS_DOUBLE_FREE);
    default:
        return say(GPS_FORWARD, GPS_NO_FINDING);
    }
}

/* A stale handle opens whatever lies at its address next (driver 580): only refusing it protects.
 */
static struct gps_answer on_open(const struct gps_question *q) {
    switch (q->known) {
    case GPS_KNOWN_OPEN_HERE:
        return say(GPS_FORWARD, GPS_DOUBLE_OPEN);
    case GPS_KNOWN_STALE:
        return q->mode == GPS_MODE_SHARE ? deny(GPS_INVALID_VALUE, GPS_OPEN_STALE)
                                         : say(GPS_FORWARD, GPS_OPEN_STALE);
    default:
        return say(GPS_FORWARD, GPS_NO_FINDING);
    }
}

static struct gps_answer on_exit_of(const struct gps_question *q) {
    const bool may_wait = q->mode == GPS_MODE_SHARE && !q->waited;
    switch (q->known) {
    case GPS_KNOWN_RESULT:
        return say(may_wait ? GPS_WAIT : GPS_FORWARD, GPS_NO_FINDING);
    case GPS_KNOWN_HELD:
        return may_wait && q->linger ? say(GPS_WAIT, GPS_NO_FINDING)
                                     : say(GPS_FORWARD, GPS_EXIT_WHILE_OPEN);
    default:
        return say(GPS_FORWARD, GPS_NO_FINDING);
    }
}

struct gps_answer gps_policy(const struct gps_question *q) {
    if (q->mode == GPS_MODE_OFF)
        return say(GPS_FORWARD, GPS_NO_FINDING);
    switch (q->ask) {
    case GPS_ASK_FREE:
        return on_free(q);
    case GPS_ASK_OPEN:
        return on_open(q);
    case GPS_ASK_OPENED:
        return say(GPS_FORWARD,
                   q->known == GPS_KNOWN_DEAD_OWNER ? GPS_OPEN_DEAD_OWNER : GPS_NO_FINDING);
    case GPS_ASK_DESTROY: /* the driver dies of it */
        return q->known == GPS_KNOWN_DESTROYED && q->mode == GPS_MODE_SHARE
                   ? deny(GPS_INVALID_HANDLE, GPS_NO_FINDING)
                   : say(GPS_FORWARD, GPS_NO_FINDING);
    case GPS_ASK_EXIT:
        return on_exit_of(q);
    }
    return say(GPS_FORWARD, GPS_NO_FINDING);
}
