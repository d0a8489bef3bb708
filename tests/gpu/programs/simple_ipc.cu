// An ordinary CUDA program that shares memory itself, as NVIDIA's simpleIPC does: a parent
// allocates a buffer a child, in turn on each card; the children, processes of their own, add to
// every buffer, one after the other, each waiting on the card for the event of the one before.
// "simple_ipc [N]".
#include "kernels.hpp"

#include <atomic>
#include <spawn.h>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 16, ROUNDS = 3 };
static const size_t COUNT = 4 << 20; // words: 16 MiB

struct Board { // in memory that all of them map
    int children, devices;
    std::atomic<int> arrived, phase;
    cudaIpcMemHandle_t memory[MOST];
    cudaIpcEventHandle_t event[MOST];
};

static void everybody(Board *board) { // waits until all children are here
    const int phase = board->phase;
    if (board->arrived.fetch_add(1) + 1 == board->children) {
        board->arrived = 0;
        board->phase = phase + 1;
    }
    while (board->phase == phase)
        usleep(100);
}

static Board *map(int descriptor) {
    void *at = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (at == MAP_FAILED)
        exit(3);
    return (Board *)at;
}

static int child(Board *board, int me) {
    uint32_t *buffers[MOST];
    cudaEvent_t events[MOST];
    cudaStream_t stream;
    check(cudaSetDevice(me % board->devices), "cudaSetDevice");
    check(cudaStreamCreate(&stream), "cudaStreamCreate");
    for (int i = 0; i < board->children; i++) {
        check(cudaIpcOpenMemHandle((void **)&buffers[i], board->memory[i],
                                   cudaIpcMemLazyEnablePeerAccess),
              "cudaIpcOpenMemHandle");
        check(cudaIpcOpenEventHandle(&events[i], board->event[i]), "cudaIpcOpenEventHandle");
    }
    for (int round = 0; round < ROUNDS * board->children; round++) {
        const int i = (me + round) % board->children;
        check(cudaStreamWaitEvent(stream, events[i], 0), "cudaStreamWaitEvent");
        add(buffers[i], COUNT, 1, stream);
        // A card records only events of its own: without it the host waits.
        if (me % board->devices != i % board->devices ||
            cudaEventRecord(events[i], stream) != cudaSuccess)
            check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        (void)cudaGetLastError();
        everybody(board);
    }
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    everybody(board); /* the last to add to ours is another one */
    const uint32_t added = (uint32_t)(ROUNDS * board->children);
    const size_t seen = count_words(buffers[me], COUNT, 7, added);
    for (int i = 0; i < board->children; i++) {
        check(cudaEventDestroy(events[i]), "cudaEventDestroy");
        check(cudaIpcCloseMemHandle(buffers[i]), "cudaIpcCloseMemHandle");
    }
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");
    return seen == COUNT ? 0 : 2;
}

static pid_t start_child(int descriptor, int number) {
    std::string words[3] = {"simple_ipc", std::to_string(descriptor), std::to_string(number)};
    char *arguments[] = {&words[0][0], (char *)"child", &words[1][0], &words[2][0], nullptr};
    pid_t pid = 0;
    if (posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments, environ))
        exit(3);
    return pid;
}

static int parent(int children) {
    const int descriptor = memfd_create("board", 0);
    if (descriptor < 0 || ftruncate(descriptor, sizeof(Board)))
        return 3;
    Board *board = map(descriptor);
    uint32_t *buffers[MOST];
    cudaEvent_t events[MOST];
    pid_t pids[MOST];
    int failed = 0;
    board->children = children;
    check(cudaGetDeviceCount(&board->devices), "cudaGetDeviceCount");
    for (int i = 0; i < children; i++) {
        check(cudaSetDevice(i % board->devices), "cudaSetDevice");
        check(cudaMalloc((void **)&buffers[i], COUNT * 4), "cudaMalloc");
        check(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming | cudaEventInterprocess),
              "cudaEventCreateWithFlags");
        fill(buffers[i], COUNT, 7);
        check(cudaDeviceSynchronize(), "fill");
        check(cudaEventRecord(events[i], nullptr), "cudaEventRecord");
        check(cudaIpcGetMemHandle(&board->memory[i], buffers[i]), "cudaIpcGetMemHandle");
        check(cudaIpcGetEventHandle(&board->event[i], events[i]), "cudaIpcGetEventHandle");
    }
    for (int i = 0; i < children; i++)
        pids[i] = start_child(descriptor, i);
    for (int i = 0, status; i < children; i++)
        failed += waitpid(pids[i], &status, 0) != pids[i] || status != 0;
    for (int i = 0; i < children; i++) {
        check(cudaSetDevice(i % board->devices), "cudaSetDevice");
        const size_t seen = count_words(buffers[i], COUNT, 7, (uint32_t)(ROUNDS * children));
        printf("buffer %d: %s of what %d children added\n", i, how_much(seen, COUNT), children);
        check(cudaEventDestroy(events[i]), "cudaEventDestroy");
        check(cudaFree(buffers[i]), "cudaFree");
    }
    printf("%d children failed\n", failed);
    return failed ? 2 : 0;
}

int main(int argc, char **argv) {
    if (argc == 4)
        return child(map(atoi(argv[2])), atoi(argv[3]));
    const int children = argc > 1 ? atoi(argv[1]) : 4;
    return parent(children > 0 && children <= MOST ? children : 4);
}
