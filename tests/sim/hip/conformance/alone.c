/* What a process finds alone. Each row is a process of its own. */
#include "hip.h"

#include "../../conformance/check.h"

#define AT(pointer, offset) ((void *)((char *)(pointer) + (offset)))

/* No allocation's: nothing is ever so low. */
static void *const unknown = (void *)(uintptr_t)0x10000;

static void *allocate(size_t size) {
    void *pointer = NULL;
    check("hipMalloc", 0, hip.hipMalloc(&pointer, size));
    return pointer;
}

/* --- doors --- */

static int has_version(const char *name, const char *version) {
    return dlvsym(hip.library, name, version) != NULL;
}

static void doors(void) {
    static const char *const first[] = {
        "hipMalloc",
        "hipMallocPitch",
        "hipExtMallocWithFlags",
        "hipFree",
        "hipIpcGetMemHandle",
        "hipIpcOpenMemHandle",
        "hipIpcCloseMemHandle",
        "hipIpcGetEventHandle",
        "hipIpcOpenEventHandle",
        "hipEventCreate",
        "hipEventDestroy",
        "hipPointerGetAttributes",
        "hipMemGetAddressRange",
        "hipDeviceReset",
        "hipGetLastError",
    };
    int count = 0;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        count += has_version(first[i], "hip_4.2");
    check("functions that have the version hip_4.2", sizeof first / sizeof *first, count);
    __typeof__(hipGetProcAddress) *find;
    *(void **)&find = dlsym(hip.library, "hipGetProcAddress");
    if (!find) {
        check_skip("hipGetProcAddress: not in this version");
        return;
    }
    void *found = NULL, *bare = dlopen("libamdhip64.so", RTLD_LAZY);
    const int code = find("hipMalloc", &found, 60000000, 0, NULL);
    check("hipGetProcAddress of hipMalloc", bare ? 0 : INVALID_VALUE, code);
    check("the same as dlsym's of the bare name", 1, !bare || found == dlsym(bare, "hipMalloc"));
    check("hipGetProcAddress of an unknown name", INVALID_VALUE,
          find("hipNoSuch", &found, 60000000, 0, NULL));
}

/* --- memory --- */

static void allocations(void) {
    void *pointer = unknown;
    size_t free_bytes, total = 0;
    check("hipMalloc, null", INVALID_VALUE, hip.hipMalloc(NULL, SIZE));
    check("hipMalloc of size 0", 0, hip.hipMalloc(&pointer, 0));
    check("gives null", 1, !pointer);
    check("hipMemGetInfo", 0, hip.hipMemGetInfo(&free_bytes, &total));
    check("hipMalloc, more than there is", OUT_OF_MEMORY, hip.hipMalloc(&pointer, 4 * total));
    hipStream_t stream = NULL;
    void *graph = NULL;
    check("hipStreamCreate", 0, hip.hipStreamCreate(&stream));
    check("hipStreamBeginCapture, global", 0, hip.hipStreamBeginCapture(stream, 0));
    check("hipMalloc beside it", CAPTURED, hip.hipMalloc(&pointer, SIZE));
    (void)hip.hipStreamEndCapture(stream, &graph);
    check("hipStreamDestroy", 0, hip.hipStreamDestroy(stream));
}

static void frees(void) {
    check("hipFree of null", 0, hip.hipFree(NULL));
    check("hipFree, unknown", INVALID_VALUE, hip.hipFree(unknown));
    void *pointer = allocate(SIZE);
    check("hipFree", 0, hip.hipFree(pointer));
    check("the second", INVALID_VALUE, hip.hipFree(pointer));
    pointer = allocate(SIZE);
    check("hipFree inside", 0, hip.hipFree(AT(pointer, 4096)));
    check("all of it was freed", INVALID_VALUE, hip.hipFree(pointer));
}

static int kind_of(const void *pointer, int *kind) {
    hipPointerAttribute_t told = {.type = -1};
    const int code = hip.hipPointerGetAttributes(&told, pointer);
    *kind = code ? -1 : told.type;
    return code;
}

static void attributes(void) {
    hipDeviceptr_t base = NULL;
    size_t size = 0;
    int kind;
    void *pointer = allocate(SIZE);
    check("hipPointerGetAttributes", 0, kind_of(AT(pointer, 4096), &kind));
    check("its kind", hip_device_kind(), kind);
    check("hipMemGetAddressRange", 0, hip.hipMemGetAddressRange(&base, &size, AT(pointer, 4096)));
    check("the base", 1, base == pointer);
    check("the size", SIZE, (int64_t)size);
    check("hipFree", 0, hip.hipFree(pointer));
    check("hipMemGetAddressRange, unknown", NOT_FOUND,
          hip.hipMemGetAddressRange(&base, &size, pointer));
    check("hipPointerGetAttributes, unknown", hip.major >= 6 ? 0 : INVALID_VALUE,
          kind_of(pointer, &kind));
    if (hip.major >= 6)
        check("its kind", HIP_MEMORY_UNREGISTERED, kind);
}

/* --- handles --- */

static uint64_t word(const hipIpcMemHandle_t *handle, size_t at, size_t size) {
    uint64_t value = 0;
    memcpy(&value, handle->reserved + at, size);
    return value;
}

static void layout(void *pointer) {
    hipIpcMemHandle_t one, inside;
    memset(&one, 0x11, sizeof one);
    memset(&inside, 0x22, sizeof inside);
    check("hipIpcGetMemHandle", 0, hip.hipIpcGetMemHandle(&one, pointer));
    check("hipIpcGetMemHandle inside", 0, hip.hipIpcGetMemHandle(&inside, AT(pointer, 4096)));
    check("the first 32 bytes are the same (assumed)", 0, memcmp(&one, &inside, 32));
    check("bytes 32 to 39: the size", SIZE, (int64_t)word(&one, 32, 8));
    check("bytes 40 to 47: the offset", 4096, (int64_t)word(&inside, 40, 8));
    check("bytes 48 to 51: the pid", getpid(), (int64_t)word(&one, 48, 4));
    if (hip.major >= 7)
        check("bytes 52 to 55: the device", 0, (int64_t)word(&one, 52, 4));
    check("bytes 56 to 63 are not written", 1,
          word(&one, 56, 8) != word(&inside, 56, 8) || !word(&one, 56, 8));
}

static void exports(void) {
    hipIpcMemHandle_t handle;
    void *pointer = allocate(SIZE);
    check("hipIpcGetMemHandle, null", INVALID_VALUE, hip.hipIpcGetMemHandle(NULL, pointer));
    check("of null", INVALID_VALUE, hip.hipIpcGetMemHandle(&handle, NULL));
    check("of an unknown pointer", INVALID_VALUE, hip.hipIpcGetMemHandle(&handle, unknown));
    check("of one past the end", INVALID_VALUE, hip.hipIpcGetMemHandle(&handle, AT(pointer, SIZE)));
    layout(pointer);
    check("hipFree", 0, hip.hipFree(pointer));
    check("of freed memory", INVALID_VALUE, hip.hipIpcGetMemHandle(&handle, pointer));
}

static void opens(void) {
    hipIpcMemHandle_t own, nothing;
    void *pointer = allocate(SIZE), *opened = NULL;
    memset(&nothing, 0, sizeof nothing);
    check("hipIpcGetMemHandle", 0, hip.hipIpcGetMemHandle(&own, pointer));
    check("hipIpcOpenMemHandle, null", INVALID_VALUE,
          hip.hipIpcOpenMemHandle(NULL, own, hip_flags()));
    check("other flags", INVALID_VALUE, hip.hipIpcOpenMemHandle(&opened, own, !hip_flags()));
    check("of a handle of zeroes", INVALID_VALUE,
          hip.hipIpcOpenMemHandle(&opened, nothing, hip_flags()));
    check("of its own", OWN, hip.hipIpcOpenMemHandle(&opened, own, hip_flags()));
    check("hipIpcCloseMemHandle of null", INVALID_VALUE, hip.hipIpcCloseMemHandle(NULL));
    check("unknown", INVALID_VALUE, hip.hipIpcCloseMemHandle(unknown));
    check("of own memory", INVALID_VALUE, hip.hipIpcCloseMemHandle(pointer));
    check("hipFree", 0, hip.hipFree(pointer));
}

/* --- the last error --- */

static void last_errors(void) {
    int device;
    (void)allocate(SIZE);
    check("hipFree, unknown", INVALID_VALUE, hip.hipFree(unknown));
    check("hipPeekAtLastError", INVALID_VALUE, hip.hipPeekAtLastError());
    check("hipPeekAtLastError again", INVALID_VALUE, hip.hipPeekAtLastError());
    check("hipGetDevice", 0, hip.hipGetDevice(&device));
    check("hipGetLastError: of the last call, or the last error", hip_by(0, INVALID_VALUE),
          hip.hipGetLastError());
    check("hipGetLastError again", 0, hip.hipGetLastError());
}

/* --- events --- */

enum { PLAIN = 2, INTERPROCESS = 4 };

static void events(void) {
    hipEvent_t event = NULL, plain = NULL, opened = NULL;
    hipIpcEventHandle_t handle;
    memset(&handle, 0, sizeof handle);
    check("hipEventCreateWithFlags, 4", INVALID_VALUE,
          hip.hipEventCreateWithFlags(&event, INTERPROCESS));
    check("4 and 2", 0, hip.hipEventCreateWithFlags(&event, INTERPROCESS | PLAIN));
    check("2", 0, hip.hipEventCreateWithFlags(&plain, PLAIN));
    check("hipIpcGetEventHandle, null", INVALID_VALUE, hip.hipIpcGetEventHandle(NULL, event));
    check("of an ordinary one", CANNOT_BE_SHARED, hip.hipIpcGetEventHandle(&handle, plain));
    check("of a shared one", 0, hip.hipIpcGetEventHandle(&handle, event));
    if (hip.major < 7)
        check("the handle is a name", 0, strncmp((char *)&handle, "/hip_event", 10));
    check("hipIpcOpenEventHandle, null", INVALID_VALUE, hip.hipIpcOpenEventHandle(NULL, handle));
    check("of its own", OWN, hip.hipIpcOpenEventHandle(&opened, handle));
    check("hipEventDestroy of null", NO_OBJECT, hip.hipEventDestroy(NULL));
    check("hipEventDestroy", 0, hip.hipEventDestroy(event));
    check("the second", DESTROYED, hip.hipEventDestroy(event));
    check("hipEventDestroy of the other", 0, hip.hipEventDestroy(plain));
}

/* --- the end --- */

static void resets(void) {
    void *pointer = allocate(SIZE);
    check("hipDeviceReset", 0, hip.hipDeviceReset());
    check("hipFree of what was there", INVALID_VALUE, hip.hipFree(pointer));
    check("hipFree of what is there now", 0, hip.hipFree(allocate(SIZE)));
}

void alone_rows(void) {
    check_in_child("door", doors);
    check_in_child("new", allocations);
    check_in_child("free", frees);
    check_in_child("attr", attributes);
    check_in_child("get", exports);
    check_in_child("open", opens);
    check_in_child("last", last_errors);
    check_in_child("evnt", events);
    check_in_child("rset", resets);
}
