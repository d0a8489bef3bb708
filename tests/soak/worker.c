/*
 * worker.c - one of the processes of soak.py: allocates, exports, opens, closes and frees at random
 * until SIGTERM, then closes and frees what it has. It does only what is legal, but for freeing
 * what others have open, which is what gpushare is for.
 *
 * usage: worker SEED DIRECTORY JOURNAL [unprotected]
 *
 * What it exports stands in DIRECTORY as one file, removed before the memory is freed. So memory
 * was alive when it was opened if its file is there after the open, and its bytes must then be the
 * exporter's until it is closed, whatever becomes of the exporter. What went otherwise is a line in
 * JOURNAL: "refused", "raced" (opened, but its file is gone), and "WRONG", which is a bug.
 *
 * Unprotected, as mode = audit leaves a program, only whole blocks are exported: the place of a
 * small allocation that is freed while open is given out again, with the same handle.
 */
#include <cuda_runtime_api.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SLOTS = 8, EDGE = 32, PATH = 512, BLOCK = 2 << 20 };

struct advert { /* what a file in the directory holds */
    cudaIpcMemHandle_t handle;
    size_t size;
    unsigned char byte;
};

struct slot {
    void *pointer;
    struct advert advert;
    char path[PATH]; /* own: empty until exported */
};

static struct slot own[SLOTS], opened[SLOTS];
static const char *directory;
static int journal = -1;
static unsigned seed;
static bool unprotected;
static volatile sig_atomic_t over;

static unsigned dice(unsigned sides) {
    return (unsigned)rand_r(&seed) / 7 % sides;
}

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
    char line[PATH + 128];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof(line) - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof(line) - 2)
        length = (int)sizeof(line) - 2;
    line[length] = '\n';
    if (write(journal, line, (size_t)length + 1) < 0)
        _exit(4);
}

static void expect(cudaError_t got, const char *call) {
    if (got != cudaSuccess)
        note("WRONG %s: %s", call, cudaGetErrorName(got));
    (void)cudaGetLastError();
}

/* Both ends of a buffer are the exporter's byte. */
static void look(const struct slot *slot, const char *when) {
    unsigned char bytes[2 * EDGE];
    const char *end = (const char *)slot->pointer + slot->advert.size - EDGE;
    expect(cudaMemcpy(bytes, slot->pointer, EDGE, cudaMemcpyDeviceToHost), "cudaMemcpy");
    expect(cudaMemcpy(bytes + EDGE, end, EDGE, cudaMemcpyDeviceToHost), "cudaMemcpy");
    size_t i = 0;
    while (i < sizeof(bytes) && bytes[i] == slot->advert.byte)
        i++;
    if (i == sizeof(bytes))
        return;
    note("WRONG byte %02x instead of %02x %s: %s", bytes[i], slot->advert.byte, when, slot->path);
}

static void allocate(struct slot *slot) {
    static const size_t sizes[] = {4096, 65536, 2 << 20, 4 << 20, 16 << 20};
    *slot =
        (struct slot){.advert = {.size = sizes[dice(5)], .byte = (unsigned char)(1 + dice(255))}};
    if (cudaMalloc(&slot->pointer, slot->advert.size) != cudaSuccess) {
        note("WRONG cudaMalloc of %zu", slot->advert.size);
        slot->pointer = NULL;
        return;
    }
    expect(cudaMemset(slot->pointer, slot->advert.byte, slot->advert.size), "cudaMemset");
    expect(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

static void export(struct slot *slot) {
    static unsigned number;
    char temporary[PATH];
    expect(cudaIpcGetMemHandle(&slot->advert.handle, slot->pointer), "cudaIpcGetMemHandle");
    snprintf(slot->path, sizeof(slot->path), "%s/%d.%u", directory, (int)getpid(), number++);
    snprintf(temporary, sizeof(temporary), "%s/.%d", directory, (int)getpid());
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    unsigned char bytes[sizeof(struct advert)];
    memcpy(bytes, &slot->advert, sizeof(bytes));
    if (fd < 0 || write(fd, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes) ||
        rename(temporary, slot->path))
        _exit(4);
    close(fd);
}

static void release(struct slot *slot) {
    look(slot, "in its owner");
    if (*slot->path)
        unlink(slot->path);
    expect(cudaFree(slot->pointer), "cudaFree");
    slot->pointer = NULL;
}

static bool mine(const char *name) {
    char start[32];
    snprintf(start, sizeof(start), "%d.", (int)getpid());
    return strncmp(name, start, strlen(start)) == 0;
}

static bool is_open(const char *path) {
    for (size_t i = 0; i < SLOTS; i++)
        if (opened[i].pointer && strcmp(opened[i].path, path) == 0)
            return true;
    return false;
}

/* The path of something that another process exports and that is not open here; false: nothing. */
static bool choose(char path[PATH]) {
    DIR *all = opendir(directory);
    unsigned seen = 0;
    if (!all)
        return false;
    for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
        char candidate[PATH];
        snprintf(candidate, sizeof(candidate), "%s/%s", directory, entry->d_name);
        if (*entry->d_name != '.' && !mine(entry->d_name) && !is_open(candidate) && !dice(++seen))
            memcpy(path, candidate, PATH);
    }
    closedir(all);
    return seen != 0;
}

static bool read_advert(struct slot *slot) {
    const int fd = open(slot->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t got = read(fd, &slot->advert, sizeof(slot->advert));
    close(fd);
    return got == (ssize_t)sizeof(slot->advert);
}

static void open_one(struct slot *slot) {
    *slot = (struct slot){0};
    if (!choose(slot->path) || !read_advert(slot))
        return;
    const cudaError_t code =
        cudaIpcOpenMemHandle(&slot->pointer, slot->advert.handle, cudaIpcMemLazyEnablePeerAccess);
    (void)cudaGetLastError();
    if (code != cudaSuccess) {
        note("refused %d %s", (int)code, slot->path);
        slot->pointer = NULL;
    } else if (access(slot->path, F_OK) != 0) {
        note("raced %s", slot->path);
        expect(cudaIpcCloseMemHandle(slot->pointer), "cudaIpcCloseMemHandle");
        slot->pointer = NULL;
    } else {
        look(slot, "when opened");
    }
}

static void close_one(struct slot *slot) {
    look(slot, "before its close");
    expect(cudaIpcCloseMemHandle(slot->pointer), "cudaIpcCloseMemHandle");
    slot->pointer = NULL;
}

static void step(void) {
    struct slot *const one = &own[dice(SLOTS)], *const other = &opened[dice(SLOTS)];
    if (dice(2)) {
        if (!other->pointer)
            open_one(other);
        else
            close_one(other);
    } else if (!one->pointer) {
        allocate(one);
    } else if (!*one->path && dice(4) && (!unprotected || one->advert.size >= BLOCK)) {
        export(one);
    } else {
        release(one);
    }
}

static void stop(int number) {
    (void)number;
    over = 1;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    unprotected = argc > 4;
    seed = (unsigned)atoi(argv[1]);
    directory = argv[2];
    journal = open(argv[3], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    signal(SIGTERM, stop);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    unsigned long long steps = 0;
    for (; !over; steps++)
        step();
    for (size_t i = 0; i < SLOTS; i++) {
        if (opened[i].pointer)
            close_one(&opened[i]);
        if (own[i].pointer)
            release(&own[i]);
    }
    note("steps %llu", steps);
    return 0;
}
