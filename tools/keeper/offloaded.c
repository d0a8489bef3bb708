#include "offloaded.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "directory/processes.h"
#include "directory/region.h"
#include "gpushare/keeper.h"
#include "process/control_group.h"

enum { SEALS = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK, SHARE_OF_LEFT = 4 };

bool offloaded_is(const struct keeper_region *region) {
    return region->descriptor < 0 && region->copy >= 0;
}

void offloaded_take(struct region_list *list, struct keeper_region *region, int bytes) {
    region->copy = bytes;
    atomic_fetch_add(&list->table->copies, 1);
}

/* Takes the copy first, so that no process gets it while it is being closed. */
void offloaded_forget(struct region_list *list, struct keeper_region *region) {
    const int copy = atomic_exchange(&region->copy, -1);
    if (copy < 0)
        return;
    close(copy);
    atomic_fetch_sub(&list->table->copies, 1);
}

void offloaded_tell(const struct region_list *list, struct keeper_region *region) {
    const bool said = region->record.status.state == GPS_STATE_OFFLOADED;
    const bool is = offloaded_is(region);
    if (said != is && region->published && !region_list_retired(region))
        (void)gps_region_set_status(list->store, &region->record,
                                    is ? GPS_STATE_OFFLOADED : GPS_STATE_READY, 0);
}

/* --- off the GPU --- */

static bool offloaded_file_is_right(const struct keeper_region *region, int bytes) {
    struct stat file;
    return fstat(bytes, &file) == 0 && file.st_size == (off_t)region->record.extent &&
           (fcntl(bytes, F_GET_SEALS) & SEALS) == SEALS;
}

static int take_copy(struct region_list *list, struct keeper_region *region, int *bytes) {
    if (region->copy >= 0)
        return 0;
    if (*bytes < 0)
        return -ENODATA;
    if (!offloaded_file_is_right(region, *bytes))
        return -EINVAL;
    if (region_list_count(list) + list->table->copies >= list->max)
        return -EMFILE;
    offloaded_take(list, region, *bytes);
    *bytes = -1;
    return 0;
}

/* A retired block stays on the GPU: its record says that it is closing. */
int offloaded_begin(struct region_list *list, struct keeper_region *region, int *bytes) {
    if (!region || !region_list_is_block(region) || region_list_retired(region))
        return -ENOENT;
    if (region->descriptor < 0 && region->copy < 0)
        return -ENOENT;
    const int status = take_copy(list, region, bytes);
    if (status != 0)
        return status;
    const int descriptor = atomic_exchange(&region->descriptor, -1);
    if (descriptor >= 0)
        close(descriptor);
    region->reload_until = 0;
    offloaded_tell(list, region);
    return 0;
}

/* --- and back --- */

int offloaded_give(struct region_list *list, struct keeper_region *region,
                   const struct gps_owner *sender, uint64_t now, int *bytes) {
    if (!region || (region->descriptor < 0 && region->copy < 0))
        return -ENOENT;
    if (!offloaded_is(region))
        return -ENODATA;
    if (now < region->reload_until && !gps_owner_equal(sender, &region->reloader) &&
        gps_lease_probe(list->store, &region->reloader) == GPS_ALIVE)
        return -EAGAIN;
    region->reloader = *sender;
    region->reload_until = now + GPS_KEEPER_TIMEOUT;
    *bytes = region->copy;
    return 0;
}

/* --- what is kept --- */

static uint64_t kept(const struct region_list *list) {
    uint64_t sum = 0;
    for (const struct keeper_region *region = list->first; region; region = region->hh.next)
        sum += region->copy >= 0 && region->descriptor >= 0 ? region->record.extent : 0;
    return sum;
}

static uint64_t offloaded_limit(const struct region_list *list, uint64_t bytes) {
    uint64_t left;
    if (list->keep != UINT64_MAX)
        return list->keep;
    return gps_main_memory_left(0, &left) ? (left + bytes) / SHARE_OF_LEFT : 0;
}

void offloaded_trim(struct region_list *list, uint64_t most) {
    uint64_t bytes = list->table->copies ? kept(list) : 0;
    const uint64_t may = bytes ? offloaded_limit(list, bytes) : 0;
    most = may < most ? may : most;
    for (struct keeper_region *region = list->first; region && bytes > most;
         region = region->hh.next)
        if (region->copy >= 0 && region->descriptor >= 0) {
            bytes -= region->record.extent;
            offloaded_forget(list, region);
        }
}
