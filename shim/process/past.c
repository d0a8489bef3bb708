#include "past.h"

#include "directory/processes.h"
#include "directory/token_handle.h"
#include "driver/driver_ops.h"
#include "membership.h"
#include "process.h"
#include "references.h"
#include "util/procfs.h"

/* Whether the maker has surely ended. That it is no member here does not prove it: it may be one of
 * a directory that this process does not see. */
static bool maker_has_ended(const uint8_t handle[GPS_HANDLE_BYTES], const struct gps_store *store,
                            const struct gps_owner *maker) {
    return gps_token_is_of(handle, store) ||
           (maker->pid_ns && maker->pid_ns == gps_procfs_pid_ns() && gps_procfs_ended(maker));
}

/* Whether the maker still has the memory: its slot outlasts a record that was removed. */
static bool has_it(const struct gps_id *region, const struct gps_owner *maker) {
    struct gps_party users[GPS_USERS_REPORTED];
    const int count = gps_references_users(region, users, GPS_USERS_REPORTED, NULL);
    for (int i = 0; i < count && i < GPS_USERS_REPORTED; i++)
        if (gps_owner_equal(&users[i].owner, maker))
            return true;
    return count < 0;
}

static enum gps_past past_of_token(const uint8_t handle[GPS_HANDLE_BYTES],
                                   struct gps_owner *maker) {
    const struct gps_store *store = gps_membership_store();
    const struct gps_id region = gps_id_of_handle(handle);
    if (!gps_token_maker(handle, maker))
        return GPS_PAST_UNKNOWN;
    if (gps_process_is_self(maker))
        return GPS_PAST_OWN;
    if (!store)
        return GPS_PAST_UNKNOWN;
    gps_proc_name(store, maker);
    if (gps_lease_probe(store, maker) == GPS_DEAD)
        return maker_has_ended(handle, store, maker) ? GPS_PAST_ENDED : GPS_PAST_UNKNOWN;
    return has_it(&region, maker) ? GPS_PAST_UNKNOWN : GPS_PAST_FREED;
}

enum gps_past gps_past_of(const uint8_t handle[GPS_HANDLE_BYTES],
                          const struct gps_region_record *record, struct gps_owner *exporter) {
    if (!record)
        return past_of_token(handle, exporter);
    *exporter = *gps_record_creator(record);
    return gps_process_is_self(exporter)                                         ? GPS_PAST_OWN
           : gps_record_over(record)                                             ? GPS_PAST_FREED
           : gps_lease_probe(gps_membership_store(), &record->owner) == GPS_DEAD ? GPS_PAST_ENDED
                                                                                 : GPS_PAST_LIVE;
}

int gps_past_code(enum gps_past past) {
    static const int codes[GPS_PASTS] = {[GPS_PAST_UNKNOWN] = GPS_INVALID_VALUE,
                                         [GPS_PAST_LIVE] = GPS_INVALID_VALUE,
                                         [GPS_PAST_OWN] = GPS_INVALID_CONTEXT,
                                         [GPS_PAST_FREED] = GPS_INVALID_VALUE,
                                         [GPS_PAST_ENDED] = GPS_INVALID_HANDLE};
    return codes[past];
}
