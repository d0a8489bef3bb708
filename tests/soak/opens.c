/* opens.c - what this process opened and closed, and an open that is refused; see worker.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "worker.h"

enum { PAST = 128 };

/* The newest ones of each thread. */
static struct history {
    struct past {
        uint64_t when;
        int code;
        bool closed;
        void *pointer;
        cudaIpcMemHandle_t handle;
    } past[PAST];
    unsigned count;
} histories[THREADS];

static void note(struct past entry) {
    struct history *history = &histories[self->number];
    entry.when = milliseconds();
    history->past[history->count++ % PAST] = entry;
}

int open_memory(void **pointer, const cudaIpcMemHandle_t *handle) {
    const int code = CALL(cudaIpcOpenMemHandle(pointer, *handle, cudaIpcMemLazyEnablePeerAccess));
    if (code != ALREADY_MAPPED)
        note((struct past){.code = code, .pointer = code ? NULL : *pointer, .handle = *handle});
    return code;
}

/* The handle is that of the thread's newest open at this address. */
int close_memory(void *pointer) {
    const struct history *history = &histories[self->number];
    struct past entry = {.closed = true, .pointer = pointer};
    for (unsigned i = 0; i < PAST && i < history->count; i++) {
        const struct past *opened = &history->past[(history->count - 1 - i) % PAST];
        if (opened->pointer == pointer && !opened->closed) {
            entry.handle = opened->handle;
            break;
        }
    }
    entry.code = CALL(cudaIpcCloseMemHandle(pointer));
    note(entry);
    return entry.code;
}

/* --- what is said of a refused one --- */

/* Exporter, size, pages of the block, offset in it; and the rest, which tells blocks apart. */
static void print_handle(FILE *file, const cudaIpcMemHandle_t *handle) {
    enum { REST = 36 };
    static const unsigned at[] = {8, 16, 24, 32};
    for (unsigned i = 0; i < sizeof(at) / sizeof(*at); i++) {
        uint32_t word;
        memcpy(&word, handle->reserved + at[i], sizeof(word));
        fprintf(file, "%s%u", i ? "/" : " ", word);
    }
    fprintf(file, "/");
    for (unsigned i = REST; i < sizeof(handle->reserved); i++)
        fprintf(file, "%02x", (unsigned char)handle->reserved[i]);
    fprintf(file, "\n");
}

/* What a thread did with memory of the same exporter. */
static void print_past(FILE *file, unsigned thread, const cudaIpcMemHandle_t *refused) {
    enum { EXPORTER = 8 + sizeof(uint32_t) };
    const struct history *history = &histories[thread];
    for (unsigned i = 0; i < PAST && i < history->count; i++) {
        const struct past *entry = &history->past[(history->count - 1 - i) % PAST];
        if (memcmp(entry->handle.reserved, refused->reserved, EXPORTER) != 0)
            continue;
        fprintf(file, "  %lu ms ago: %s %d %p", (unsigned long)(milliseconds() - entry->when),
                entry->closed ? "close" : "open", entry->code, entry->pointer);
        print_handle(file, &entry->handle);
    }
}

static void print_threads(FILE *file, const cudaIpcMemHandle_t *refused) {
    for (unsigned i = 0; i < world.threads; i++) {
        const unsigned long since = atomic_load(&world.selves[i].status->since);
        fprintf(file, "thread %u: %s, for %lu ms\n", i, since ? world.selves[i].status->call : "-",
                since ? (unsigned long)milliseconds() - since : 0);
        print_past(file, i, refused);
    }
}

/* What the kernel and the published directory say. */
static void print_others(const char *path) {
    char command[2 * PATH + 256];
    snprintf(command, sizeof(command),
             "exec >>%s 2>&1; cd /proc/%d/task; for t in *; do echo $t $(cat $t/comm) "
             "$(cat $t/syscall $t/wchan); done; unset LD_PRELOAD; \"$GPUSHARE_KEEPER\" show %d",
             path, (int)getpid(), (int)getpid());
    if (system(command) < 0)
        wrong("no shell");
}

void explain_refusal(const struct slot *slot, bool lives) {
    char path[PATH + 32];
    snprintf(path, sizeof(path), "%s/mapped.%d", world.place, (int)getpid());
    FILE *file = fopen(path, "a");
    if (!file)
        return;
    fprintf(file, "thread %u: refused, kind %d, %s, its exporter %s:", self->number,
            slot->advert.kind, access(slot->path, F_OK) == 0 ? "advertised" : "not advertised",
            lives ? "lives" : "is dead");
    print_handle(file, &slot->advert.handle);
    print_threads(file, &slot->advert.handle);
    fclose(file);
    print_others(path);
}
