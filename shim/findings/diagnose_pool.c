/* diagnose_pool.c - see diagnose.h. */
#include "diagnose.h"

#include "driver/driver_ops.h"
#include "driver/scope.h"
#include "process/membership.h"
#include "registry/freed_history.h"
#include "reporter.h"
#include "util/text.h"

static struct gps_report report_on(enum gps_ask ask, enum gps_known known,
                                   const struct gps_pool *pool) {
    struct gps_report report = gps_report_on(ask, known);
    report.device = pool->device;
    gps_report_prior(&report, pool->imported ? "opened" : "created", pool->made);
    return report;
}

void gps_diagnose_pool_allocation(uint64_t pool, int code) {
    struct gps_pool found;
    if (code != GPS_INVALID_VALUE || !gps_pool_find(pool, &found) || !found.imported)
        return;
    GPS_SCOPE();
    struct gps_report report = report_on(GPS_ASK_POOL_ALLOCATED, GPS_KNOWN_IMPORTED, &found);
    gps_report_send(&report);
}

void gps_diagnose_pool_free(uint64_t pointer, int code) {
    struct gps_freed freed;
    if (code != GPS_INVALID_VALUE || !gps_freed_find(GPS_FREED_POINTER, pointer, &freed))
        return;
    GPS_SCOPE();
    struct gps_report report = gps_report_on(GPS_ASK_POOL_FREED, GPS_KNOWN_FREED);
    report.pointer = pointer;
    report.context = freed.context;
    gps_report_prior(&report, "opened", freed.born);
    gps_report_prior(&report, "freed", freed.ended);
    gps_report_send(&report);
}

/* Another pool's pointer with equal data may be the one that is imported. */
void gps_diagnose_pool_order(const struct gps_pool_pointer *pointer) {
    struct gps_party users[GPS_USERS_REPORTED];
    GPS_SCOPE();
    const int count = gps_membership_join() == 0
                          ? gps_references_users(&pointer->id, users, GPS_USERS_REPORTED)
                          : 0;
    if (count <= 0 || gps_pool_pointer_has(&pointer->id))
        return;
    struct gps_report report = gps_report_on(GPS_ASK_POOL_FREED, GPS_KNOWN_HELD);
    report.pointer = pointer->pointer;
    report.size = pointer->size;
    report.context = pointer->context;
    gps_report_users(&report, users, count);
    gps_report_prior(&report, "allocated", pointer->made);
    gps_report_prior(&report, "exported", pointer->exported_at);
    gps_report_send(&report);
}

void gps_diagnose_pool_destroyed(const struct gps_pool *pool) {
    struct gps_pool_pointer first;
    char detail[64];
    struct gps_text text = GPS_TEXT(detail);
    if (!gps_pool_pointer_of(pool, &first))
        return;
    GPS_SCOPE();
    struct gps_report report = report_on(GPS_ASK_NOTED_POOL, GPS_KNOWN_OPEN, pool);
    gps_text_add(&text, "%u of its pointers %s alive", pool->pointers,
                 pool->pointers == 1 ? "is" : "are");
    report.pointer = first.pointer;
    report.size = first.size;
    report.context = first.context;
    report.detail = detail;
    gps_report_prior(&report, first.imports ? "opened" : "allocated", first.made);
    gps_report_send(&report);
}
