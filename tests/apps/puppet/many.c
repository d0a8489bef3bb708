/*
 * many.c - many allocations, and many threads that have them.
 */
#include "puppet.h"

struct job {
    const char *what;
    unsigned char handle[64];
    u64 rounds, size;
    unsigned failures;
};

/* The driver answers 208 while another thread opens or closes the same memory. */
static int open_again(u64 *pointer, const unsigned char *handle) {
    enum { ALREADY_MAPPED = 208 };
    int code;
    while ((code = do_open(pointer, handle, 1)) == ALREADY_MAPPED)
        sched_yield();
    return code;
}

/* Only the last failing code matters to those who look. */
static unsigned work_once(const struct job *job, unsigned *failures) {
    unsigned char handle[64];
    u64 pointer = 0;
    int code;
    if (strcmp(job->what, "open") == 0) {
        code = do_open(&pointer, job->handle, 1);
        code = code ? code : do_close(pointer);
    } else if (strcmp(job->what, "use") == 0) {
        code = open_again(&pointer, job->handle);
        code = code ? code : do_read(handle, pointer, sizeof(handle));
        code = code ? code : do_close(pointer);
    } else {
        code = do_malloc(&pointer, job->size);
        if (!code && (strcmp(job->what, "export") == 0 || strcmp(job->what, "keep") == 0))
            code = do_get(handle, pointer);
        if (!code && strcmp(job->what, "keep") != 0)
            code = do_free(pointer);
    }
    *failures += code != 0;
    return (unsigned)code;
}

static void *work(void *arg) {
    struct job *job = arg;
    for (u64 i = 0; i < job->rounds; i++)
        work_once(job, &job->failures);
    return NULL;
}

/* threads N ROUNDS malloc|export|keep|open|use SIZE|HANDLE...: with several, one a thread */
static int c_threads(char **w) {
    enum { MAX = 64 };
    pthread_t threads[MAX];
    struct job jobs[MAX];
    char **handle = &w[4];
    unsigned failures = 0;
    const size_t count = number(w[1]) < MAX ? number(w[1]) : MAX;
    for (size_t i = 0; i < count; i++) {
        jobs[i] = (struct job){.what = w[3], .rounds = number(w[2]), .size = number(w[4])};
        if (strcmp(w[3], "open") == 0 || strcmp(w[3], "use") == 0)
            from_hex(*handle, jobs[i].handle, sizeof(jobs[i].handle));
        handle += handle[1] != NULL;
        if (pthread_create(&threads[i], NULL, work, &jobs[i]) != 0)
            return BAD;
    }
    for (size_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        failures += jobs[i].failures;
    }
    say(" %u", failures);
    return 0;
}

static u64 *many;
static size_t many_count;

static int compare(const void *a, const void *b) {
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

static int64_t median(int64_t *times, size_t count) {
    qsort(times, count, sizeof(*times), compare);
    return count ? times[count / 2] : 0;
}

/* many COUNT SIZE -> median nanoseconds in the first and in the last tenth, and the slowest of all
 */
static int c_many(char **w) {
    many_count = number(w[1]);
    many = calloc(many_count, sizeof(*many));
    int64_t *const took = calloc(many_count, sizeof(*took)), slowest = 0;
    const size_t tenth = many_count / 10;
    for (size_t i = 0; i < many_count; i++) {
        const int64_t start = now_ns();
        const int code = do_malloc(&many[i], number(w[2]));
        took[i] = now_ns() - start;
        if (code)
            return code;
        slowest = took[i] > slowest ? took[i] : slowest;
    }
    const int64_t first = median(took, tenth), last = median(took + many_count - tenth, tenth);
    free(took);
    say(" %lld %lld %lld", (long long)first, (long long)last, (long long)slowest);
    return 0;
}

/* manyfree [EVERY] [FROM]: each EVERY-th, FROM on */
static int c_manyfree(char **w) {
    const size_t every = w[1] ? number(w[1]) : 1;
    for (size_t i = number(w[1] ? w[2] : NULL); i < many_count; i += every) {
        const int code = do_free(many[i]);
        if (code)
            return code;
    }
    return 0;
}

/* manyget: exports each of them */
static int c_manyget(char **w) {
    unsigned char handle[64];
    for (size_t i = 0; i < many_count; i++) {
        const int code = do_get(handle, many[i]);
        if (code)
            return code;
    }
    return 0;
}

/* chaos SEED DIR MS: allocates, exports, opens, closes and frees at random; handles lie in DIR.
 * Bytes that it wrote itself must still be there when it frees. */
struct chaos {
    unsigned seed;
    const char *dir;
    u64 own[8], opened[8];
    unsigned wrong;
};

static unsigned dice(struct chaos *chaos, unsigned sides) {
    return (unsigned)rand_r(&chaos->seed) / 7 % sides;
}

static void chaos_publish(struct chaos *chaos, u64 pointer) {
    char path[512], temporary[512];
    unsigned char handle[64];
    if (do_get(handle, pointer))
        return;
    snprintf(path, sizeof(path), "%s/%u", chaos->dir, dice(chaos, 16));
    snprintf(temporary, sizeof(temporary), "%s/.%d", chaos->dir, (int)getpid());
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write(fd, handle, sizeof(handle)) == (ssize_t)sizeof(handle))
        rename(temporary, path);
    close(fd);
}

static void chaos_own(struct chaos *chaos, u64 *slot) {
    if (!*slot) {
        if (do_malloc(slot, 1u << (12 + dice(chaos, 11))))
            *slot = 0;
        else
            do_fill(*slot, 0x5a, 64);
        return;
    }
    if (dice(chaos, 2)) {
        chaos_publish(chaos, *slot);
        return;
    }
    unsigned char bytes[64] = {0};
    if (!do_read(bytes, *slot, sizeof(bytes)) && bytes[63] != 0x5a)
        chaos->wrong++;
    chaos->wrong += do_free(*slot) != 0;
    *slot = 0;
}

static void chaos_opened(struct chaos *chaos, u64 *slot) {
    char path[512];
    unsigned char handle[64];
    if (*slot) {
        chaos->wrong += do_close(*slot) != 0;
        *slot = 0;
        return;
    }
    snprintf(path, sizeof(path), "%s/%u", chaos->dir, dice(chaos, 16));
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    if (read(fd, handle, sizeof(handle)) != (ssize_t)sizeof(handle) || do_open(slot, handle, 1))
        *slot = 0;
    close(fd);
}

static int c_chaos(char **w) {
    struct chaos chaos = {.seed = (unsigned)number(w[1]), .dir = w[2]};
    const int64_t until = now_ns() + (int64_t)number(w[3]) * 1000000;
    unsigned rounds = 0;
    for (; now_ns() < until; rounds++) {
        if (dice(&chaos, 2))
            chaos_own(&chaos, &chaos.own[dice(&chaos, 8)]);
        else
            chaos_opened(&chaos, &chaos.opened[dice(&chaos, 8)]);
    }
    for (size_t i = 0; i < 8; i++) {
        chaos.wrong += chaos.opened[i] && do_close(chaos.opened[i]);
        chaos.wrong += chaos.own[i] && do_free(chaos.own[i]);
    }
    say(" %u %u", chaos.wrong, rounds);
    return 0;
}

static void *get_again(void *pointer) {
    unsigned char handle[64];
    char line[16];
    int code;
    while ((code = do_get(handle, *(const u64 *)pointer)) == 0) {
    }
    put(line, (size_t)sprintf(line, "%d\n", code));
    return NULL;
}

/* getting NAME THREADS: a second answer from each of them where it fails */
static int c_getting(char **w) {
    static u64 pointer;
    pthread_t thread;
    pointer = value(w[1]);
    for (u64 i = number(w[2]); i > 0; i--)
        if (pthread_create(&thread, NULL, get_again, &pointer) != 0)
            return BAD;
    return 0;
}

const struct command many_commands[] = {
    {"threads", "COUNT ROUNDS malloc|export|keep|open|use SIZE|HANDLE...", c_threads},
    {"many", "COUNT SIZE", c_many},
    {"manyfree", "[EVERY] [FROM]", c_manyfree},
    {"manyget", "", c_manyget},
    {"chaos", "SEED DIRECTORY MILLISECONDS", c_chaos},
    {"getting", "NAME THREADS", c_getting},
    {0},
};
