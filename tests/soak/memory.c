/*
 * memory.c - device memory, with the model of what each call answers; see worker.h.
 *
 * What is exported stands in the directory `adverts` as one file, removed before the memory is
 * freed. So memory was alive when it was opened if its file is there after the open; the open must
 * then have succeeded, and its tag must be there until it is closed, whatever becomes of the
 * exporter. An open whose file is gone meanwhile may have gone either way. That the exporter was
 * killed is seen in /proc.
 */

#include "worker.h"

enum { MAGIC = 0x736f616b, MIB = 1 << 20 };

/* --- tags --- */

static struct tag new_tag(void) {
    static atomic_uint number;
    struct tag tag = {.magic = MAGIC, .pid = (uint32_t)getpid()};
    tag.number = atomic_fetch_add(&number, 1) + 1;
    tag.sum = tag.magic ^ tag.pid * 2654435761u ^ tag.number * 40503u;
    return tag;
}

static int write_tag(void *pointer, size_t at, const struct tag *tag) {
    int code = CALL(cudaMemcpy((char *)pointer + at, tag, sizeof(*tag), cudaMemcpyHostToDevice));
    return code ? code : CALL(cudaDeviceSynchronize());
}

bool has_place(const struct slot *slot) {
    return slot->advert.kind == KIND_RULE || slot->advert.kind == KIND_VMM;
}

/* Whose tags are where each process has its place, and what was opened: which memory it is. */
static void describe(const struct slot *slot) {
    enum { LENGTH = 65536 * sizeof(struct tag) };
    struct tag *tags = calloc(1, LENGTH);
    char text[1024] = "", handle[2 * sizeof(slot->advert.handle) + 1];
    size_t length = 0;
    for (size_t i = 0; i < sizeof(slot->advert.handle); i++)
        snprintf(handle + 2 * i, 3, "%02x", ((const unsigned char *)&slot->advert.handle)[i]);
    if (tags && CALL(cudaMemcpy(tags, slot->pointer, LENGTH, cudaMemcpyDeviceToHost)) == 0)
        for (size_t i = 0; i < LENGTH / sizeof(*tags) && length < sizeof(text) - 32; i++)
            if (tags[i].magic == MAGIC)
                length +=
                    (size_t)snprintf(text + length, 32, " %u.%u", tags[i].pid, tags[i].number);
    wrong("  there are the tags%s; its exporter said %p, handle %s", text, (void *)slot->advert.at,
          handle);
    free(tags);
}

static void compare(const struct slot *slot, size_t at, const char *when) {
    struct tag got;
    memset(&got, 0xee, sizeof(got));
    const int code =
        CALL(cudaMemcpy(&got, (char *)slot->pointer + at, sizeof(got), cudaMemcpyDeviceToHost));
    const struct tag *tag = &slot->advert.tag;
    if (code == 0 && memcmp(&got, tag, sizeof(got)) == 0)
        return;
    wrong("bytes %s, kind %d, at %p+%zu (code %d): tag %x %u.%u instead of %u.%u, %s", when,
          slot->advert.kind, slot->pointer, at, code, got.magic, got.pid, got.number, tag->pid,
          tag->number, slot->path);
    if (has_place(slot))
        describe(slot);
}

/* The driver keeps what is open, but for the places of small ones in a block. */
void look(const struct slot *slot, const char *when) {
    if (slot->advert.kind == KIND_SMALL && (slot->weak || slot->advert.weak))
        return;
    compare(slot, slot->advert.place, when);
    if (!has_place(slot))
        compare(slot, slot->advert.size - sizeof(struct tag), when);
}

/* --- own memory --- */

bool allocate(struct slot *slot, enum kind kind, size_t size) {
    memset(slot, 0, sizeof(*slot));
    slot->advert.kind = (int)kind;
    slot->advert.size = size;
    slot->advert.tag = new_tag();
    if (kind == KIND_RULE || kind == KIND_VMM) /* beside those of the others */
        slot->advert.place = (size_t)(getpid() % 65536) * sizeof(struct tag);
    const int code = CALL(cudaMalloc(&slot->pointer, size));
    expect_any(code, " 0 2 ", "cudaMalloc");
    if (code) {
        slot->pointer = NULL;
        count(COUNT_out_of_memory);
        return false;
    }
    count(COUNT_allocated);
    world.started = 1;
    expect(write_tag(slot->pointer, slot->advert.place, &slot->advert.tag), 0, "cudaMemcpy");
    if (kind == KIND_PLAIN || kind == KIND_SMALL)
        expect(write_tag(slot->pointer, size - sizeof(struct tag), &slot->advert.tag), 0,
               "cudaMemcpy");
    return true;
}

static void forget_handle(const struct advert *advert) {
    self->stale[self->stale_count++ % STALE] = *advert;
}

void release_at(struct slot *slot, size_t at) {
    look(slot, "in its owner");
    if (*slot->path) {
        unlink(slot->path);
        forget_handle(&slot->advert);
    }
    const int code = CALL(cudaFree((char *)slot->pointer + at));
    if (code)
        wrong("cudaFree: %d, kind %d, %p, few %d", code, slot->advert.kind, slot->pointer,
              self->few);
    count(COUNT_freed);
    slot->pointer = NULL;
}

void release(struct slot *slot) {
    release_at(slot, 0);
}

static void publish(struct slot *slot) {
    static atomic_uint number;
    char temporary[PATH];
    unsigned char bytes[sizeof(struct advert)];
    const unsigned mine = atomic_fetch_add(&number, 1);
    snprintf(slot->path, sizeof(slot->path), "%s/adverts/%d.%u", world.place, (int)getpid(), mine);
    snprintf(temporary, sizeof(temporary), "%s/adverts/.%d.%u", world.place, (int)getpid(), mine);
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    memcpy(bytes, &slot->advert, sizeof(bytes));
    if (fd < 0 || write(fd, bytes, sizeof(bytes)) != (ssize_t)sizeof(bytes) ||
        rename(temporary, slot->path) != 0)
        *slot->path = '\0'; /* no descriptors are left */
    if (fd >= 0)
        close(fd);
}

/* Whether gpushare may have been unable to publish just now: it tries again a second later. */
static bool may_have_failed(unsigned long before) {
    const unsigned long after = full_epoch();
    const unsigned long seen = atomic_exchange(&world.epoch, after);
    if (self->few || before % 2 != 0 || after != before || after != seen)
        atomic_store(&world.trouble, milliseconds());
    return world.trouble && milliseconds() < world.trouble + 1500;
}

static void export(struct slot *slot) {
    const unsigned long before = full_epoch();
    const int code = CALL(cudaIpcGetMemHandle(&slot->advert.handle, slot->pointer));
    const bool weak = may_have_failed(before);
    if (code && weak && slot->advert.kind == KIND_VMM)
        return;
    if (code)
        wrong("cudaIpcGetMemHandle: %d, kind %d, %p, weak %d, few %d", code, slot->advert.kind,
              slot->pointer, weak, self->few);
    slot->advert.at = (uintptr_t)slot->pointer;
    slot->advert.weak = weak;
    count(COUNT_exported);
    publish(slot);
}

/* --- others' memory --- */

static bool mine(const char *name) {
    return atoi(name) == (int)getpid();
}

static bool is_open(const char *path) {
    for (unsigned i = 0; i < SLOTS; i++)
        if (self->opened[i].pointer && strcmp(self->opened[i].path, path) == 0)
            return true;
    return false;
}

/* The path of something that another process exports and that is not open here. */
static bool choose(const char *folder, char path[PATH]) {
    char directory[PATH - 64];
    unsigned seen = 0;
    snprintf(directory, sizeof(directory), "%s/%s", world.place, folder);
    DIR *all = opendir(directory);
    if (!all)
        return false;
    for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
        char candidate[PATH];
        snprintf(candidate, sizeof(candidate), "%s/%.40s", directory, entry->d_name);
        if (*entry->d_name != '.' && !mine(entry->d_name) && !is_open(candidate) && !dice(++seen))
            memcpy(path, candidate, PATH);
    }
    closedir(all);
    return seen != 0;
}

static bool read_file(const char *path, void *to, size_t size) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t got = read(fd, to, size);
    close(fd);
    return got == (ssize_t)size;
}

/* Whether the process that a file is of runs, or is stopped; "cannot say" is no. */
static bool owner_lives(const char *path) {
    char name[64], text[512] = "";
    snprintf(name, sizeof(name), "/proc/%d/stat", atoi(strrchr(path, '/') + 1));
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (read(fd, text, sizeof(text) - 1) < 0)
        *text = '\0';
    close(fd);
    const char *end = strrchr(text, ')');
    return end && end[1] && !strchr("ZXx", end[2]);
}

/* One that ends, or begins anew by exec, has given its memory back a moment before its files go:
 * with a sanitizer on a busy machine that is more than a fifth of a second. */
static bool stays(const char *path) {
    if (access(path, F_OK) != 0 || !owner_lives(path))
        return false;
    nap(1500);
    return access(path, F_OK) == 0 && owner_lives(path);
}

static void judge_refusal(const struct slot *slot, int code) {
    const bool strict = !has_place(slot);
    count(COUNT_refused);
    expect_any(code, EITHER(" 1 2 201 400 800 ", " 1 2 17 201 800 "), "cudaIpcOpenMemHandle");
    if (strict && stays(slot->path))
        wrong("open: %d, though it is alive, kind %d: %s", code, slot->advert.kind, slot->path);
    else
        forget_handle(&slot->advert);
}

static void open_chosen(struct slot *slot) {
    const unsigned long before = full_epoch();
    const int code = open_memory(slot);
    if (code) {
        if (code != ALREADY_MAPPED)
            judge_refusal(slot, code);
        slot->pointer = NULL;
    } else if (access(slot->path, F_OK) != 0) {
        count(COUNT_raced);
        expect(close_memory(slot), 0, "cudaIpcCloseMemHandle");
        slot->pointer = NULL;
    } else {
        count(COUNT_opened);
        slot->weak = may_have_failed(before);
        look(slot, "when opened");
    }
}

static void open_one(struct slot *slot) {
    memset(slot, 0, sizeof(*slot));
    if (choose("adverts", slot->path) && read_file(slot->path, &slot->advert, sizeof(slot->advert)))
        open_chosen(slot);
}

void close_by(struct slot *slot, int (*call)(const struct slot *)) {
    look(slot, "before its close");
    expect(call(slot), 0, "cudaIpcCloseMemHandle");
    count(COUNT_closed);
    if (access(slot->path, F_OK) != 0)
        forget_handle(&slot->advert);
    slot->pointer = NULL;
}

void close_one(struct slot *slot) {
    close_by(slot, close_memory);
}

/* --- steps --- */

static void work_on(struct slot *slot, enum kind kind, size_t size) {
    const bool exportable = world.share || kind != KIND_SMALL; /* its place is given out again */
    if (!slot->pointer)
        allocate(slot, kind, size);
    else if (!*slot->path && dice(4) && exportable && slot->advert.kind == (int)kind)
        export(slot);
    else if (dice(3))
        look(slot, "in its owner");
    else
        release(slot);
}

void step_memory(void) {
    static const size_t sizes[] = {4096, 65536, 2 * MIB, 4 * MIB, 16 * MIB};
    struct slot *other = &self->opened[dice(SLOTS)];
    const size_t size = sizes[dice(5)];
    if (dice(2))
        work_on(&self->own[dice(SLOTS - 2)], size < BLOCK ? KIND_SMALL : KIND_PLAIN, size);
    else if (!other->pointer)
        open_one(other);
    else if (dice(3))
        look(other, "while open");
    else
        close_one(other);
}

/* What an open_cache is for: memory that is opened and closed again and again. */
void step_again(void) {
    struct slot *slot = &self->opened[dice(SLOTS)];
    if (!slot->pointer)
        open_one(slot);
    for (unsigned left = dice(20); slot->pointer && left; left--) {
        close_one(slot);
        if (!dice(3))
            nap(dice(3));
        open_chosen(slot);
    }
}

/* The last two slots are for what a rule takes. */
void step_rule_memory(void) {
    if (dice(2))
        work_on(&self->own[SLOTS - 2], KIND_RULE, 3 * MIB);
    else
        work_on(&self->own[SLOTS - 1], KIND_VMM, 6 * MIB);
}

/* ready = free: a giver writes and frees; a taker finds all of it, or memory that is empty. (Where
 * new memory may hold old bytes, SOAK_DIRTY, the two ends may differ.) */
void step_hand_over(void) {
    static const size_t size = 5 * MIB;
    struct slot slot;
    struct tag ends[2];
    if (!world.taker) {
        if (allocate(&slot, KIND_PLAIN, size)) {
            count(COUNT_hand_overs);
            release(&slot);
        }
        return;
    }
    memset(&slot, 0, sizeof(slot));
    const int code = CALL(cudaMalloc(&slot.pointer, size));
    expect_any(code, " 0 2 ", "cudaMalloc");
    if (code)
        return;
    for (unsigned i = 0; i < 2; i++)
        expect(CALL(cudaMemcpy(&ends[i], (char *)slot.pointer + i * (size - sizeof(struct tag)),
                               sizeof(struct tag), cudaMemcpyDeviceToHost)),
               0, "cudaMemcpy");
    if (ends[0].magic == MAGIC && !world.bare) {
        count(COUNT_taken);
        if (!getenv("SOAK_DIRTY") && memcmp(&ends[0], &ends[1], sizeof(struct tag)) != 0)
            wrong("hand-over from %u.%u is not whole", ends[0].pid, ends[0].number);
        slot.advert = (struct advert){.size = size, .tag = ends[0]};
        nap(dice(5));
        look(&slot, "after a hand-over");
    }
    expect(CALL(cudaFree(slot.pointer)), 0, "cudaFree");
}

/* --- events --- */

static void share_event(cudaEvent_t event) {
    static atomic_uint number;
    char path[PATH];
    cudaIpcEventHandle_t handle;
    expect(CALL(cudaIpcGetEventHandle(&handle, event)), 0, "cudaIpcGetEventHandle");
    snprintf(path, sizeof(path), "%s/events/%d.%u", world.place, (int)getpid(),
             atomic_fetch_add(&number, 1));
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0 && write(fd, &handle, sizeof(handle)) < 0)
        _exit(4);
    if (fd >= 0)
        close(fd);
    expect(CALL(cudaEventRecord(event, 0)), 0, "cudaEventRecord");
    nap(dice(4));
    unlink(path);
}

static void open_event(void) {
    char path[PATH];
    cudaIpcEventHandle_t handle;
    cudaEvent_t event = NULL;
    if (!choose("events", path) || !read_file(path, &handle, sizeof(handle)))
        return;
    const int code = CALL(cudaIpcOpenEventHandle(&event, handle));
    if (code) {
        if (stays(path))
            wrong("cudaIpcOpenEventHandle: %d, though it is alive: %s", code, path);
        return;
    }
    count(COUNT_events_opened);
    expect_any(CALL(cudaEventQuery(event)), " 0 600 ", "cudaEventQuery");
    expect(CALL(cudaEventDestroy(event)), 0, "cudaEventDestroy");
}

void step_event(void) {
    cudaEvent_t event = NULL;
    if (self->few)
        return;
    if (dice(2)) {
        open_event();
        return;
    }
    expect(CALL(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming)),
           0, "cudaEventCreateWithFlags");
    share_event(event);
    expect(CALL(cudaEventDestroy(event)), 0, "cudaEventDestroy");
}

/* Takes what there is for a moment: others must bear code 2. */
void step_hog(void) {
    enum { MOST = 16 };
    void *pointers[MOST];
    unsigned taken = 0;
    while (taken < MOST && CALL(cudaMalloc(&pointers[taken], (size_t)256 << 20)) == 0)
        taken++;
    count(COUNT_hogs);
    nap(dice(10));
    while (taken > 0)
        expect(CALL(cudaFree(pointers[--taken])), 0, "cudaFree");
}
