/*
 * calls.c - what CUDA's memory and IPC calls cost in this process. One line a row: name,
 * nanoseconds.
 *
 * usage: calls                 the rows
 *        calls list            their names
 *        calls pick ROW...     these rows alone; whether what was opened was a gpushare token
 *        calls only ROW COUNT  makes the calls of one row, for counting instructions
 *        calls sweep           open and close against the region's size
 *        calls live MOST SECONDS
 *        calls exporter        the other process of the rows that open
 */
#include "measure.h"

static struct exporter exporter;
static cudaIpcMemHandle_t handle, first; /* the other process's, our own newest */
static void *mine, *held, *pointer;
static double first_export; /* of this process */
static char host[4096];

static void allocate(void) {
    check(cudaMalloc(&pointer, size), "cudaMalloc");
}

static void release(void) {
    check(cudaFree(pointer), "cudaFree");
}

static void malloc_free(void) {
    allocate();
    release();
}

static void export(void) {
    check(cudaIpcGetMemHandle(&first, pointer), "cudaIpcGetMemHandle");
}

static void allocate_and_export(void) {
    allocate();
    export();
}

static void get_again(void) {
    check(cudaIpcGetMemHandle(&first, mine), "cudaIpcGetMemHandle");
}

static void open_it(void) {
    check(cudaIpcOpenMemHandle(&pointer, handle, cudaIpcMemLazyEnablePeerAccess),
          "cudaIpcOpenMemHandle");
}

static void close_it(void) {
    check(cudaIpcCloseMemHandle(pointer), "cudaIpcCloseMemHandle");
}

static void open_close(void) {
    open_it();
    close_it();
}

/* What a program without a cache of its own does for each frame. */
static void open_copy_close(void) {
    open_it();
    check(cudaMemcpy(host, pointer, size < sizeof(host) ? size : sizeof(host),
                     cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    close_it();
}

static void memcpy_small(void) {
    check(cudaMemcpy(mine, host, sizeof(host), cudaMemcpyHostToDevice), "cudaMemcpy");
}

static void memset_small(void) {
    check(cudaMemsetAsync(mine, 0, sizeof(host), NULL), "cudaMemsetAsync");
}

static void synchronize(void) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

static void memcpy_elsewhere(void) {
    static void *other;
    if (!other)
        check(cudaMalloc(&other, sizeof(host)), "cudaMalloc");
    check(cudaMemcpy(other, host, sizeof(host), cudaMemcpyHostToDevice), "cudaMemcpy");
}

static void memset_and_wait(void) {
    memset_small();
    synchronize();
}

#define KIB ((size_t)1 << 10)
#define GIB ((size_t)1 << 30)

static const struct row local[] = {
    {.name = "malloc+free 1 KiB", .size = KIB, .call = malloc_free, .repeats = 200},
    {.name = "malloc+free 2 MiB", .size = 2 * MIB, .call = malloc_free, .repeats = 100},
    {.name = "malloc+free 64 MiB", .size = 64 * MIB, .call = malloc_free, .repeats = 20},
    {.name = "malloc+free 1 GiB", .size = GIB, .call = malloc_free, .repeats = 4},
    {.name = "malloc+free, 16 deep", .size = KIB, .call = paths_known, .repeats = 200},
    {.name = "malloc+free, new path", .size = KIB, .call = paths_new, .repeats = 200},
    {"first export", 2 * MIB, allocate, export, release, 50, NULL},
    {"free of an export", 2 * MIB, allocate_and_export, release, NULL, 50, NULL},
    {.name = "get handle again", .call = get_again, .repeats = 10000},
    {.name = "cuMemCreate+release",
     .call = mappings_create_release,
     .repeats = 100,
     .available = mappings_available},
    {.name = "map+access+unmap",
     .call = mappings_map_unmap,
     .repeats = 100,
     .available = mappings_available},
    {.name = "import+release",
     .call = mappings_import_release,
     .repeats = 100,
     .available = mappings_shared_available},
    {.name = "pool alloc+free",
     .call = mappings_pool,
     .repeats = 100,
     .available = mappings_shared_available},
    {.name = "memcpy 4 KiB", .call = memcpy_small, .repeats = 200},
    {.name = "memset 4 KiB", .call = memset_small, .repeats = 200},
    {.name = "device synchronize", .call = synchronize, .repeats = 1000},
    {.name = "kernel launch", .call = launch_empty, .repeats = 1000, .available = launch_available},
    {.name = "kernel launch, 4 streams",
     .call = launch_in_turn,
     .repeats = 1000,
     .available = launch_available},
};
static const struct row opening[] = {
    {.name = "open+close 64 MiB", .size = 64 * MIB, .call = open_close, .repeats = 50},
    {.name = "open+close 4 GiB", .size = 4 * GIB, .call = open_close, .repeats = 20},
    {.name = "open+copy+close 1 KiB", .size = KIB, .call = open_copy_close, .repeats = 50},
    {.name = "open+copy+close 2 MiB", .size = 2 * MIB, .call = open_copy_close, .repeats = 50},
    {.name = "open+copy+close 64 MiB", .size = 64 * MIB, .call = open_copy_close, .repeats = 50},
    {.name = "open+copy+close 1 GiB", .size = GIB, .call = open_copy_close, .repeats = 20},
};
/* For instructions.py, in a program whose 2 MiB are a buffer with frames. */
static const struct row framed[] = {
    {.name = "memcpy 4 KiB elsewhere", .call = memcpy_elsewhere, .repeats = 200},
    {.name = "memset 4 KiB and wait", .call = memset_and_wait, .repeats = 200},
    {.name = "kernel launch, 8 words", .call = launch_words_8, .available = launch_available},
    {.name = "kernel launch, 64 words", .call = launch_words_64, .available = launch_available},
    {.name = "kernel launch, 512 words", .call = launch_words_512, .available = launch_available},
};
static const struct row again = {
    .name = "open+close, open already", .size = 64 * MIB, .call = open_close, .repeats = 2000};

enum {
    LOCAL = sizeof(local) / sizeof(*local),
    OPENING = sizeof(opening) / sizeof(*opening),
    FRAMED = sizeof(framed) / sizeof(*framed)
};

static void hold(void) {
    handle = exporter_offer(&exporter, again.size);
    check(cudaIpcOpenMemHandle(&held, handle, cudaIpcMemLazyEnablePeerAccess),
          "cudaIpcOpenMemHandle");
}

static void print_opening(size_t i) {
    handle = exporter_offer(&exporter, opening[i].size);
    row_print(&opening[i]);
}

static void rows(void) {
    print_figure("first export of a process", first_export);
    for (size_t i = 0; i < LOCAL; i++)
        row_print(&local[i]);
    for (size_t i = 0; i < OPENING; i++)
        print_opening(i);
    hold();
    row_print(&again);
}

static void pick(const char *name) {
    for (size_t i = 0; i < LOCAL; i++)
        if (strcmp(name, local[i].name) == 0)
            row_print(&local[i]);
    for (size_t i = 0; i < OPENING; i++)
        if (strcmp(name, opening[i].name) == 0) {
            print_opening(i);
            printf("%s, token\t%d\n", name, memcmp(&handle, "GPSTOKEN", 8) == 0);
        }
}

static int only(const char *name, long count) {
    for (size_t i = 0; i < LOCAL; i++) {
        if (strcmp(name, local[i].name) == 0) {
            if (local[i].available && !local[i].available())
                return 1;
            return row_repeat(&local[i], count), 0;
        }
    }
    for (size_t i = 0; i < OPENING; i++) {
        if (strcmp(name, opening[i].name) == 0) {
            handle = exporter_offer(&exporter, opening[i].size);
            return row_repeat(&opening[i], count), 0;
        }
    }
    for (size_t i = 0; i < FRAMED; i++)
        if (strcmp(name, framed[i].name) == 0)
            return framed[i].available && !framed[i].available()
                       ? 1
                       : (row_repeat(&framed[i], count), 0);
    hold();
    row_repeat(&again, count);
    return strcmp(name, again.name) != 0;
}

static void list(void) {
    for (size_t i = 0; i < LOCAL; i++)
        puts(local[i].name);
    for (size_t i = 0; i < OPENING; i++)
        puts(opening[i].name);
    puts(again.name);
}

/* Up to a quarter of the card, in MiB: a line of size, open, close. */
/* The median, and the quartiles. */
static void print_quartiles(double *times, char end) {
    const double middle = median_of(times, BATCHES);
    printf("%.1f\t%.1f\t%.1f%c", middle, times[BATCHES / 4], times[BATCHES - 1 - BATCHES / 4], end);
}

static void sweep(void) {
    size_t left, total;
    check(cudaMemGetInfo(&left, &total), "cudaMemGetInfo");
    for (size_t bytes = 2 * MIB; bytes <= 16 * GIB && bytes <= left / 4; bytes *= 2) {
        double opens[BATCHES], closes[BATCHES];
        handle = exporter_offer(&exporter, bytes);
        open_close();
        for (size_t i = 0; i < BATCHES; i++) {
            const double start = now();
            open_it();
            const double middle = now();
            close_it();
            opens[i] = middle - start;
            closes[i] = now() - middle;
        }
        printf("%zu\t", bytes / MIB);
        print_quartiles(opens, '\t');
        print_quartiles(closes, '\n');
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "rows";
    if (strcmp(what, "exporter") == 0)
        return exporter_main();
    if (strcmp(what, "list") == 0)
        return list(), 0;
    if (strcmp(what, "live") == 0 && argc == 4)
        return live_main(atol(argv[2]), atof(argv[3]));
    exporter_start(&exporter);
    check(cudaMalloc(&mine, 2 * MIB), "cudaMalloc");
    first_export = now();
    check(cudaIpcGetMemHandle(&first, mine), "cudaIpcGetMemHandle");
    first_export = now() - first_export;
    if (strcmp(what, "only") == 0 && argc == 4)
        return only(argv[2], atol(argv[3]));
    if (strcmp(what, "sweep") == 0)
        return sweep(), 0;
    if (strcmp(what, "pick") != 0)
        return rows(), 0;
    for (int i = 2; i < argc; i++)
        pick(argv[i]);
    return 0;
}
