/*
 * frames.c - a program that draws frames, looks at them, or does both, while it jumps out of
 * handlers, forks, executes itself, and ends its contexts; see frames.py.
 *
 * frames PLACE camera|viewer|filter SEED WAY IN OUT    sizes of the buffers; 0: it has none
 *
 * A frame is filled with one number, which grows with the time over all programs. It is torn if its
 * words differ. What a call says is what it says without gpushare.
 */
#include "../common/system_headers.h"
#include <cuda.h>

enum {
    PARTS = 4,
    MOST = 1 << 20,
    PATH = 256,
    ALLOCATIONS = 3 /* of a program, before it begins anew */
};

/* Those of all programs, in PLACE/sums. */
#define SUMS                                                                                       \
    SUM(drawn)                                                                                     \
    SUM(looked)                                                                                    \
    SUM(fresh)                                                                                     \
    SUM(jumps)                                                                                     \
    SUM(forks)                                                                                     \
    SUM(execs)                                                                                     \
    SUM(resets)                                                                                    \
    SUM(destroyed)                                                                                 \
    SUM(lost)                                                                                      \
    SUM(handler_exits)                                                                             \
    SUM(exits)                                                                                     \
    SUM(no_memory)                                                                                 \
    SUM(slowest_ms)
#define SUM(name) SUM_##name,
enum { SUMS SUM_COUNT };

static struct {
    const char *place;
    char **words;
    _Atomic uint64_t *sums;
    uint64_t limit; /* ms of a call that uses frames */
    unsigned dice;
    size_t in, out; /* bytes */
    pid_t thread;
    volatile sig_atomic_t continued;
    bool own_context, jumps;
    /* The row of soak.py's that says since when which call is under way. */
    struct {
        uint64_t since, steps;
        char call[48];
    } * status;
} world;

static struct {
    CUcontext context;
    CUdevice device;
    CUstream stream;
    CUdeviceptr in, out;
    unsigned allocations;
    unsigned stale;       /* looks that saw nothing new */
    uint32_t number;      /* of the frame that it draws */
    uint32_t since, last; /* numbers: when `in` was allocated, and the last one that it had */
} mine;

static uint32_t *host;

/* --- what it says --- */

static uint64_t milliseconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

static unsigned dice(unsigned sides) {
    world.dice = world.dice * 1103515245 + 12345;
    return (world.dice >> 8) % sides;
}

__attribute__((format(printf, 2, 3))) static void say(const char *file, const char *format, ...) {
    char path[PATH + 32], line[512];
    va_list words;
    int length = snprintf(line, sizeof(line), "%d %s ", (int)getpid(), world.words[2]);
    va_start(words, format);
    length += vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, words);
    va_end(words);
    line[length++] = '\n';
    snprintf(path, sizeof(path), "%s/%s", world.place, file);
    const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (write(fd, line, (size_t)length) != length)
        _exit(5);
    close(fd);
}

static void begin_call(const char *name) {
    strncpy(world.status->call, name, sizeof(world.status->call) - 1);
    world.continued = 0;
    world.status->since = milliseconds();
}

/* A call that uses frames waits for `frames_timeout` at most, and for a processor. */
static void end_call(const char *name, bool framed) {
    const uint64_t took = milliseconds() - world.status->since;
    world.status->since = 0;
    world.status->steps++;
    if (!framed || world.continued)
        return;
    if (took > world.sums[SUM_slowest_ms])
        world.sums[SUM_slowest_ms] = took;
    if (took > world.limit)
        say("journal", "%s took %d ms", name, (int)took);
}

static void check(const char *name, int code, int other) {
    if (code == 0)
        return;
    if (code == 2) {
        world.sums[SUM_no_memory]++;
        exit(0);
    }
    if (code != other)
        say("journal", "%s: %d", name, code);
    _exit(1);
}

#define CALL(call, framed)                                                                         \
    ({                                                                                             \
        begin_call(#call);                                                                         \
        const int code_ = (int)(call);                                                             \
        end_call(#call, framed);                                                                   \
        code_;                                                                                     \
    })
#define MUST(call)  check(#call, CALL(call, false), 0)
#define FRAME(call) check(#call, CALL(call, true), 0)

/* --- handlers --- */

static sigjmp_buf landing;
static volatile sig_atomic_t may_jump, may_exit;

/* Whether the thread was interrupted in a wait of the library's. A jump from elsewhere would leave
 * half a frame, and nobody could tell: also where the library lets signals in at a call's end. */
static bool library_waits(void) {
    void *frames[12];
    Dl_info info;
    bool waits = false;
    const int count = backtrace(frames, 12);
    for (int i = 0; i < count && dladdr(frames[i], &info) && info.dli_fname; i++) {
        if (waits)
            return strstr(info.dli_fname, "libgpushare") != NULL;
        waits = info.dli_sname && strstr(info.dli_sname, "ppoll");
    }
    return false;
}

static void on_alarm(int number) {
    if (syscall(SYS_gettid) != world.thread)
        return;
    if (may_exit) {
        world.sums[SUM_handler_exits]++;
        _exit(77);
    }
    if (may_jump && world.jumps && library_waits()) {
        world.sums[SUM_jumps]++;
        siglongjmp(landing, 1);
    }
}

static void on_continue(int number) {
    world.continued = 1;
}

static void arm(unsigned ms) {
    const struct timeval time = {.tv_usec = (suseconds_t)ms * 1000};
    setitimer(ITIMER_REAL, &(struct itimerval){time, time}, NULL);
}

static void install(void) {
    struct sigaction alarm, go_on;
    memset(&alarm, 0, sizeof(alarm));
    alarm.sa_flags = SA_RESTART;
    go_on = alarm;
    alarm.sa_handler = on_alarm;
    go_on.sa_handler = on_continue;
    backtrace(&(void *){NULL}, 1); /* it loads a library at first */
    sigaction(SIGALRM, &alarm, NULL);
    sigaction(SIGCONT, &go_on, NULL);
}

/* --- frames --- */

/* Grows by 20,000 a second, and over UINT32_MAX. */
static uint32_t number_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint32_t)((uint64_t)time.tv_sec * 20000 + (uint64_t)time.tv_nsec / 50000);
}

static bool is_before(uint32_t one, uint32_t other) {
    return (int32_t)(one - other) < 0;
}

static __attribute__((noinline)) uint32_t next_number(void) {
    static uint32_t last;
    const uint32_t now = number_now();
    return last = is_before(last, now) ? now : last + 1;
}

static void draw_part(size_t part, uint32_t number) {
    const size_t bytes = world.out / PARTS;
    FRAME(cuMemsetD32Async(mine.out + part * bytes, number, bytes / 4, mine.stream));
}

static void upload_part(size_t part, uint32_t number) {
    const size_t bytes = world.out / PARTS;
    for (size_t i = 0; i < bytes / 4; i++)
        host[i] = number;
    FRAME(cuMemcpyHtoD(mine.out + part * bytes, host, bytes));
}

/* One way for each frame of a buffer: s(tream), c(ontext), q(uery), f(our), n(ever), u(pload). */
static void draw(uint32_t number) {
    const char way = *world.words[4];
    for (size_t part = 0; part < PARTS; part++) {
        if (way == 'u')
            upload_part(part, number);
        else
            draw_part(part, number);
        if (way == 'f')
            FRAME(cuStreamSynchronize(mine.stream));
    }
    if (way == 's')
        FRAME(cuStreamSynchronize(mine.stream));
    else if (way == 'c')
        FRAME(cuCtxSynchronize());
    else if (way == 'q')
        while (CALL(cuStreamQuery(mine.stream), true) == CUDA_ERROR_NOT_READY)
            usleep(20);
    world.sums[SUM_drawn]++;
}

/* What a jump left is drawn once more, as a whole. One who never waits says nothing else of where a
 * frame ends, and does not jump. */
static void draw_one(void) {
    mine.number = next_number();
    may_jump = *world.words[4] != 'n';
    if (sigsetjmp(landing, 1))
        may_jump = 0;
    draw(mine.number);
    may_jump = 0;
}

static uint32_t newest_of(size_t words) {
    uint32_t newest = host[0];
    for (size_t i = 0; i < words; i++)
        newest = is_before(newest, host[i]) ? host[i] : newest;
    return newest;
}

static size_t first_other(size_t words) {
    size_t i = 0;
    while (i < words - 1 && host[i] == host[0])
        i++;
    return i;
}

/* Of memory of its own, where there was no exporter, nothing is known but that nobody draws there
 * from now on. */
static void judge(void) {
    const size_t words = world.in / 4;
    const bool differs = memcmp(host, host + 1, world.in - 4) != 0;
    const uint32_t newest = differs ? newest_of(words) : host[0];
    world.sums[SUM_looked]++;
    mine.stale = is_before(newest, mine.since) || newest == mine.last ? mine.stale + 1 : 0;
    if (is_before(newest, mine.since))
        return;
    if (differs)
        say("torn", "%u %u word %zu of %zu: %u after %u", newest, (unsigned)world.in,
            first_other(words), words, host[first_other(words)], host[0]);
    else if (is_before(newest, mine.last))
        say("torn", "%u %u goes back from %u", newest, (unsigned)world.in, mine.last);
    world.sums[SUM_fresh] += newest != mine.last;
    mine.last = newest;
}

static void look(unsigned how) {
    const size_t bytes = world.in / PARTS;
    if (how == 0)
        FRAME(cuMemcpyDtoH(host, mine.in, world.in));
    for (size_t part = 0; how == 1 && part < PARTS; part++)
        FRAME(
            cuMemcpyDtoHAsync(host + part * bytes / 4, mine.in + part * bytes, bytes, mine.stream));
    if (how == 1)
        FRAME(cuStreamSynchronize(mine.stream));
}

static void look_once(unsigned how) {
    may_jump = how == 0;
    if (sigsetjmp(landing, 1))
        may_jump = 0;
    look(how);
    may_jump = 0;
    judge();
}

/* --- contexts --- */

static void execute(void) {
    world.sums[SUM_execs]++;
    static char seed[16];
    arm(0);
    snprintf(seed, sizeof(seed), "%u", dice(1u << 20));
    world.words[3] = seed;
    execv("/proc/self/exe", world.words);
    _exit(6);
}

static void allocate(void) {
    if (mine.allocations++ == ALLOCATIONS)
        execute();
    if (world.in) {
        mine.since = number_now();
        mine.last = mine.since;
        mine.stale = 0;
        MUST(cuMemAlloc(&mine.in, world.in));
    }
    if (world.out) {
        say("drawn", "%u %u %s", next_number(), (unsigned)world.out, world.words[4]);
        MUST(cuMemAlloc(&mine.out, world.out));
    }
}

static void begin(void) {
    world.own_context = dice(3) == 0;
    if (world.own_context) {
        CUcontext current;
        MUST(cuCtxCreate(&mine.context, NULL, 0, mine.device));
        MUST(cuCtxGetCurrent(&current));
    } else {
        MUST(cuDevicePrimaryCtxRetain(&mine.context, mine.device));
        MUST(cuCtxSetCurrent(mine.context));
    }
    MUST(cuStreamCreate(&mine.stream, dice(2) ? CU_STREAM_NON_BLOCKING : 0));
    allocate();
}

static void release(void) {
    if (mine.in)
        MUST(cuMemFree(mine.in));
    if (mine.out)
        MUST(cuMemFree(mine.out));
    mine.in = mine.out = 0;
}

/* With the buffers in it. */
static void end_context(void) {
    mine.in = mine.out = 0;
    if (world.own_context) {
        world.sums[SUM_destroyed]++;
        MUST(cuCtxDestroy(mine.context));
    } else {
        world.sums[SUM_resets]++;
        MUST(cuDevicePrimaryCtxReset(mine.device));
        MUST(cuDevicePrimaryCtxRelease(mine.device));
    }
    begin();
}

/* By a kernel that writes where nothing is. Nothing works from there on, and the program ends. */
static void lose_context(void) {
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr nowhere = 0x10;
    uint64_t words = 64;
    uint32_t value = 1;
    void *arguments[] = {&nowhere, &words, &value};
    static char text[1 << 20];
    FILE *file = fopen(getenv("FILM_KERNELS"), "rb");
    if (!file || !fread(text, 1, sizeof(text) - 1, file))
        exit(4);
    fclose(file);
    MUST(cuModuleLoadData(&module, text));
    MUST(cuModuleGetFunction(&kernel, module, "test_write"));
    MUST(cuLaunchKernel(kernel, 1, 1, 1, 64, 1, 1, 0, mine.stream, arguments, NULL));
    const int code = CALL(cuCtxSynchronize(), false);
    if (code != CUDA_ERROR_ILLEGAL_ADDRESS)
        say("journal", "a kernel that writes nowhere: %d", code);
    for (unsigned i = 0; i < 4; i++) {
        const int again =
            CALL(cuMemsetD32Async(mine.out ? mine.out : mine.in, 1, 16, mine.stream), true);
        if (again != code)
            say("journal", "a fill in a lost context: %d", again);
    }
    world.sums[SUM_lost]++;
    exit(0);
}

/* --- processes --- */

static void be_child(unsigned kind) {
    CUdeviceptr pointer;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    arm(0);
    if (kind == 0 && (int)cuMemFree(mine.in ? mine.in : mine.out) != CUDA_ERROR_NOT_INITIALIZED)
        _exit(7);
    if (kind == 1 && (int)cuMemAlloc(&pointer, world.in) != CUDA_ERROR_NOT_INITIALIZED)
        _exit(8);
    if (kind == 2)
        exit(0);
    if (kind == 3)
        execl("/proc/self/exe", world.words[0], world.words[1], "viewer", "1", "s",
              world.in ? world.words[5] : world.words[6], "0", "20", (char *)NULL);
    _exit(0);
}

static void fork_once(void) {
    const unsigned kind = dice(5);
    const uint64_t until = milliseconds() + 30 * world.limit;
    int status = 0;
    pid_t child, got;
    world.sums[SUM_forks]++;
    begin_call("fork");
    child = fork();
    if (child == 0)
        be_child(kind);
    end_call("fork", false);
    while (child > 0 && (got = waitpid(child, &status, WNOHANG)) == 0 && milliseconds() < until)
        usleep(1000);
    if (child > 0 && got == 0) {
        say("journal", "child of kind %u, %d, hangs", kind, (int)child);
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    } else if (status != 0 && !(kind == 3 && status == SIGKILL)) {
        say("journal", "child of kind %u ended with status %#x", kind, (unsigned)status);
    }
}

/* --- */

static void trouble(void) {
    switch (dice(12)) {
    case 0:
        execute();
        break;
    case 1:
    case 2:
        fork_once();
        break;
    case 3:
    case 4:
    case 5:
        end_context();
        break;
    case 6:
        if (dice(3) == 0)
            lose_context();
        break;
    case 7:
        may_exit = dice(2) == 0;
        arm(1 + dice(20));
        break;
    case 8:
        world.sums[SUM_exits]++;
        exit(0);
    default:
        release();
        allocate();
    }
}

static void open_world(int argc, char **argv) {
    char path[PATH + 32];
    const char *patience = getenv("TEST_PATIENCE"), *without = getenv("SOAK_WITHOUT");
    world.place = argv[1];
    world.words = argv;
    world.dice = (unsigned)atoi(argv[3]) * 2654435761u + 1;
    world.in = (size_t)atol(argv[5]);
    world.out = (size_t)atol(argv[6]);
    world.limit = 3000 * (patience && atoi(patience) > 0 ? (uint64_t)atoi(patience) : 1);
    world.jumps = !strstr(without ? without : "", "jump");
    world.thread = (pid_t)syscall(SYS_gettid);
    snprintf(path, sizeof(path), "%s/sums", world.place);
    const int sums = open(path, O_RDWR | O_CLOEXEC);
    snprintf(path, sizeof(path), "%s/status/%d", world.place, (int)getpid());
    const int status = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (argc < 7 || ftruncate(status, sizeof(*world.status)) != 0)
        exit(2);
    world.sums = mmap(NULL, SUM_COUNT * 8, PROT_READ | PROT_WRITE, MAP_SHARED, sums, 0);
    world.status = mmap(NULL, sizeof(*world.status), PROT_READ | PROT_WRITE, MAP_SHARED, status, 0);
    if (world.sums == MAP_FAILED || world.status == MAP_FAILED)
        exit(2);
    close(sums);
    close(status);
}

int main(int argc, char **argv) {
    open_world(argc, argv);
    unsigned left = argc > 7 ? (unsigned)atoi(argv[7]) : 100000;
    const unsigned how = dice(2), pause = dice(3) * 1000, often = 50 + dice(500);
    host = calloc(1, MOST);
    install();
    MUST(cuInit(0));
    MUST(cuDeviceGet(&mine.device, 0));
    begin();
    arm(3 + dice(40));
    for (; left; left--) {
        if (world.in)
            look_once(how);
        if (world.out)
            draw_one();
        if (mine.stale > 20 && argc < 8) {
            release();
            allocate();
        }
        if (dice(often) == 0 && argc < 8)
            trouble();
        if (mine.allocations > 1 && dice(100) == 0 && argc < 8)
            execute(); /* most look for the first one */
        if (pause)
            usleep(pause);
    }
    release();
    return 0;
}
