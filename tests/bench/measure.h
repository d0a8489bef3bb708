/*
 * measure.h - what the parts of calls.c share: checks and rows.
 *
 * A row is a call that is repeated in batches; what is printed is the median of the batches, in
 * nanoseconds a call. It says nothing alone: bench.py runs the program bare and preloaded in turn.
 */
#pragma once

#include "../common/system_headers.h"
#include <cuda_runtime_api.h>

#include "sample.h"

enum { BATCHES = 15, MIB = 1 << 20 };

/* Ends the program with a line on stderr when a call has failed. */
void check(cudaError_t error, const char *call);

struct row {
    const char *name;
    size_t size;             /* what the functions below work on */
    void (*before)(void);    /* not measured; may be NULL */
    void (*call)(void);      /* measured */
    void (*after)(void);     /* not measured; may be NULL */
    int repeats;             /* of a batch */
    bool (*available)(void); /* NULL: always */
};
void row_print(const struct row *row);
void row_repeat(const struct row *row, long count); /* and no clock: for counting instructions */
void print_figure(const char *name, double value);

extern size_t size; /* of the row under way */

/* exporter.c: another process that has `mib` exported, started before this one touches CUDA, and
 * what it has exported by now. */
struct exporter {
    int to, from;
};
int exporter_main(void);
void exporter_start(struct exporter *exporter);
cudaIpcMemHandle_t exporter_offer(const struct exporter *exporter, size_t bytes);

/* paths.c: cudaMalloc and cudaFree from 16 calls deep, each time by another path, or by one. */
void paths_new(void);
void paths_known(void);

/* launch.c: an empty kernel; not available without a compiler for it in the driver. */
bool launch_available(void);
void launch_empty(void);
void launch_in_turn(void); /* on four streams */
void launch_words_8(void); /* of parameters */
void launch_words_64(void);
void launch_words_512(void);

/* mappings.c: cuMemCreate and its release; map, access and unmap; import by a descriptor, and
 * release; allocate from a pool, and free. */
bool mappings_available(void);
bool mappings_shared_available(void);
void mappings_import_release(void);
void mappings_pool(void);
void mappings_create_release(void);
void mappings_map_unmap(void);

/* live.c: what calls cost with more and more allocations alive, up to `most`, or `seconds`. */
int live_main(long most, double seconds);
