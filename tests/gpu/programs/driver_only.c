/*
 * An ordinary program of the driver API alone: a parent fills a buffer and exports it with an
 * event; each child, started by exec, opens both, checks the bytes, and changes its own part of
 * them.
 */
#include "../../common/system_headers.h"
#include <cuda.h>
#include <spawn.h>

enum { CHILDREN = 3, PART = 4 << 20, WHOLE = CHILDREN * PART };

struct board {
    CUipcMemHandle memory;
    CUipcEventHandle event;
};

extern char **environ;

static void check(CUresult result, const char *call) {
    const char *name = "?";
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    printf("%s: %s\n", call, name);
    fflush(stdout);
    exit(1);
}

static void start(CUcontext *context) {
    CUdevice device;
    check(cuInit(0), "cuInit");
    check(cuDeviceGet(&device, 0), "cuDeviceGet");
    check(cuCtxCreate(context, NULL, 0, device), "cuCtxCreate");
}

/* How many bytes from p on are `byte`. */
static size_t count(CUdeviceptr p, size_t size, unsigned char byte) {
    unsigned char *copy = malloc(size);
    size_t equal = 0;
    if (!copy)
        exit(1);
    check(cuMemcpyDtoH(copy, p, size), "cuMemcpyDtoH");
    for (size_t i = 0; i < size; i++)
        equal += copy[i] == byte;
    free(copy);
    return equal;
}

static struct board *map(int descriptor) {
    void *at = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (at == MAP_FAILED)
        exit(3);
    return at;
}

static int child(const struct board *board, size_t number) {
    CUcontext context;
    CUdeviceptr buffer;
    CUevent event;
    start(&context);
    check(cuIpcOpenMemHandle(&buffer, board->memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
          "cuIpcOpenMemHandle");
    check(cuIpcOpenEventHandle(&event, board->event), "cuIpcOpenEventHandle");
    check(cuEventSynchronize(event), "cuEventSynchronize");
    const CUdeviceptr part = buffer + number * PART;
    const size_t seen = count(part, PART, 0x11);
    check(cuMemsetD8(part, (unsigned char)(0x20 + number), PART), "cuMemsetD8");
    check((cuCtxSynchronize)(), "cuCtxSynchronize");
    check(cuEventDestroy(event), "cuEventDestroy");
    check(cuIpcCloseMemHandle(buffer), "cuIpcCloseMemHandle");
    check(cuCtxDestroy(context), "cuCtxDestroy");
    return seen == PART ? 0 : 2;
}

static int run_child(int descriptor, int number) {
    char words[2][16];
    char *arguments[] = {(char *)"driver_only", words[0], words[1], NULL};
    pid_t pid;
    int status = 1;
    snprintf(words[0], sizeof(words[0]), "%d", descriptor);
    snprintf(words[1], sizeof(words[1]), "%d", number);
    if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, arguments, environ))
        return 1;
    return waitpid(pid, &status, 0) != pid || status != 0;
}

static int parent(void) {
    const int descriptor = memfd_create("board", 0);
    if (descriptor < 0 || ftruncate(descriptor, sizeof(struct board)))
        return 3;
    struct board *board = map(descriptor);
    CUcontext context;
    CUdeviceptr buffer;
    CUevent event;
    int failed = 0;
    start(&context);
    check(cuMemAlloc(&buffer, WHOLE), "cuMemAlloc");
    check(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS), "cuEventCreate");
    check(cuMemsetD8(buffer, 0x11, WHOLE), "cuMemsetD8");
    check(cuEventRecord(event, NULL), "cuEventRecord");
    check(cuIpcGetMemHandle(&board->memory, buffer), "cuIpcGetMemHandle");
    check(cuIpcGetEventHandle(&board->event, event), "cuIpcGetEventHandle");
    for (int i = 0; i < CHILDREN; i++)
        failed += run_child(descriptor, i);
    for (size_t i = 0; i < CHILDREN; i++)
        printf("part %zu: %s\n", i,
               count(buffer + i * PART, PART, (unsigned char)(0x20 + i)) == PART ? "all" : "wrong");
    printf("%d children failed\n", failed);
    check(cuEventDestroy(event), "cuEventDestroy");
    check(cuMemFree(buffer), "cuMemFree");
    check(cuCtxDestroy(context), "cuCtxDestroy");
    return failed ? 2 : 0;
}

int main(int argc, char **argv) {
    if (argc == 3)
        return child(map(atoi(argv[1])), (size_t)atoi(argv[2]));
    return parent();
}
