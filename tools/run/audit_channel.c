#include "audit_channel.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "cli/tool.h"
#include "launch.h"
#include "log/channel.h"
#include "util/clock.h"

/* --- the memory --- */

static size_t audit_channel_size(size_t cells) {
    return sizeof(struct gps_channel) + cells * GPS_CHANNEL_CELL;
}

/* Allocates all of the memory: a missing page would be a SIGBUS in a program. Under a limit on the
 * size of files, which counts here, too, there are fewer cells. */
static bool allocate(struct audit_channel *channel) {
    for (;;) {
        if (fallocate(channel->file, 0, 0, (off_t)audit_channel_size(channel->cells)) == 0)
            return true;
        if (channel->cells == 0 || ftruncate(channel->file, 0) != 0)
            return false;
        channel->cells /= 2;
    }
}

/* Such a limit would otherwise end this process, where the hard one is in the way. */
static bool audit_channel_make_room(struct audit_channel *channel) {
    struct rlimit limit, most;
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    const bool limited = getrlimit(RLIMIT_FSIZE, &limit) == 0;
    most = limited ? (struct rlimit){limit.rlim_max, limit.rlim_max} : limit;
    if (limited)
        setrlimit(RLIMIT_FSIZE, &most);
    const bool made = channel->file >= 0 && allocate(channel);
    if (limited)
        setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, before);
    return made;
}

static struct gps_channel *audit_channel_make(struct audit_channel *channel) {
    channel->file = memfd_create(GPS_CHANNEL_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (!audit_channel_make_room(channel) ||
        fcntl(channel->file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return NULL;
    void *memory = mmap(NULL, audit_channel_size(channel->cells), PROT_READ | PROT_WRITE,
                        MAP_SHARED, channel->file, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void audit_channel_begin(struct audit_channel *channel, const char *directory, bool to_files) {
    *channel =
        (struct audit_channel){.cells = directory ? GPS_CHANNEL_CELLS : 0, .to_files = to_files};
    channel->memory = audit_channel_make(channel);
    if (!channel->memory)
        return;
    channel->memory->magic = GPS_CHANNEL_MAGIC;
    channel->memory->attended = gps_clock_monotonic();
    if (directory)
        strcpy(channel->memory->directory, directory);
    TOOL_TEMP char *path = tool_format("/proc/%d/fd/%d", getpid(), channel->file);
    launch_set(GPS_CHANNEL_VARIABLE, path);
}

void audit_channel_end(struct audit_channel *channel) {
    if (channel->memory)
        munmap(channel->memory, audit_channel_size(channel->cells));
    if (channel->file >= 0)
        close(channel->file);
    free(channel->kept);
}

/* --- lines --- */

/* A line that does not fit leaves nothing of itself, as where the disk is full. */
static bool audit_channel_append(int file, const char *line, size_t length) {
    struct stat before, after;
    if (fstat(file, &before) != 0)
        return false;
    const ssize_t wrote = write(file, line, length);
    if (wrote == (ssize_t)length)
        return true;
    if (wrote > 0 && fstat(file, &after) == 0 && after.st_size == before.st_size + wrote)
        (void)!ftruncate(file, before.st_size);
    return false;
}

/* A command can have a slash in its name. */
static bool write_line(const struct audit_channel *channel, const char *name, const char *line,
                       size_t length) {
    TOOL_TEMP char *path = tool_format("%s/%s", channel->memory->directory, name);
    char *slash = path + strlen(channel->memory->directory);
    while ((slash = strchr(slash + 1, '/')))
        *slash = '_';
    const int file = open(
        path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, 0600);
    const bool written = file >= 0 && audit_channel_append(file, line, length);
    if (file >= 0)
        close(file);
    return written;
}

static void audit_channel_keep(struct audit_channel *channel, const char *line, size_t length) {
    if (channel->kept_size + length > channel->kept_room) {
        channel->kept_room = 2 * (channel->kept_room + length);
        channel->kept = tool_resize(channel->kept, channel->kept_room, 1);
    }
    memcpy(channel->kept + channel->kept_size, line, length);
    channel->kept_size += length;
}

/* The processes that write are not trusted: a program can have written anywhere. */
static void audit_channel_take(struct audit_channel *channel, const char *bytes, size_t size) {
    const size_t before = strnlen(bytes, size) + 1;
    const char *line = bytes + before;
    const size_t length = before < size ? strnlen(line, size - before) : 0;
    if (length > 0 && !(channel->to_files && write_line(channel, bytes, line, length)))
        audit_channel_keep(channel, line, length);
}

/* Takes the whole lines in the first `taken` cells. True: the cells have nothing else. */
static bool read_cells(struct audit_channel *channel, size_t taken) {
    struct gps_channel *memory = channel->memory;
    bool all = true;
    for (size_t i = channel->begin; i < taken;) {
        const uint16_t begun = atomic_load_explicit(&memory->begun[i], memory_order_acquire);
        const size_t count = begun == 0 || begun == GPS_CHANNEL_READ ? 1 : begun;
        if (begun != 0 && begun != GPS_CHANNEL_READ && count <= taken - i) {
            audit_channel_take(channel, memory->bytes + i * GPS_CHANNEL_CELL,
                               count * GPS_CHANNEL_CELL);
            for (size_t j = 0; j < count; j++)
                memory->begun[i + j] = GPS_CHANNEL_READ;
        }
        all = all && memory->begun[i] == GPS_CHANNEL_READ;
        i += count <= taken - i ? count : 1;
        channel->begin = all ? i : channel->begin;
    }
    return all;
}

static void audit_channel_mark(struct gps_channel *memory, size_t taken, uint16_t as) {
    for (size_t i = 0; i < taken; i++)
        memory->begun[i] = as;
}

/* No process writes into cells that were all read: they can be reused, unless more were taken. */
static void reuse(struct audit_channel *channel, uint64_t taken) {
    struct gps_channel *memory = channel->memory;
    audit_channel_mark(memory, taken, 0);
    uint64_t expected = taken;
    if (atomic_compare_exchange_strong(&memory->taken, &expected, 0))
        channel->begin = 0;
    else
        audit_channel_mark(memory, taken, GPS_CHANNEL_READ);
}

static size_t limited(const struct audit_channel *channel, uint64_t taken) {
    return taken < channel->cells ? taken : channel->cells;
}

static void empty(struct audit_channel *channel, uint64_t taken, bool again) {
    void (*before)(int) = signal(SIGXFSZ, SIG_IGN);
    if (read_cells(channel, limited(channel, taken)) && again && taken > 0)
        reuse(channel, taken);
    signal(SIGXFSZ, before);
}

void audit_channel_empty(struct audit_channel *channel) {
    if (!channel->memory)
        return;
    channel->memory->attended = gps_clock_monotonic();
    const uint64_t taken = atomic_load(&channel->memory->taken);
    empty(channel, taken, taken <= channel->cells);
}

void audit_channel_close(struct audit_channel *channel) {
    if (channel->memory)
        empty(channel, atomic_exchange(&channel->memory->taken, GPS_CHANNEL_CLOSED), false);
}

uint64_t audit_channel_missing(const struct audit_channel *channel, uint64_t read) {
    const uint64_t lines = channel->memory ? channel->memory->lines : 0;
    const uint64_t lost = channel->memory ? channel->memory->lost : 0;
    const uint64_t missing = lines > read ? lines - read : 0;
    return missing > lost ? missing : lost;
}
