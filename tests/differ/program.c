/*
 * program.c - differ-program: a random program, one or more replicas of which run at once.
 *
 * usage: differ-program KERNELS SEED STEPS REPLICAS [-STEP...]
 *
 * With 0 replicas the process itself is one, of soak.py's: it ends with its parent, at SIGUSR1 in
 * the handler (77), and at SIGUSR2 after a jump out of it (78), whatever call is under way.
 * Steps, and the bytes that they upload, follow from the seed. -STEP leaves a step out. Each
 * replica writes a line a step: its number, the step, the code (0, or the first other one), a hash
 * of what was read, and what was done. At the end it reads everything. What comes
 * after an allocation that fails depends on it.
 */
#include "program.h"

enum { MOST_REPLICAS = 8, LEAST_ARGUMENTS = 5, TIMEOUT = 60 /* seconds, for eight steps */ };
enum { IN_HANDLER = 77, AFTER_JUMP = 78 };

struct plan {
    const char *kernels;
    uint64_t seed;
    unsigned steps, replicas;
    int left_out_count;
    char **left_out;
};

void replica_say(struct replica *replica, const char *format, ...) {
    const size_t used = strlen(replica->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(replica->text + used, TEXT - used, format, arguments);
    va_end(arguments);
}

static bool is_left_out(const struct plan *plan, unsigned step) {
    for (int i = 0; i < plan->left_out_count; i++)
        if (plan->left_out[i][0] == '-' && strtoul(plan->left_out[i] + 1, NULL, 10) == step)
            return true;
    return false;
}

static void write_line(const struct replica *replica, int step, const char *text) {
    char line[2 * TEXT];
    const int length = snprintf(line, sizeof(line), "%u %d %d %016lx %s\n", replica->number, step,
                                replica->code, (unsigned long)replica->hash, text);
    if (write(1, line, (size_t)length) != length)
        _exit(1);
}

void program_fail(const char *what) {
    char line[TEXT];
    const int length = snprintf(line, sizeof(line), "0 -1 1 0 %s\n", what);
    _exit(write(1, line, (size_t)length) == length ? 1 : 2);
}

static void read_everything(struct replica *replica, int step) {
    replica->code = 0;
    replica->hash = 0;
    device_note(replica, (int)cuCtxSynchronize());
    for (int i = 0; i < BUFFERS; i++)
        if (replica->buffers[i].at)
            device_read(replica, &replica->buffers[i], 0, replica->buffers[i].size);
    if (replica->computed.at)
        device_read(replica, &replica->computed, 0, replica->computed.size);
    device_read(replica, &replica->scratch, 0, SCRATCH);
    mapped_read(replica);
    write_line(replica, step, "read everything");
}

static int run_replica(const struct plan *plan, unsigned number, pthread_barrier_t *meet) {
    static struct replica replica;
    replica.number = number;
    replica.seed = plan->seed;
    replica.kernels = plan->kernels;
    replica.soaks = plan->replicas == 0;
    alarm(TIMEOUT);
    if (!device_begin(&replica)) {
        fprintf(stderr, "differ-program: the device cannot be used\n");
        return 1;
    }
    beside_begin(&replica);
    pthread_barrier_wait(meet);
    for (unsigned step = 0; step < plan->steps; step++) {
        struct numbers numbers = numbers_from(plan->seed, step, MOST_REPLICAS);
        if (one_of(&numbers, 4)) /* all do it at once */
            pthread_barrier_wait(meet);
        if (is_left_out(plan, step))
            continue;
        step_do(&replica, step);
        if (replica.text[0])
            write_line(&replica, (int)step, replica.text);
        if (step % 8 == 7) {
            read_everything(&replica, (int)step);
            alarm(TIMEOUT);
        }
    }
    beside_end();
    read_everything(&replica, (int)plan->steps);
    mapped_end(&replica);
    return 0;
}

static pthread_barrier_t *make_barrier(unsigned count) {
    pthread_barrierattr_t attributes;
    pthread_barrier_t *const meet =
        mmap(NULL, sizeof(*meet), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    if (meet == MAP_FAILED || pthread_barrier_init(meet, &attributes, count) != 0)
        abort();
    return meet;
}

static sigjmp_buf landing;

/* The kernel gives a signal of the process to its other thread while the first one has it blocked.
 */
static void end_here(int number) {
    if (number == SIGUSR1)
        _exit(IN_HANDLER);
    if (gettid() == getpid())
        siglongjmp(landing, 1);
    tgkill(getpid(), getpid(), number);
}

static int run_soaking(const struct plan *plan) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (sigsetjmp(landing, 1))
        _exit(AFTER_JUMP);
    signal(SIGUSR1, end_here);
    signal(SIGUSR2, end_here);
    return run_replica(plan, 0, make_barrier(1));
}

/* The first that does not end well ends the others, which would wait for it. */
static int await(pid_t *replicas, unsigned count) {
    int worst = 0, status;
    for (unsigned ended = 0; ended < count; ended++) {
        const pid_t pid = wait(&status);
        if (status == 0 || worst)
            continue;
        worst = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        for (unsigned i = 0; i < count; i++) {
            if (replicas[i] == pid)
                printf("%u -1 %d 0 ended\n", i, worst);
            else
                kill(replicas[i], SIGKILL);
        }
    }
    fflush(stdout);
    return worst;
}

int main(int count, char **words) {
    if (count < LEAST_ARGUMENTS) {
        fprintf(stderr, "usage: differ-program KERNELS SEED STEPS REPLICAS [-STEP...]\n");
        return 2;
    }
    struct plan plan = {.kernels = words[1],
                        .seed = strtoull(words[2], NULL, 10),
                        .steps = (unsigned)strtoul(words[3], NULL, 10),
                        .replicas = (unsigned)strtoul(words[4], NULL, 10),
                        .left_out = words + LEAST_ARGUMENTS,
                        .left_out_count = count - LEAST_ARGUMENTS};
    pid_t replicas[MOST_REPLICAS];
    if (plan.replicas > MOST_REPLICAS) {
        fprintf(stderr, "differ-program: at most %d replicas\n", MOST_REPLICAS);
        return 2;
    }
    if (plan.replicas == 0)
        return run_soaking(&plan);
    pthread_barrier_t *const meet = make_barrier(plan.replicas);
    for (unsigned i = 0; i < plan.replicas; i++) {
        replicas[i] = fork();
        if (replicas[i] == 0)
            exit(run_replica(&plan, i, meet));
    }
    return await(replicas, plan.replicas);
}
