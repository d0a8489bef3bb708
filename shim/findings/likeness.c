/* likeness.c - see likeness.h. */
#include "likeness.h"

#include "directory/region.h"

static bool compare(void *arg, const struct gps_region_record *record, int status,
                    const char *why) {
    struct gps_likeness *like = arg;
    unsigned first = 0, last = 0;
    (void)why;
    if (status != 0 || record->backing == GPS_BACKING_PLACE) /* that is no handle */
        return --like->left;
    while (first < GPS_HANDLE_BYTES && record->handle[first] == like->handle[first])
        first++;
    while (last < GPS_HANDLE_BYTES &&
           record->handle[GPS_HANDLE_BYTES - 1 - last] == like->handle[GPS_HANDLE_BYTES - 1 - last])
        last++;
    if (first > like->first) {
        like->first = first;
        like->begins = *gps_record_creator(record);
    }
    if (last > like->last) {
        like->last = last;
        like->ends = *gps_record_creator(record);
    }
    return --like->left;
}

struct gps_likeness gps_likeness_of(const struct gps_store *store, const uint8_t *handle,
                                    unsigned records) {
    struct gps_likeness like = {.handle = handle, .left = records};
    gps_region_each(store, compare, &like);
    return like;
}

bool gps_handle_is_zero_from(const uint8_t *handle, unsigned from) {
    while (from < GPS_HANDLE_BYTES && !handle[from])
        from++;
    return from == GPS_HANDLE_BYTES;
}
