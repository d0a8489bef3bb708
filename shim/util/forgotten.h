/*
 * forgotten.h - variables that a forked child finds zero again.
 *
 * The parent's threads are not in the child, but their locks may be taken there. So a lock is set
 * to zero, not released, and memory is lost, not freed. lifecycle/fork.c resets more.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct gps_forgotten {
    void *object;
    size_t size;
};

/* The linker puts all these structs side by side, and names both ends. */
#define GPS_FORGOTTEN(object)                                                                      \
    static struct gps_forgotten forgotten_##object                                                 \
        __attribute__((used, section("gps_forgotten"))) = {(void *)&(object), sizeof(object)}
extern struct gps_forgotten __start_gps_forgotten[] __attribute__((visibility("hidden")));
extern struct gps_forgotten __stop_gps_forgotten[] __attribute__((visibility("hidden")));

static inline void gps_forget_all(void) {
    const uintptr_t size = (uintptr_t)__stop_gps_forgotten - (uintptr_t)__start_gps_forgotten;
    for (size_t i = 0; i < size / sizeof(struct gps_forgotten); i++)
        memset(__start_gps_forgotten[i].object, 0, __start_gps_forgotten[i].size);
}
