/* The runtime's state: the driver's calls, the primary contexts, each thread's device and error. */
#include "runtime.h"

enum { MAX_DEVICES = 64 };

typedef CUresult find_function(const char *, void **, int, cuuint64_t,
                               CUdriverProcAddressQueryResult *);

static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    bool loaded;
    struct driver legacy, per_thread;
    CUcontext primary[MAX_DEVICES]; /* NULL: not retained */
    CUcontext known[MAX_DEVICES];   /* also after a reset */
} runtime = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct {
    int device;
    cudaError_t error;
} thread;

static bool find_all(find_function *find, struct driver *driver, cuuint64_t flags) {
    CUdriverProcAddressQueryResult status;
    bool all = true;
#define DRIVER(name, version)                                                                      \
    all &= !find(#name, (void **)&driver->name, version, flags, &status) && driver->name;
#include "driver.def"
#undef DRIVER
    return all;
}

static void load(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = library ? dlsym(library, "cuGetProcAddress_v2") : NULL;
    find_function *find = (find_function *)(uintptr_t)symbol;
    runtime.loaded =
        find && find_all(find, &runtime.legacy, CU_GET_PROC_ADDRESS_DEFAULT) &&
        find_all(find, &runtime.per_thread, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
}

static cudaError_t retain(int device, CUcontext *context) {
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&runtime.lock);
    if (!runtime.primary[device]) {
        result = runtime.legacy.cuDevicePrimaryCtxRetain(&runtime.primary[device], device);
        runtime.known[device] = runtime.primary[device];
    }
    *context = runtime.primary[device];
    pthread_mutex_unlock(&runtime.lock);
    return (cudaError_t)result;
}

/* A context of the driver API's that is current is used as it is, like the real one. */
static cudaError_t ensure_context(void) {
    CUcontext current, primary;
    CUresult result = runtime.legacy.cuCtxGetCurrent(&current);
    if (result)
        return (cudaError_t)result;
    pthread_mutex_lock(&runtime.lock);
    bool was_reset =
        current && current == runtime.known[thread.device] && !runtime.primary[thread.device];
    pthread_mutex_unlock(&runtime.lock);
    if (current && !was_reset)
        return cudaSuccess;
    cudaError_t error = retain(thread.device, &primary);
    return error ? error : (cudaError_t)runtime.legacy.cuCtxSetCurrent(primary);
}

static _Atomic bool initialised;

static void forget_in_child(void) {
    initialised = false;
}

/* Once in a process, like the real one: a hooked cuInit in each call would be a cost that no card
 * has. */
static cudaError_t initialise(void) {
    if (initialised)
        return cudaSuccess;
    cudaError_t error = (cudaError_t)runtime.legacy.cuInit(0);
    if (!error)
        pthread_atfork(NULL, NULL, forget_in_child);
    initialised = !error;
    return error;
}

cudaError_t runtime_begin(enum need need, bool per_thread, const struct driver **driver) {
    cudaError_t error = cudaSuccess;
    pthread_once(&runtime.once, load);
    if (!runtime.loaded)
        return cudaErrorInsufficientDriver;
    if (need >= NEED_DRIVER)
        error = initialise();
    if (!error && need >= NEED_CONTEXT)
        error = ensure_context();
    if (!error)
        *driver = per_thread ? &runtime.per_thread : &runtime.legacy;
    return error;
}

cudaError_t runtime_end(cudaError_t error) {
    if (error && error != cudaErrorNotReady)
        thread.error = error;
    return error;
}

cudaError_t runtime_result(CUresult result) {
    return runtime_end((cudaError_t)result);
}

int runtime_device(void) {
    return thread.device;
}

cudaError_t runtime_set_device(int device) {
    CUcontext context;
    cudaError_t error = retain(device, &context);
    if (!error)
        error = (cudaError_t)runtime.legacy.cuCtxSetCurrent(context);
    if (!error)
        thread.device = device;
    return error;
}

void runtime_forget_device(int device) {
    pthread_mutex_lock(&runtime.lock);
    runtime.primary[device] = NULL;
    pthread_mutex_unlock(&runtime.lock);
}

cudaError_t CUDARTAPI cudaGetLastError(void) {
    cudaError_t error = thread.error;
    thread.error = cudaSuccess;
    return error;
}

cudaError_t CUDARTAPI cudaPeekAtLastError(void) {
    return thread.error;
}
