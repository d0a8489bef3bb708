/* The connection to gpusimd; see link.h. */
#include "link.h"

#include "spawn.h"
#include "state.h"

#include "../message.h"

enum {
    /* The memory files are mapped in windows, when first touched: programs touch little of them. */
    WINDOW_SHIFT = 26,
    WINDOWS = 1 << 18,
    RETRY_MS = 2,
    RESPAWN_MS = 250,
    TIMEOUT_MS = 8000,
    /* Out of the way of programs that count on low numbers. */
    HIGH_DESCRIPTOR = 200,
};

static struct {
    pthread_mutex_t lock;
    int socket;
    struct sim_reply hello;
    int memory[SIM_MAX_DEVICES];
    void **windows[SIM_MAX_DEVICES];
    struct sim_page *page;
} line = {.lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1};

static int move_high(int fd) {
    int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_DESCRIPTOR);
    if (high < 0)
        return fd;
    close(fd);
    return high;
}

static bool take_descriptors(const struct parcel *parcel) {
    uint32_t count = (uint32_t)line.hello.b;
    if (count > SIM_MAX_DEVICES || parcel->count != count + 1)
        return false;
    for (uint32_t i = 0; i < count; i++)
        line.memory[i] = move_high(parcel->fds[i + 1]);
    return true;
}

static bool map_events(int fd) {
    void *page = mmap(NULL, sizeof(struct sim_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    line.page = page == MAP_FAILED ? NULL : page;
    return line.page;
}

/* -EAGAIN: the daemon was about to end; try again. */
static int greet(int fd) {
    struct sim_request request = {.op = SIM_HELLO, .a = SIM_PROTOCOL};
    struct parcel parcel = {.count = 0};
    if (!sim_send(fd, &request, sizeof request, &parcel, 0))
        return -EAGAIN;
    if (sim_receive(fd, &line.hello, sizeof line.hello, &parcel, 0) != sizeof line.hello)
        return -EAGAIN;
    if (line.hello.code || !take_descriptors(&parcel) || !map_events(parcel.fds[0]))
        return -EPROTO;
    return 0;
}

/* A socket on which the daemon has greeted us, or -errno. */
static int try_connect(void) {
    struct sockaddr_un address;
    socklen_t size = sim_address(&address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int error = connect(fd, (struct sockaddr *)&address, size) ? -errno : greet(fd);
    if (!error)
        return move_high(fd);
    close(fd);
    return error == -ECONNREFUSED ? -EAGAIN : error;
}

CUresult link_open(void) {
    struct timespec nap = {.tv_nsec = RETRY_MS * 1000000};
    for (int waited = 0; waited < TIMEOUT_MS; waited += RETRY_MS) {
        int fd = try_connect();
        if (fd >= 0) {
            line.socket = fd;
            for (uint32_t i = 0; i < line.hello.b; i++)
                if (!line.windows[i] && !(line.windows[i] = calloc(WINDOWS, sizeof(void *))))
                    return CUDA_ERROR_OUT_OF_MEMORY;
            return CUDA_SUCCESS;
        }
        REFUSE(fd != -EAGAIN && fd != -EINTR, CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
        /* Again now and then: the one we started may have lost to one that was just ending. */
        REFUSE(waited % RESPAWN_MS == 0 && !spawn_daemon(), CUDA_ERROR_NO_DEVICE);
        nanosleep(&nap, NULL);
    }
    return CUDA_ERROR_NO_DEVICE;
}

void link_forget(void) {
    /* A raw close: the child must not meet a mutex that a thread of the parent's held. */
    if (line.socket >= 0)
        close(line.socket);
    line.socket = -1;
}

void link_close(void) {
    pthread_mutex_lock(&line.lock);
    link_forget();
    pthread_mutex_unlock(&line.lock);
}

/* `parcel` goes with the request, and is then what came with the reply. */
static bool transfer(const struct sim_request *request, struct sim_reply *reply,
                     struct parcel *parcel) {
    return sim_send(line.socket, request, sizeof *request, parcel, 0) &&
           sim_receive(line.socket, reply, sizeof *reply, parcel, 0) == sizeof *reply;
}

CUresult link_pass(const struct sim_request *request, struct sim_reply *reply, int give,
                   int *taken) {
    struct parcel parcel = {.fds = {give}, .count = give >= 0};
    const int cancel = state_uncancelled();
    pthread_mutex_lock(&line.lock);
    if (line.socket < 0 || !transfer(request, reply, &parcel)) {
        *reply = (struct sim_reply){.code = CUDA_ERROR_UNKNOWN};
        parcel.count = 0;
    }
    pthread_mutex_unlock(&line.lock);
    if (taken && parcel.count)
        *taken = parcel.fds[--parcel.count];
    sim_discard(&parcel);
    pthread_setcancelstate(cancel, NULL);
    return (CUresult)reply->code;
}

CUresult link_call(const struct sim_request *request, struct sim_reply *reply) {
    struct sim_reply unused = {0};
    return link_pass(request, reply ? reply : &unused, -1, NULL);
}

uint32_t link_client(void) {
    return (uint32_t)line.hello.a;
}

uint32_t link_devices(void) {
    return (uint32_t)line.hello.b;
}

uint64_t link_memory(void) {
    return line.hello.c;
}

struct sim_event *link_event(uint64_t slot) {
    return slot < SIM_MAX_EVENTS ? &line.page->events[slot] : NULL;
}

uint32_t *link_lock(void) {
    return line.page ? &line.page->locks[line.hello.a % SIM_MAX_CLIENTS] : NULL;
}

uint32_t *link_faults(uint32_t device) {
    return &line.page->faults[device];
}

static void *map_window(uint32_t device, uint64_t window) {
    void *at = __atomic_load_n(&line.windows[device][window], __ATOMIC_ACQUIRE);
    if (at)
        return at;
    pthread_mutex_lock(&line.lock);
    at = line.windows[device][window];
    if (!at) {
        at = mmap(NULL, (size_t)1 << WINDOW_SHIFT, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_NORESERVE, line.memory[device], (off_t)(window << WINDOW_SHIFT));
        at = at == MAP_FAILED ? NULL : at;
        __atomic_store_n(&line.windows[device][window], at, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&line.lock);
    return at;
}

unsigned char *link_reach(uint32_t device, uint64_t offset, uint64_t *length) {
    uint64_t window = offset >> WINDOW_SHIFT, size = (uint64_t)1 << WINDOW_SHIFT;
    uint64_t inside = offset & (size - 1);
    if (window >= WINDOWS)
        return NULL;
    unsigned char *at = map_window(device, window);
    if (*length > size - inside)
        *length = size - inside;
    return at ? at + inside : NULL;
}
