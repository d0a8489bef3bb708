/* journal.c - what the workers did, what went wrong, and which call is under way; see worker.h. */

#include "worker.h"

static struct control *control;
static struct status unseen[THREADS]; /* of a forked child */
static int journal = -1;

static void *map(const char *name, size_t size) {
    char path[PATH];
    snprintf(path, sizeof(path), "%s/%s", world.place, name);
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0)
        _exit(4);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        _exit(4);
    return at;
}

void journal_open(void) {
    char name[64], path[PATH];
    control = map("control", sizeof(*control));
    snprintf(name, sizeof(name), "status/%d", (int)getpid());
    struct status *rows = map(name, THREADS * sizeof(*rows));
    for (unsigned i = 0; i < THREADS; i++)
        world.selves[i].status = &rows[i];
    snprintf(path, sizeof(path), "%s/journal", world.place);
    journal = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

void journal_forget(void) {
    for (unsigned i = 0; i < THREADS; i++)
        world.selves[i].status = &unseen[i];
}

static void end_path(char path[PATH], unsigned pid) {
    snprintf(path, PATH, "%s/ends/%u", world.place, pid);
}

void say_end(void) {
    char path[PATH];
    end_path(path, (unsigned)getpid());
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        _exit(4);
    close(fd);
}

bool has_said_end(unsigned pid) {
    char path[PATH];
    end_path(path, pid);
    return access(path, F_OK) == 0;
}

void count(enum count what) {
    atomic_fetch_add(&control->counts[what], 1);
}

unsigned long full_epoch(void) {
    return atomic_load(&control->full);
}

bool directory_full(void) {
    return full_epoch() % 2 != 0;
}

void wrong(const char *format, ...) {
    char line[PATH + 256];
    int length = snprintf(line, sizeof(line), "%d.%u step %lu: ", (int)getpid(), self->number,
                          (unsigned long)atomic_load(&self->status->steps));
    va_list arguments;
    va_start(arguments, format);
    length += vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof(line) - 2)
        length = (int)sizeof(line) - 2;
    line[length] = '\n';
    count(COUNT_wrong);
    if (write(journal, line, (size_t)length + 1) < 0)
        _exit(4);
}

void call_begin(const char *name) {
    struct status *status = self->status;
    strncpy(status->call, name, CALL_NAME - 1);
    atomic_store(&status->since, milliseconds());
    self->inside = 1;
}

int call_end(int code) {
    self->inside = 0;
    atomic_store(&self->status->since, 0);
    (void)cudaGetLastError();
    return code;
}

void expect(int got, int wanted, const char *what) {
    if (got != wanted)
        wrong("%s: %d instead of %d", what, got, wanted);
}

void expect_any(int got, const char *codes, const char *what) {
    char word[16];
    snprintf(word, sizeof(word), " %d ", got);
    if (!strstr(codes, word))
        wrong("%s: %d instead of one of%s", what, got, codes);
}

unsigned dice(unsigned sides) {
    return (unsigned)rand_r(&self->seed) / 7 % sides;
}

uint64_t milliseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* All of it, also where a timer's signals come meanwhile. */
void nap(unsigned ms) {
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}
