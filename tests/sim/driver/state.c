/* cuInit, and what fork and exit do to the library; see state.h. */
#include "state.h"

#include "device.h"
#include "link.h"
#include "physical.h"
#include "space.h"
#include "stream.h"

#include <linux/futex.h>

static struct {
    pthread_mutex_t lock, init_lock;
    pthread_cond_t change;
    atomic_int phase; /* of enum phase */
    /* One byte that the kernel clears in a fork child, also where atfork handlers do not run. */
    volatile unsigned char *witness;
    atomic_ullong serial;
    atomic_uint moves; /* of the page's word, that were looked at */
    bool child; /* what the atfork handler says where the kernel does not clear, as under qemu */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .init_lock = PTHREAD_MUTEX_INITIALIZER,
           .change = PTHREAD_COND_INITIALIZER};

enum phase { FRESH, READY, ENDED };

static void in_child(void) {
    state.child = true;
    link_forget();
}

static bool is_child(void) {
    return state.child || (state.witness && !*state.witness);
}

/* Registered in cuInit: handlers registered later run earlier and may still use the driver. */
static void teardown(void) {
    if (is_child()) {
        while (stream_own_used())
            raise(SIGSEGV); /* as on a card */
        return;
    }
    atomic_store(&state.phase, ENDED);
    link_close();
}

static bool watch_fork(void) {
    size_t size = 65536; /* a whole page, however large pages are */
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    madvise(page, size, MADV_WIPEONFORK);
    *(volatile unsigned char *)page = 1;
    atomic_thread_fence(memory_order_release); /* other threads look without a lock */
    state.witness = page;
    return !pthread_atfork(NULL, NULL, in_child);
}

/* The real one wants a /proc of its own pid namespace. */
static bool proc_is_ours(void) {
    char link[32];
    const ssize_t length = readlink("/proc/self", link, sizeof link - 1);
    if (length <= 0)
        return false;
    link[length] = '\0';
    return atoi(link) == (int)getpid();
}

static void *stay(void *unused) {
    for (;;)
        pause();
    return unused;
}

/* A real driver's threads stay with the process, and take its signals. */
static void start_thread(void) {
    const char *wanted = getenv("GPUSHARE_SIM_THREAD");
    pthread_t thread;
    sigset_t none, before;
    sigemptyset(&none);
    pthread_sigmask(SIG_SETMASK, &none, &before);
    if (wanted && pthread_create(&thread, NULL, stay, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static CUresult initialize(void) {
    REFUSE(!proc_is_ours(), CUDA_ERROR_OPERATING_SYSTEM);
    TRY(link_open());
    CUresult result = device_discover();
    if (result) {
        link_close();
        return result;
    }
    REFUSE((!state.witness && !watch_fork()) || atexit(teardown), CUDA_ERROR_OUT_OF_MEMORY);
    start_thread();
    atomic_store(&state.phase, READY);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuInit(unsigned int flags) {
    REFUSE(flags, CUDA_ERROR_INVALID_VALUE);
    REFUSE(is_child(), CUDA_ERROR_NOT_INITIALIZED);
    const int cancel = state_uncancelled();
    pthread_mutex_lock(&state.init_lock);
    int phase = atomic_load(&state.phase);
    CUresult result = CUDA_SUCCESS;
    if (phase == FRESH)
        result = initialize();
    else if (phase == ENDED)
        result = CUDA_ERROR_DEINITIALIZED;
    pthread_mutex_unlock(&state.init_lock);
    pthread_setcancelstate(cancel, NULL);
    return result;
}

/* Blocks that others hold are copies since a checkpoint. */
static void look_what_moved(void) {
    STATE_LOCKED();
    const uint32_t now = __atomic_load_n(link_lock(), __ATOMIC_ACQUIRE) & ~SIM_LOCKED;
    if (now != atomic_load(&state.moves)) {
        space_each(physical_moved);
        physical_all_moved();
        atomic_store(&state.moves, now);
    }
}

/* A call of a process that is locked waits, and handlers run meanwhile. */
static void await_unlock(void) {
    const uint32_t *word = link_lock();
    uint32_t seen;
    while (word && (seen = __atomic_load_n(word, __ATOMIC_ACQUIRE)) & SIM_LOCKED)
        syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
    if (word && seen != atomic_load_explicit(&state.moves, memory_order_relaxed))
        look_what_moved();
}

CUresult state_check(void) {
    int phase = atomic_load_explicit(&state.phase, memory_order_acquire);
    REFUSE(phase == FRESH || is_child(), CUDA_ERROR_NOT_INITIALIZED);
    if (phase == READY)
        await_unlock();
    return phase == ENDED ? CUDA_ERROR_DEINITIALIZED : CUDA_SUCCESS;
}

CUresult state_asked(void) {
    static atomic_int told = -1;
    if (told < 0)
        told = getenv("GPUSHARE_SIM_MEMORY_CODE") != NULL;
    const char *text = told ? getenv("GPUSHARE_SIM_MEMORY_CODE") : NULL;
    return text && *text ? (CUresult)atoi(text) : state_check();
}

int state_uncancelled(void) {
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

void state_lock(void) {
    pthread_mutex_lock(&state.lock);
}

void state_unlock(void) {
    pthread_mutex_unlock(&state.lock);
}

void state_wait(void) {
    pthread_cond_wait(&state.change, &state.lock);
}

void state_changed(void) {
    pthread_cond_broadcast(&state.change);
}

bool state_pause(const char *variable) {
    const char *milliseconds = getenv(variable);
    if (milliseconds)
        usleep((useconds_t)strtoul(milliseconds, NULL, 10) * 1000);
    return milliseconds;
}

uint64_t state_serial(void) {
    return atomic_fetch_add(&state.serial, 1) + 1;
}
