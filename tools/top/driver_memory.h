/*
 * driver_memory.h - what the driver says of processes, as nvidia-smi prints it.
 *
 * libnvidia-ml is asked, where it is installed. The driver counts shared memory as its exporter's
 * alone. Its pids are those of the machine, so only processes of our pid
 * namespace can be looked up, and in a container mostly none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct driver_memory {
    const struct driver_calls *calls; /* NULL: there is no libnvidia-ml, or it does not work */
    struct driver_process {
        uint32_t pid;
        uint64_t bytes;
    } * processes;
    size_t count;
};

void driver_memory_begin(struct driver_memory *memory);
/* Asks the driver again. */
void driver_memory_read(struct driver_memory *memory);
/* The sum over the GPUs. False: the driver says nothing of this process. */
bool driver_memory_of(const struct driver_memory *memory, uint32_t pid, uint64_t *bytes);
void driver_memory_end(struct driver_memory *memory);
