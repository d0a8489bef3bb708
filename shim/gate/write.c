#include "write.h"

#include "driver/driver_ops.h"
#include "util/forgotten.h"

bool gps_write_all;
GPS_FORGOTTEN(gps_write_all);

bool gps_write_is_upload(const struct gps_write *one) {
    if (one->kind != GPS_WRITE_ANY)
        return one->kind == GPS_WRITE_UPLOAD;
    const enum gps_memory_kind kind = gps_ops->kind((uintptr_t)one->from);
    return kind == GPS_MEMORY_HOST || kind == GPS_MEMORY_UNKNOWN;
}

void gps_write_hear_all(void) {
    __atomic_store_n(&gps_write_all, true, __ATOMIC_RELAXED);
}
