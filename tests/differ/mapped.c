/*
 * mapped.c - memory that the program makes by cuMemCreate: made, mapped, given access, unmapped and
 * released, rightly and wrongly, and copied into over several mappings.
 *
 * A reservation has PLACES of 2 MiB. Who has work on it on a stream waits for that before the next
 * step of this kind, so each result follows from the steps alone.
 */

#include "program.h"

enum { UNIT = 2 * MIB, PLACES = 10, HANDLES = 5, MOST = 3 /* units of a handle's memory */ };

/* The program's, which a forked replica has for itself. */
static struct {
    CUdeviceptr at;
    struct {
        CUmemGenericAllocationHandle handle;
        unsigned units; /* 0: there is none */
        unsigned references;
    } handles[HANDLES];
    unsigned char starts[PLACES]; /* units of the mapping that begins there; 0: none */
    int stream;                   /* with work on it; -1: none has */
} mapped = {.stream = -1};

struct act {
    struct replica *replica;
    struct numbers *numbers;
};

static unsigned below(struct act *act, unsigned end) {
    return (unsigned)number_below(act->numbers, end);
}

/* All codes count, not only the first. */
static CUresult note(struct act *act, CUresult code) {
    device_note(act->replica, (int)code);
    act->replica->hash = act->replica->hash * 31 + (unsigned)code;
    return code;
}

/* A card may still copy for cuMemcpyDtoD, and from pageable memory, when the call has returned:
 * memory that is unmapped or made read-only then ends the context with 719. */
static void finish(struct act *act) {
    if (mapped.stream >= 0)
        note(act, cuStreamSynchronize(act->replica->streams[mapped.stream]));
    mapped.stream = -1;
    note(act, cuStreamSynchronize(NULL));
}

static CUdeviceptr place(unsigned unit) {
    return mapped.at + (CUdeviceptr)unit * UNIT;
}

/* --- ranges: mappings side by side, or any */

struct range {
    unsigned from, units;
};

static struct range whole_mappings(struct act *act) {
    const unsigned first = below(act, PLACES);
    for (unsigned i = 0; i < PLACES; i++) {
        struct range range = {(first + i) % PLACES, 0};
        unsigned end = range.from;
        while (end < PLACES && mapped.starts[end] && (end == range.from || below(act, 3)))
            end += mapped.starts[end];
        range.units = end - range.from;
        if (range.units)
            return range;
    }
    return (struct range){0, 1};
}

static struct range some_range(struct act *act) {
    struct range range = {below(act, PLACES), 1};
    if (below(act, 6))
        return whole_mappings(act);
    range.units = 1 + below(act, PLACES - range.from);
    return range;
}

static CUresult give_access(struct range range, CUmemAccess_flags flags) {
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                    .flags = flags};
    return cuMemSetAccess(place(range.from), (size_t)range.units * UNIT, &access, 1);
}

/* --- what is done */

static unsigned some_handle(struct act *act) {
    return below(act, HANDLES);
}

static bool is_free(unsigned from, unsigned units) {
    unsigned end = 0;
    for (unsigned i = 0; i < from; i++)
        if (mapped.starts[i])
            end = i + mapped.starts[i];
    if (end > from || from + units > PLACES)
        return false;
    for (unsigned i = from; i < from + units; i++)
        if (mapped.starts[i])
            return false;
    return true;
}

/* A place that is free, if there is one, or any within the reservation: what lies behind it on a
 * card is known to nobody. */
static unsigned some_place(struct act *act, unsigned units) {
    const unsigned first = below(act, PLACES + 1 - units);
    for (unsigned i = 0; below(act, 8) && i < PLACES; i++)
        if (is_free((first + i) % PLACES, units))
            return (first + i) % PLACES;
    return first;
}

static bool map(struct act *act, unsigned handle) {
    const unsigned units =
        mapped.handles[handle].units - (below(act, 12) || !mapped.handles[handle].units ? 0 : 1);
    const unsigned at = some_place(act, units);
    replica_say(act->replica, " map %u at %u units %u", handle, at, units);
    const bool done =
        !note(act, cuMemMap(place(at), (size_t)units * UNIT, 0, mapped.handles[handle].handle, 0));
    if (!done)
        return false;
    mapped.starts[at] = (unsigned char)units;
    if (below(act, 8))
        note(act, give_access((struct range){at, units}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    return true;
}

static void upload(struct act *act, struct range range) {
    const size_t size = (size_t)range.units * UNIT;
    const size_t from = below(act, 3) ? 0 : below(act, UNIT), left = size - from;
    const size_t count = below(act, 3) ? left : 1 + number_below(act->numbers, left);
    uint64_t seed = 1 + below(act, 4) + act->replica->seed % 97;
    if (!below(act, 6))
        seed = seed * 8 + 1000 + act->replica->number;
    unsigned char *const bytes = malloc(count);
    if (!bytes)
        abort();
    replica_say(act->replica, " upload at %u +%zu %zu seed %lu", range.from, from, count,
                (unsigned long)seed);
    numbers_fill(bytes, count, seed);
    note(act, cuMemcpyHtoD(place(range.from) + from, bytes, count));
    free(bytes);
}

static void do_make(struct act *act) {
    const unsigned handle = some_handle(act);
    const unsigned units = 1 + below(act, MOST);
    const CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                        .requestedHandleTypes =
                                            below(act, 3) ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
                                                          : CU_MEM_HANDLE_TYPE_NONE,
                                        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    if (mapped.handles[handle].units)
        return;
    replica_say(act->replica, "make %u", handle);
    if (note(act, cuMemCreate(&mapped.handles[handle].handle, (size_t)units * UNIT, &wanted, 0)))
        return;
    mapped.handles[handle].units = units;
    mapped.handles[handle].references = 1;
    for (unsigned i = 0; i < PLACES; i++) {
        if (!is_free(i, units))
            continue;
        const struct range range = {i, units};
        replica_say(act->replica, " at %u units %u", i, units);
        note(act, cuMemMap(place(i), (size_t)units * UNIT, 0, mapped.handles[handle].handle, 0));
        mapped.starts[i] = (unsigned char)units;
        note(act, give_access(range, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
        note(act, cuMemsetD8(place(i), 0, (size_t)units * UNIT)); /* what comes is not known */
        upload(act, range);
        return;
    }
}

static void do_map(struct act *act) {
    const unsigned handle = some_handle(act);
    replica_say(act->replica, "again");
    map(act, handle);
}

static void do_unmap(struct act *act) {
    const struct range range = some_range(act);
    replica_say(act->replica, "unmap %u units %u", range.from, range.units);
    if (!note(act, cuMemUnmap(place(range.from), (size_t)range.units * UNIT)))
        memset(&mapped.starts[range.from], 0, range.units);
}

/* A number that is the program's no more could be given again. */
static void release(struct act *act, unsigned handle) {
    if (!note(act, cuMemRelease(mapped.handles[handle].handle)) &&
        --mapped.handles[handle].references == 0) {
        mapped.handles[handle].handle = 0;
        mapped.handles[handle].units = 0;
    }
}

static void do_release(struct act *act) {
    const unsigned handle = some_handle(act);
    replica_say(act->replica, "release %u", handle);
    release(act, handle);
}

static void do_retain(struct act *act) {
    CUmemGenericAllocationHandle handle = 0;
    const unsigned at = below(act, PLACES);
    unsigned which = 0;
    replica_say(act->replica, "retain %u", at);
    if (note(act, cuMemRetainAllocationHandle(&handle, (void *)(place(at) + below(act, UNIT)))))
        return;
    while (which < HANDLES && mapped.handles[which].handle != handle)
        which++;
    act->replica->hash += which;
    if (which == HANDLES)
        note(act, cuMemRelease(handle));
    else
        mapped.handles[which].references++;
}

/* It is imported in this process, and lies at two places for a moment. */
static void do_export(struct act *act) {
    const unsigned handle = some_handle(act), units = mapped.handles[handle].units;
    CUmemGenericAllocationHandle other;
    int descriptor = -1;
    replica_say(act->replica, "export %u", handle);
    if (note(act, cuMemExportToShareableHandle(&descriptor, mapped.handles[handle].handle,
                                               CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)))
        return;
    if (!note(act, cuMemImportFromShareableHandle(&other, (void *)(intptr_t)descriptor,
                                                  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))) {
        const unsigned at = some_place(act, units);
        if (!note(act, cuMemMap(place(at), (size_t)units * UNIT, 0, other, 0))) {
            note(act, give_access((struct range){at, units}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
            upload(act, (struct range){at, units});
            finish(act);
            note(act, cuMemUnmap(place(at), (size_t)units * UNIT));
        }
        note(act, cuMemRelease(other));
    }
    close(descriptor);
}

/* Over runs, as PyTorch gives it, and mostly what is there already. */
static void do_access(struct act *act) {
    static const CUmemAccess_flags others[] = {CU_MEM_ACCESS_FLAGS_PROT_READ,
                                               CU_MEM_ACCESS_FLAGS_PROT_NONE};
    const struct range range = some_range(act);
    const CUmemAccess_flags flags =
        below(act, 10) ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : others[below(act, 2)];
    replica_say(act->replica, "access %u units %u flags %d", range.from, range.units, (int)flags);
    note(act, give_access(range, flags));
}

static void do_upload(struct act *act) {
    upload(act, some_range(act));
}

static void do_fill(struct act *act) {
    const struct range range = some_range(act);
    const size_t from = below(act, UNIT), most = (size_t)range.units * UNIT - from;
    const size_t count = 1 + number_below(act->numbers, most);
    const int stream = (int)below(act, STREAMS);
    replica_say(act->replica, "fill at %u +%zu %zu stream %d", range.from, from, count, stream);
    mapped.stream = stream;
    note(act, cuMemsetD8Async(place(range.from) + from, (unsigned char)below(act, 3), count,
                              act->replica->streams[stream]));
}

/* From one place to another. */
static void do_copy(struct act *act) {
    const struct range from = some_range(act), to = some_range(act);
    const size_t units = from.units < to.units ? from.units : to.units;
    if (from.from < to.from + to.units && to.from < from.from + from.units)
        return;
    replica_say(act->replica, "copy from %u to %u units %zu", from.from, to.from, units);
    note(act, cuMemcpyDtoD(place(to.from), place(from.from), units * UNIT));
}

static void do_read(struct act *act) {
    const struct range range = some_range(act);
    struct buffer buffer = {
        .at = place(range.from), .size = (size_t)range.units * UNIT, .stream = -1};
    replica_say(act->replica, "read mapped %u units %u", range.from, range.units);
    device_read(act->replica, &buffer, 0, buffer.size);
}

static void do_ask(struct act *act) {
    const unsigned at = below(act, PLACES), handle = some_handle(act);
    const CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    const CUdeviceptr address = place(at) + below(act, UNIT);
    unsigned long long flags = 0, types = 0, access = 0, answers[3] = {0};
    CUmemAllocationProp found = {.type = CU_MEM_ALLOCATION_TYPE_INVALID};
    CUdeviceptr base = 0;
    size_t size = 0;
    replica_say(act->replica, "ask about %u and %u", at, handle);
    note(act, cuMemGetAccess(&flags, &here, address));
    if (!note(act, cuMemGetAddressRange(&base, &size, address)))
        answers[0] = address - base;
    note(act, cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, address));
    note(act, cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, address));
    note(act, cuPointerGetAttribute(&answers[1], CU_POINTER_ATTRIBUTE_RANGE_SIZE, address));
    note(act, cuMemGetAllocationPropertiesFromHandle(&found, mapped.handles[handle].handle));
    act->replica->hash = act->replica->hash * 31 + answers[0] + answers[1] * 3 + flags * 5 +
                         size * 7 + types * 11 + access * 13 +
                         (unsigned)found.requestedHandleTypes * 17;
}

/* As vLLM sleeps and wakes: all is unmapped and released, made again and filled. */
static void do_sleep(struct act *act) {
    replica_say(act->replica, "sleep");
    for (unsigned i = 0; i < PLACES; i++)
        if (mapped.starts[i]) {
            note(act, cuMemUnmap(place(i), (size_t)mapped.starts[i] * UNIT));
            mapped.starts[i] = 0;
        }
    for (unsigned i = 0; i < HANDLES; i++)
        while (mapped.handles[i].units)
            release(act, i);
}

static const struct {
    void (*act)(struct act *act);
    unsigned weight;
} table[] = {
    {do_make, 12},  {do_map, 3},    {do_unmap, 3},  {do_release, 4}, {do_retain, 2},
    {do_export, 2}, {do_access, 6}, {do_upload, 8}, {do_fill, 3},    {do_copy, 3},
    {do_read, 6},   {do_ask, 5},    {do_sleep, 1},
};

static void begin(struct act *act) {
    if (!mapped.at)
        note(act, cuMemAddressReserve(&mapped.at, (size_t)PLACES * UNIT, 0, 0, 0));
    finish(act);
}

void mapped_step(struct replica *replica, struct numbers *numbers) {
    struct act act = {replica, numbers};
    unsigned sum = 0;
    size_t at = 0;
    begin(&act);
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
        sum += table[i].weight;
    unsigned drawn = below(&act, sum);
    while (drawn >= table[at].weight)
        drawn -= table[at++].weight;
    table[at].act(&act);
}

void mapped_read(struct replica *replica) {
    struct act act = {replica, NULL};
    begin(&act);
    for (unsigned i = 0; i < PLACES; i++) {
        struct buffer buffer = {
            .at = place(i), .size = (size_t)mapped.starts[i] * UNIT, .stream = -1};
        if (mapped.starts[i])
            device_read(replica, &buffer, 0, buffer.size);
    }
}

void mapped_end(struct replica *replica) {
    struct act act = {replica, NULL};
    begin(&act);
    do_sleep(&act);
}
