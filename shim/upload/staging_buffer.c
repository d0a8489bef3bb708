/* staging_buffer.c - see staging_buffer.h. */
#include "staging_buffer.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "process/driver_ops.h"
#include "readback.h"

static struct {
    _Atomic bool taken;
    _Atomic(uint8_t *) memory; /* set by the thread that has taken it */
} state;

static uint8_t *map(void) {
    void *memory = mmap(NULL, GPS_READBACK_STAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, GPS_READBACK_STAGE, MADV_DONTFORK); /* or a fork would copy what is pinned */
    return memory;
}

/* The driver forgets it with the context in which it was pinned, so it is asked each time. */
uint8_t *gps_staging_take(void) {
    if (atomic_exchange(&state.taken, true))
        return map();
    uint8_t *stage = atomic_load(&state.memory);
    if (!stage) {
        stage = map();
        atomic_store(&state.memory, stage);
    }
    if (!stage)
        atomic_store(&state.taken, false);
    else if (gps_ops->kind((uintptr_t)stage) != GPS_MEMORY_HOST)
        gps_ops->pin(stage, GPS_READBACK_STAGE);
    return stage;
}

void gps_staging_put(uint8_t *stage) {
    if (stage == atomic_load(&state.memory))
        atomic_store(&state.taken, false);
    else
        munmap(stage, GPS_READBACK_STAGE);
}

void gps_staging_reset(void) {
    memset((void *)&state, 0, sizeof(state));
}
