#include "policy.h"
#include "driver/driver_ops.h"

static struct gps_answer policy_answer(enum gps_verdict verdict, enum gps_finding finding) {
    return (struct gps_answer){verdict, GPS_OK, finding};
}

static struct gps_answer deny(int code, enum gps_finding finding) {
    return (struct gps_answer){GPS_DENY, code, finding};
}

/* The named cases. A call that the driver has made or refused needs no verdict. A call that it must
 * not get is answered with its own code: it would free or give memory that is freed for the
 * program. So are, in share mode, too, a second destroy, which crashes it, a stale handle, which
 * opens any memory that lies at its address next (driver 580), or hangs, and a free of an address
 * inside, which frees the whole where the driver takes it (gps_operations.by_range). */
#define ANSWER(ask, known, finding, code) [ask][known] = {true, finding, code}
/* Every IPC call that is refused has a finding: the rows of its ask, or one of these. */
#define REFUSED(ask)                                                                               \
    ANSWER(ask, GPS_KNOWN_LIVE, GPS_IPC_CALL_FAILED, GPS_OK),                                      \
        ANSWER(ask, GPS_KNOWN_NO_CONTEXT, GPS_OPEN_NO_CONTEXT, GPS_OK),                            \
        ANSWER(ask, GPS_KNOWN_NO_OUTPUT, GPS_NULL_OUTPUT, GPS_OK),                                 \
        ANSWER(ask, GPS_KNOWN_SHUT_DOWN, GPS_CALL_AFTER_SHUTDOWN, GPS_OK)
static const struct {
    bool is_named;
    enum gps_finding finding;
    int code; /* GPS_OK: the driver is asked, or was */
} names[GPS_ASK_COUNT][GPS_KNOWN_COUNT] = {
    ANSWER(GPS_ASK_FREE, GPS_KNOWN_DEFERRED, GPS_DOUBLE_FREE, GPS_INVALID_VALUE),
    ANSWER(GPS_ASK_FREE, GPS_KNOWN_INTERIOR, GPS_FREE_INTERIOR, GPS_INVALID_VALUE),
    ANSWER(GPS_ASK_OPEN, GPS_KNOWN_OPEN_HERE, GPS_DOUBLE_OPEN, GPS_OK),
    ANSWER(GPS_ASK_OPEN, GPS_KNOWN_STALE, GPS_OPEN_STALE, GPS_INVALID_VALUE),
    ANSWER(GPS_ASK_EXPORT, GPS_KNOWN_DEFERRED, GPS_EXPORT_NOT_CAPABLE, GPS_INVALID_VALUE),
    ANSWER(GPS_ASK_DESTROY, GPS_KNOWN_FREED, GPS_EVENT_DOUBLE_DESTROY, GPS_INVALID_HANDLE),
    ANSWER(GPS_ASK_EXIT, GPS_KNOWN_HELD, GPS_EXIT_WHILE_OPEN, GPS_OK),
    ANSWER(GPS_ASK_FREED, GPS_KNOWN_FREED, GPS_DOUBLE_FREE, GPS_OK),
    ANSWER(GPS_ASK_FREED, GPS_KNOWN_INTERIOR, GPS_FREE_INTERIOR, GPS_OK),
    ANSWER(GPS_ASK_FREED, GPS_KNOWN_OPEN_HERE, GPS_FREE_IMPORTED, GPS_OK),
    ANSWER(GPS_ASK_FREED, GPS_KNOWN_HOST, GPS_FREE_HOST, GPS_OK),
    ANSWER(GPS_ASK_FREED, GPS_KNOWN_NOTHING, GPS_FREE_UNKNOWN, GPS_OK),
    REFUSED(GPS_ASK_OPENED),
    ANSWER(GPS_ASK_OPENED, GPS_KNOWN_FLAGS, GPS_OPEN_BAD_FLAGS, GPS_OK),
    ANSWER(GPS_ASK_OPENED, GPS_KNOWN_STALE, GPS_OPEN_STALE, GPS_OK),
    ANSWER(GPS_ASK_OPENED, GPS_KNOWN_DEAD_OWNER, GPS_OPEN_DEAD_OWNER, GPS_OK),
    ANSWER(GPS_ASK_OPENED, GPS_KNOWN_OWN, GPS_OPEN_OWN_HANDLE, GPS_OK),
    ANSWER(GPS_ASK_OPENED, GPS_KNOWN_OPEN_THERE, GPS_OPEN_SECOND_CONTEXT, GPS_OK),
    ANSWER(GPS_ASK_OPENED, GPS_KNOWN_NAMESPACE, GPS_OPEN_OTHER_NAMESPACE, GPS_OK),
    ANSWER(GPS_ASK_OPENED, GPS_KNOWN_UNREACHABLE, GPS_OPEN_PEER_DENIED, GPS_OK),
    ANSWER(GPS_ASK_OPENED, GPS_KNOWN_PLACE_HELD, GPS_OPEN_PLACE_HELD, GPS_OK),
    ANSWER(GPS_ASK_OPENED, GPS_KNOWN_NOTHING, GPS_OPEN_UNKNOWN, GPS_OK),
    REFUSED(GPS_ASK_CLOSED),
    ANSWER(GPS_ASK_CLOSED, GPS_KNOWN_FREED, GPS_DOUBLE_CLOSE, GPS_OK),
    ANSWER(GPS_ASK_CLOSED, GPS_KNOWN_INTERIOR, GPS_CLOSE_INTERIOR, GPS_OK),
    ANSWER(GPS_ASK_CLOSED, GPS_KNOWN_OWN, GPS_CLOSE_OWN, GPS_OK),
    ANSWER(GPS_ASK_CLOSED, GPS_KNOWN_NOTHING, GPS_CLOSE_UNOPENED, GPS_OK),
    REFUSED(GPS_ASK_EXPORTED),
    ANSWER(GPS_ASK_EXPORTED, GPS_KNOWN_NOTHING, GPS_EXPORT_NOT_CAPABLE, GPS_OK),
    REFUSED(GPS_ASK_EVENT_SHARED),
    ANSWER(GPS_ASK_EVENT_SHARED, GPS_KNOWN_FLAGS, GPS_EVENT_NOT_INTERPROCESS, GPS_OK),
    REFUSED(GPS_ASK_EVENT_OPENED),
    ANSWER(GPS_ASK_EVENT_SHARED, GPS_KNOWN_IMPORTED, GPS_EVENT_EXPORT_IMPORTED, GPS_OK),
    ANSWER(GPS_ASK_EVENT_OPENED, GPS_KNOWN_OWN, GPS_EVENT_OPEN_OWN, GPS_OK),
    ANSWER(GPS_ASK_EVENT_OPENED, GPS_KNOWN_NOTHING, GPS_EVENT_UNKNOWN, GPS_OK),
    ANSWER(GPS_ASK_EVENT_OPENED, GPS_KNOWN_NAMESPACE, GPS_EVENT_OTHER_CONTAINER, GPS_OK),
    ANSWER(GPS_ASK_EVENT_OPENED, GPS_KNOWN_STALE, GPS_EVENT_STALE, GPS_OK),
    ANSWER(GPS_ASK_EVENT_OPENED, GPS_KNOWN_DEAD_OWNER, GPS_EVENT_DEAD_OWNER, GPS_OK),
    ANSWER(GPS_ASK_EVENT_USED, GPS_KNOWN_FREED, GPS_EVENT_USE_AFTER_DESTROY, GPS_OK),
    ANSWER(GPS_ASK_VMM_RELEASED, GPS_KNOWN_FREED, GPS_VMM_DOUBLE_RELEASE, GPS_OK),
    ANSWER(GPS_ASK_VMM_MAPPED, GPS_KNOWN_UNEVEN, GPS_VMM_GRANULARITY, GPS_OK),
    ANSWER(GPS_ASK_VMM_MAPPED, GPS_KNOWN_MAPPED, GPS_MAP_OVER_MAPPING, GPS_OK),
    ANSWER(GPS_ASK_VMM_MAPPED, GPS_KNOWN_FREED, GPS_VMM_USE_AFTER_RELEASE, GPS_OK),
    ANSWER(GPS_ASK_VMM_MAPPED, GPS_KNOWN_FABRIC, GPS_FABRIC_UNUSABLE, GPS_OK),
    ANSWER(GPS_ASK_VMM_UNMAPPED, GPS_KNOWN_INTERIOR, GPS_UNMAP_MISMATCH, GPS_OK),
    ANSWER(GPS_ASK_VMM_UNMAPPED, GPS_KNOWN_UNMAPPED, GPS_UNMAP_MISMATCH, GPS_OK),
    ANSWER(GPS_ASK_VMM_EXPORTED, GPS_KNOWN_TYPES, GPS_EXPORT_TYPE_MISSING, GPS_OK),
    ANSWER(GPS_ASK_VMM_EXPORTED, GPS_KNOWN_FREED, GPS_VMM_USE_AFTER_RELEASE, GPS_OK),
    ANSWER(GPS_ASK_VMM_EXPORTED, GPS_KNOWN_IMPORTED, GPS_EXPORT_IMPORTED, GPS_OK),
    ANSWER(GPS_ASK_VMM_IMPORTED, GPS_KNOWN_NOTHING, GPS_DESCRIPTOR_REFUSED, GPS_OK),
    ANSWER(GPS_ASK_VMM_IMPORTED, GPS_KNOWN_UNREACHABLE, GPS_DESCRIPTOR_REFUSED, GPS_OK),
    ANSWER(GPS_ASK_VMM_UNRESERVED, GPS_KNOWN_MAPPED, GPS_ADDRESS_FREE_MAPPED, GPS_OK),
    ANSWER(GPS_ASK_COPIED, GPS_KNOWN_CLOSED, GPS_USE_AFTER_CLOSE, GPS_OK),
    ANSWER(GPS_ASK_COPIED, GPS_KNOWN_FREED, GPS_USE_AFTER_FREE, GPS_OK),
    ANSWER(GPS_ASK_COPIED, GPS_KNOWN_UNMAPPED, GPS_USE_UNMAPPED, GPS_OK),
    ANSWER(GPS_ASK_COPIED, GPS_KNOWN_NO_ACCESS, GPS_MAPPING_WITHOUT_ACCESS, GPS_OK),
    ANSWER(GPS_ASK_COPIED, GPS_KNOWN_NO_PEER, GPS_ACCESS_PEER_MISSING, GPS_OK),
    ANSWER(GPS_ASK_COPIED, GPS_KNOWN_PARTLY, GPS_IMPORT_PARTIAL, GPS_OK),
    ANSWER(GPS_ASK_COPIED, GPS_KNOWN_INTERIOR, GPS_COPY_OUTSIDE, GPS_OK),
    ANSWER(GPS_ASK_COPIED, GPS_KNOWN_NOTHING, GPS_COPY_OUTSIDE, GPS_OK),
    ANSWER(GPS_ASK_NOTED_REFUSAL, GPS_KNOWN_NOTHING, GPS_MEMORY_CALL_FAILED, GPS_OK),
    ANSWER(GPS_ASK_NOTED_MAP, GPS_KNOWN_HELD, GPS_VMM_REMAPPED_SHARED, GPS_OK),
    ANSWER(GPS_ASK_POOL_ALLOCATED, GPS_KNOWN_IMPORTED, GPS_POOL_ALLOC_IMPORTED, GPS_OK),
    ANSWER(GPS_ASK_POOL_FREED, GPS_KNOWN_FREED, GPS_POOL_IMPORTED_TWICE, GPS_OK),
    ANSWER(GPS_ASK_POOL_FREED, GPS_KNOWN_HELD, GPS_POOL_FREE_ORDER, GPS_OK),
    ANSWER(GPS_ASK_NOTED_POOL, GPS_KNOWN_OPEN, GPS_POOL_DESTROYED_IN_USE, GPS_OK),
    ANSWER(GPS_ASK_FORKED, GPS_KNOWN_NOTHING, GPS_FORK_WITH_CONTEXT, GPS_OK),
    ANSWER(GPS_ASK_NOTED_EXPORT, GPS_KNOWN_INTERIOR, GPS_EXPORT_INTERIOR, GPS_OK),
    ANSWER(GPS_ASK_NOTED_OPEN, GPS_KNOWN_INTERIOR, GPS_OPEN_INTERIOR, GPS_OK),
    ANSWER(GPS_ASK_NOTED_EXPORT, GPS_KNOWN_BLOCK, GPS_EXPORT_SHARED_BLOCK, GPS_OK),
    ANSWER(GPS_ASK_NOTED_DESTROY, GPS_KNOWN_HELD, GPS_EVENT_DESTROYED_WHILE_OPEN, GPS_OK),
    ANSWER(GPS_ASK_NOTED_WAIT, GPS_KNOWN_NOTHING, GPS_EVENT_NEVER_RECORDED, GPS_OK),
    ANSWER(GPS_ASK_NOTED_RESET, GPS_KNOWN_OPEN, GPS_RESET_WITH_SHARED, GPS_OK),
    ANSWER(GPS_ASK_NOTED_RESET, GPS_KNOWN_HELD, GPS_RESET_WITH_SHARED, GPS_OK),
    ANSWER(GPS_ASK_NOTED_RESET, GPS_KNOWN_EXPORTED, GPS_LEAK_EXPORT, GPS_OK),
    ANSWER(GPS_ASK_NOTED_END, GPS_KNOWN_OPEN, GPS_LEAK_OPEN, GPS_OK),
    ANSWER(GPS_ASK_NOTED_END, GPS_KNOWN_EVENT_OPEN, GPS_LEAK_EVENT, GPS_OK),
    ANSWER(GPS_ASK_NOTED_END, GPS_KNOWN_UNBALANCED, GPS_UNBALANCED_OPEN, GPS_OK),
    ANSWER(GPS_ASK_NOTED_END, GPS_KNOWN_EXPORTED, GPS_LEAK_EXPORT, GPS_OK),
    ANSWER(GPS_ASK_NOTED_END, GPS_KNOWN_OWN, GPS_LEAK_MEMORY, GPS_OK),
    ANSWER(GPS_ASK_NOTED_END, GPS_KNOWN_UNMAPPED, GPS_VMM_HANDLE_LEAK, GPS_OK),
    ANSWER(GPS_ASK_NOTED_END, GPS_KNOWN_NO_ACCESS, GPS_MAPPING_NEVER_ACCESSIBLE, GPS_OK),
    ANSWER(GPS_ASK_NOTED_END, GPS_KNOWN_LEFT_EXPORTED, GPS_EXPORT_DESCRIPTOR_LEAK, GPS_OK),
    ANSWER(GPS_ASK_NOTED_END, GPS_KNOWN_LEFT_IMPORTED, GPS_IMPORT_DESCRIPTOR_LEAK, GPS_OK),
};

/* In audit mode, too, a deferred region is freed for the program. */
static struct gps_answer policy_name_finding(const struct gps_question *q) {
    const enum gps_finding finding = names[q->ask][q->known].finding;
    const int code = names[q->ask][q->known].code;
    if (!names[q->ask][q->known].is_named)
        return policy_answer(GPS_FORWARD, GPS_NO_FINDING);
    return code != GPS_OK && (q->mode == GPS_MODE_SHARE || q->known == GPS_KNOWN_DEFERRED)
               ? deny(code, finding)
               : policy_answer(GPS_FORWARD, finding);
}

/* Other processes hold the memory. The first answer has the finding; one after a wait does not. */
static struct gps_answer free_held(const struct gps_question *q) {
    static const enum gps_verdict verdicts[] = {[GPS_FREE_DEFER] = GPS_DEFER,
                                                [GPS_FREE_WAIT] = GPS_WAIT,
                                                [GPS_FREE_REFUSE] = GPS_DENY,
                                                [GPS_FREE_ALLOW] = GPS_FORWARD};
    const enum gps_finding finding = q->waited ? GPS_NO_FINDING : GPS_FREE_WHILE_OPEN;
    const enum gps_verdict verdict =
        q->mode == GPS_MODE_AUDIT || q->exiting ? GPS_FORWARD : verdicts[q->on_free];
    return verdict == GPS_DENY                ? deny(GPS_NOT_PERMITTED, finding)
           : verdict == GPS_WAIT && q->waited ? policy_answer(GPS_DEFER, finding)
                                              : policy_answer(verdict, finding);
}

static struct gps_answer policy_on_free(const struct gps_question *q) {
    const bool may_defer = q->mode == GPS_MODE_SHARE && !q->exiting && q->on_free != GPS_FREE_ALLOW;
    switch (q->known) {
    case GPS_KNOWN_HELD:
        return free_held(q);
    case GPS_KNOWN_CACHED: /* their programs do nothing wrong, and this one's free succeeds */
        return policy_answer(may_defer ? GPS_DEFER : GPS_FORWARD, GPS_NO_FINDING);
    case GPS_KNOWN_RESULT:
        return policy_answer(q->exiting ? GPS_FORWARD : GPS_HAND_OVER, GPS_NO_FINDING);
    default: /* wrong or not, the driver decides: see GPS_ASK_FREED */
        return policy_name_finding(q);
    }
}

static struct gps_answer on_exit_of(const struct gps_question *q) {
    const bool may_wait = q->mode == GPS_MODE_SHARE && !q->waited;
    if (may_wait && (q->known == GPS_KNOWN_RESULT || (q->known == GPS_KNOWN_HELD && q->linger)))
        return policy_answer(GPS_WAIT, GPS_NO_FINDING);
    return policy_name_finding(q);
}

enum gps_known gps_policy_known(const struct gps_export *region) {
    if (gps_export_is_untaken(region) ||
        (region->state == GPS_EXPORT_CLOSING && gps_export_becomes_result(region)))
        return GPS_KNOWN_RESULT;
    if (region->vmm && region->record.keep != GPS_KEEP_OWNER)
        return GPS_KNOWN_NOTHING; /* the keeper's memory outlives its creator: no other process
                                     loses it */
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
        return policy_answer(GPS_FORWARD, GPS_NO_FINDING);
    return q->ask == GPS_ASK_FREE   ? policy_on_free(q)
           : q->ask == GPS_ASK_EXIT ? on_exit_of(q)
                                    : policy_name_finding(q);
}
