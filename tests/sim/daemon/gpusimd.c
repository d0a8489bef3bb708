/*
 * gpusimd plays the kernel driver and the cards: it owns the memory and knows who holds what.
 *
 * One a user and $GPUSHARE_SIM_ROOT. The first client starts it; whoever binds the abstract socket
 * name is it, and later ones leave. It ends by itself a while after its last client is gone, and
 * the last descriptor that holds memory.
 * A single thread and no blocking call: nothing that a client does or leaves undone stops it.
 */
#include "descriptor.h"
#include "serve.h"

#include "../protocol.h"

#include <cuda.h>

enum { MAX_CLIENTS = 4096, DEFAULT_LINGER_MS = 2000 };
/* What is watched beside clients: who wants to be one, and descriptors. */
enum { LISTENER, HANG_UPS, OTHERS };

static const char usage[] =
    "usage: gpusimd [--foreground]\n"
    "The daemon of the simulated CUDA driver. libcuda.so.1 starts it by itself; start it by hand\n"
    "for clients that cannot, such as programs under qemu-user. --foreground keeps the terminal\n"
    "and never ends for want of clients.\n"
    "environment: GPUSHARE_SIM_DEVICES (1), GPUSHARE_SIM_MEMORY (8GiB a device),\n"
    "  GPUSHARE_SIM_LINGER_MS (2000), GPUSHARE_SIM_ROOT (default)\n";

static uint64_t unit_of(const char *suffix) {
    static const struct {
        const char *name;
        int shift;
    } units[] = {{"", 0},     {"K", 10},   {"M", 20},   {"G", 30},  {"T", 40},
                 {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(suffix, units[i].name))
            return (uint64_t)1 << units[i].shift;
    return 0;
}

/* The number in a variable, in its bounds, else the default: a test tool need not argue. */
static uint64_t setting(const char *name, uint64_t missing, uint64_t least, uint64_t most) {
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return missing;
    uint64_t value = strtoull(text, &end, 10), unit = unit_of(end);
    if (end == text || !unit || value > most / unit || value * unit < least) {
        fprintf(stderr, "gpusimd: %s=%s is not a number of %llu to %llu; using %llu\n", name, text,
                (unsigned long long)least, (unsigned long long)most, (unsigned long long)missing);
        return missing;
    }
    return value * unit;
}

/* The listening socket, or -errno; -EADDRINUSE: another one was first. */
static int elect(void) {
    struct sockaddr_un address;
    socklen_t size = sim_address(&address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) || listen(fd, SOMAXCONN)) {
        int error = -errno;
        if (fd >= 0)
            close(fd);
        return error;
    }
    return fd;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct {
    struct pollfd fds[OTHERS + 2 * MAX_CLIENTS]; /* then socket and pidfd of each client */
    struct client *clients[MAX_CLIENTS];
    nfds_t count;
} watch;

static void watch_all(int listener) {
    watch.fds[LISTENER] = (struct pollfd){.fd = listener, .events = POLLIN};
    watch.fds[HANG_UPS] = (struct pollfd){.fd = descriptor_watch(), .events = POLLIN};
    watch.count = 0;
    for (struct client *c = client_first(); c && watch.count < MAX_CLIENTS; c = c->next) {
        struct pollfd *pair = &watch.fds[OTHERS + 2 * watch.count];
        /* the calls of a process that is locked wait; its end shows all the same */
        const bool runs = c->state == CU_PROCESS_STATE_RUNNING;
        pair[0] = (struct pollfd){.fd = c->socket, .events = runs ? POLLIN : 0};
        pair[1] = (struct pollfd){.fd = c->pidfd, .events = POLLIN};
        watch.clients[watch.count++] = c;
    }
}

/*
 * Deaths first: who asks after a peer's death must not be answered as if that still lived. A death
 * that came before a request shows in the same poll.
 */
static void remove_dead(void) {
    for (nfds_t i = 0; i < watch.count; i++) {
        const struct pollfd *pair = &watch.fds[OTHERS + 2 * i];
        if (pair[1].revents || pair[0].revents & (POLLHUP | POLLERR)) {
            client_remove(watch.clients[i]);
            watch.clients[i] = NULL;
        }
    }
}

static void serve_living(void) {
    for (nfds_t i = 0; i < watch.count; i++)
        if (watch.clients[i] && watch.fds[OTHERS + 2 * i].revents &&
            watch.clients[i]->state == CU_PROCESS_STATE_RUNNING && !serve(watch.clients[i]))
            client_remove(watch.clients[i]);
}

static void accept_new(int listener) {
    int fd;
    while (client_count() < MAX_CLIENTS && (fd = accept(listener, NULL, NULL)) >= 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        client_add(fd);
    }
}

static void run(int listener, int64_t linger) {
    int64_t idle_since = now_ms();
    for (;;) {
        int64_t left = idle_since + linger - now_ms();
        bool idle = !client_first() && !descriptor_count();
        if (idle && linger >= 0 && left <= 0)
            return;
        watch_all(listener);
        int wait = idle && linger >= 0 ? (int)left : -1;
        if (poll(watch.fds, OTHERS + 2 * watch.count, wait) < 0)
            continue;
        remove_dead();
        if (watch.fds[HANG_UPS].revents)
            descriptor_reap();
        serve_living();
        if (watch.fds[LISTENER].revents)
            accept_new(listener);
        if (!idle)
            idle_since = now_ms();
    }
}

static void forget_callers_signals(void) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_IGN);
    /* It serves other processes too: the terminal's Ctrl-C is not for it. */
    signal(SIGHUP, SIG_IGN);
}

/* Two descriptors a client: the usual limit of 1024 is for programs that use select. */
static void raise_limit(void) {
    struct rlimit limit;
    if (!getrlimit(RLIMIT_NOFILE, &limit)) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv) {
    bool foreground = argc == 2 && !strcmp(argv[1], "--foreground");
    if (argc > 1 && !foreground) {
        fputs(usage, argc == 2 && !strcmp(argv[1], "--help") ? stdout : stderr);
        return argc == 2 && !strcmp(argv[1], "--help") ? 0 : 2;
    }
    uint64_t devices = setting("GPUSHARE_SIM_DEVICES", 1, 1, SIM_MAX_DEVICES);
    uint64_t bytes =
        setting("GPUSHARE_SIM_MEMORY", (uint64_t)8 << 30, SIM_BLOCK, (uint64_t)1 << 41);
    uint64_t linger = setting("GPUSHARE_SIM_LINGER_MS", DEFAULT_LINGER_MS, 0, 3600000);
    int listener = elect();
    if (listener == -EADDRINUSE && !foreground)
        return 0;
    int error = listener < 0 ? listener : serve_start((uint32_t)devices, bytes);
    if (error) {
        fprintf(stderr, "gpusimd: %s\n", strerror(-error));
        return 1;
    }
    if (!foreground)
        forget_callers_signals();
    raise_limit();
    run(listener, foreground ? -1 : (int64_t)linger);
    return 0;
}
