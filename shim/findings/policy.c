/* policy.c - see policy.h. */
#include "policy.h"
#include "driver/driver_ops.h"

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

/* Their programs do nothing wrong, and this one's free succeeds. */
static struct gps_answer free_cached(const struct gps_question *q) {
    const bool defers = q->mode == GPS_MODE_SHARE && !q->exiting && q->on_free != GPS_FREE_ALLOW;
    return say(defers ? GPS_DEFER : GPS_FORWARD, GPS_NO_FINDING);
}

static struct gps_answer on_free(const struct gps_question *q) {
    switch (q->known) {
    case GPS_KNOWN_HELD:
        return free_held(q);
    case GPS_KNOWN_CACHED:
        return free_cached(q);
    case GPS_KNOWN_RESULT:
        return say(q->exiting ? GPS_FORWARD : GPS_HAND_OVER, GPS_NO_FINDING);
    case GPS_KNOWN_DEFERRED: /* the driver would free it: for the program it is freed already */
        return deny(GPS_INVALID_VALUE, GPS_DOUBLE_FREE);
    default: /* wrong or not, the driver knows best: see GPS_ASK_FREED */
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

/* The driver would give the handle: for the program the memory is freed. */
static struct gps_answer on_export(const struct gps_question *q) {
    return q->known == GPS_KNOWN_DEFERRED ? deny(GPS_INVALID_VALUE, GPS_EXPORT_NOT_CAPABLE)
                                          : say(GPS_FORWARD, GPS_NO_FINDING);
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

/* The driver crashes of a second destroy: in share mode it is not asked. */
static struct gps_answer on_destroy(const struct gps_question *q) {
    if (q->known != GPS_KNOWN_FREED)
        return say(GPS_FORWARD, GPS_NO_FINDING);
    return q->mode == GPS_MODE_SHARE ? deny(GPS_INVALID_HANDLE, GPS_EVENT_DOUBLE_DESTROY)
                                     : say(GPS_FORWARD, GPS_EVENT_DOUBLE_DESTROY);
}

/* What the driver refused or did needs no verdict, only its name. */
static const struct {
    enum gps_ask ask;
    enum gps_known known;
    enum gps_finding finding;
} names[] = {
    {GPS_ASK_FREED, GPS_KNOWN_FREED, GPS_DOUBLE_FREE},
    {GPS_ASK_FREED, GPS_KNOWN_INTERIOR, GPS_FREE_INTERIOR},
    {GPS_ASK_FREED, GPS_KNOWN_OPEN_HERE, GPS_FREE_IMPORTED},
    {GPS_ASK_OPENED, GPS_KNOWN_NO_CONTEXT, GPS_OPEN_NO_CONTEXT},
    {GPS_ASK_OPENED, GPS_KNOWN_FLAGS, GPS_OPEN_BAD_FLAGS},
    {GPS_ASK_OPENED, GPS_KNOWN_STALE, GPS_OPEN_STALE},
    {GPS_ASK_OPENED, GPS_KNOWN_DEAD_OWNER, GPS_OPEN_DEAD_OWNER},
    {GPS_ASK_OPENED, GPS_KNOWN_OWN, GPS_OPEN_OWN_HANDLE},
    {GPS_ASK_OPENED, GPS_KNOWN_OPEN_THERE, GPS_OPEN_SECOND_CONTEXT},
    {GPS_ASK_OPENED, GPS_KNOWN_NAMESPACE, GPS_OPEN_OTHER_NAMESPACE},
    {GPS_ASK_OPENED, GPS_KNOWN_UNREACHABLE, GPS_OPEN_PEER_DENIED},
    {GPS_ASK_OPENED, GPS_KNOWN_NOTHING, GPS_OPEN_UNKNOWN},
    {GPS_ASK_CLOSED, GPS_KNOWN_NO_CONTEXT, GPS_OPEN_NO_CONTEXT},
    {GPS_ASK_CLOSED, GPS_KNOWN_FREED, GPS_DOUBLE_CLOSE},
    {GPS_ASK_CLOSED, GPS_KNOWN_INTERIOR, GPS_CLOSE_INTERIOR},
    {GPS_ASK_CLOSED, GPS_KNOWN_OWN, GPS_CLOSE_OWN},
    {GPS_ASK_CLOSED, GPS_KNOWN_NOTHING, GPS_CLOSE_UNOPENED},
    {GPS_ASK_EXPORTED, GPS_KNOWN_NO_CONTEXT, GPS_OPEN_NO_CONTEXT},
    {GPS_ASK_EXPORTED, GPS_KNOWN_NOTHING, GPS_EXPORT_NOT_CAPABLE},
    {GPS_ASK_EVENT_SHARED, GPS_KNOWN_NO_CONTEXT, GPS_OPEN_NO_CONTEXT},
    {GPS_ASK_EVENT_SHARED, GPS_KNOWN_FLAGS, GPS_EVENT_NOT_INTERPROCESS},
    {GPS_ASK_EVENT_OPENED, GPS_KNOWN_NO_CONTEXT, GPS_OPEN_NO_CONTEXT},
    {GPS_ASK_EVENT_OPENED, GPS_KNOWN_OWN, GPS_EVENT_OPEN_OWN},
    {GPS_ASK_EVENT_OPENED, GPS_KNOWN_NAMESPACE, GPS_EVENT_OTHER_CONTAINER},
    {GPS_ASK_FORKED, GPS_KNOWN_NOTHING, GPS_FORK_WITH_CONTEXT},
    {GPS_ASK_NOTED_EXPORT, GPS_KNOWN_INTERIOR, GPS_EXPORT_INTERIOR},
    {GPS_ASK_NOTED_EXPORT, GPS_KNOWN_BLOCK, GPS_EXPORT_SHARED_BLOCK},
    {GPS_ASK_NOTED_DESTROY, GPS_KNOWN_HELD, GPS_EVENT_DESTROYED_WHILE_OPEN},
    {GPS_ASK_NOTED_RESET, GPS_KNOWN_OPEN, GPS_RESET_WITH_SHARED},
    {GPS_ASK_NOTED_RESET, GPS_KNOWN_HELD, GPS_RESET_WITH_SHARED},
    {GPS_ASK_NOTED_RESET, GPS_KNOWN_EXPORTED, GPS_LEAK_EXPORT},
    {GPS_ASK_NOTED_END, GPS_KNOWN_OPEN, GPS_LEAK_OPEN},
    {GPS_ASK_NOTED_END, GPS_KNOWN_UNBALANCED, GPS_UNBALANCED_OPEN},
    {GPS_ASK_NOTED_END, GPS_KNOWN_EXPORTED, GPS_LEAK_EXPORT},
};

static struct gps_answer name(const struct gps_question *q) {
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].ask == q->ask && names[i].known == q->known)
            return say(GPS_FORWARD, names[i].finding);
    return say(GPS_FORWARD, GPS_NO_FINDING);
}

/* The memory that the keeper has outlives its creator: no other process loses it. */
static bool outlives_us(const struct gps_export *region) {
    return region->vmm && region->record.keep != GPS_KEEP_OWNER;
}

enum gps_known gps_policy_known(const struct gps_export *region) {
    if (gps_export_is_untaken(region) ||
        (region->state == GPS_EXPORT_CLOSING && gps_export_becomes_result(region)))
        return GPS_KNOWN_RESULT;
    if (outlives_us(region))
        return GPS_KNOWN_NOTHING;
    return region->users.held     ? GPS_KNOWN_HELD
           : region->users.cached ? GPS_KNOWN_CACHED
                                  : GPS_KNOWN_EXPORTED;
}

const char *gps_policy_consequence(const struct gps_answer *answer) {
    if (answer->finding == GPS_EXIT_WHILE_OPEN)
        return "the process waits for them no longer: linger is over, or 0s";
    switch (answer->verdict) {
    case GPS_DEFER:
        return "the free is deferred: it succeeds, and the memory goes when they have closed it";
    case GPS_WAIT:
        return "the free waits for them to close it, up to free_timeout, and is deferred then";
    case GPS_DENY:
        return "the free is refused: it fails, and the memory stays";
    default:
        return "the free is let through";
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
    case GPS_ASK_EXPORT:
        return on_export(q);
    case GPS_ASK_DESTROY:
        return on_destroy(q);
    case GPS_ASK_EXIT:
        return on_exit_of(q);
    default:
        return name(q);
    }
}
