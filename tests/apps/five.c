/*
 * five.c - a camera and a viewer that work, as far as anyone noticed, with five bugs in them.
 *
 * The camera fills frames in device memory and sends their handles through a pipe; the viewer
 * looks at them. It stands for what people really run: it takes care, it checks codes, it frees and
 * closes nearly everything. An audit has to name the five, and nothing else:
 *
 *   BUG 1  the viewer opens every frame and closes it, but for the ones it skips    leak-open
 *   BUG 2  it closes the pixels that follow a frame's header, not the frame          close-interior
 *   BUG 3  the camera renews its table; the viewer opens the handle of the old one   open-stale
 *   BUG 4  the camera's error path frees a scratch buffer that is freed already      double-free
 *   BUG 5  the event that should say "done" was made with default flags event-not-interprocess
 *
 * The exit status is 0 as long as every frame held what it should.
 */
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FRAME = 4 << 20, HEADER = 64 << 10, FRAMES = 4, SKIPPED = 2 };
enum { LAZY = cudaIpcMemLazyEnablePeerAccess };

struct message {
    cudaIpcMemHandle_t handle;
    int number; /* of the frame, in each of its bytes */
};

static int channel;

static void die(const char *what) {
    fprintf(stderr, "five: %s\n", what);
    exit(1);
}

static void put(const void *bytes, size_t size) {
    if (send(channel, bytes, size, MSG_NOSIGNAL) != (ssize_t)size)
        die("the other process is gone");
}

static void get(void *bytes, size_t size) {
    if (recv(channel, bytes, size, MSG_WAITALL) != (ssize_t)size)
        die("the other process is gone");
}

/* --- the camera --- */

static void *new_buffer(int byte) {
    void *buffer = NULL;
    if (cudaMalloc(&buffer, FRAME) || cudaMemset(buffer, byte, FRAME) || cudaDeviceSynchronize())
        die("no memory");
    return buffer;
}

static void publish(void *buffer, int number) {
    struct message message = {.number = number};
    if (cudaIpcGetMemHandle(&message.handle, buffer))
        die("no handle");
    put(&message, sizeof(message));
}

/* Tries a faster way to say "done", and falls back to messages when it cannot be had. */
static bool share_event(void) {
    cudaEvent_t done = NULL;
    cudaIpcEventHandle_t handle;
    if (cudaEventCreate(&done)) /* BUG 5: it takes cudaEventInterprocess | cudaEventDisableTiming */
        return false;
    const bool shared = cudaIpcGetEventHandle(&handle, done) == cudaSuccess;
    cudaEventDestroy(done);
    return shared;
}

static bool denoise(int number) {
    void *scratch = new_buffer(0);
    bool good = cudaMemset(scratch, number, FRAME) == cudaSuccess;
    cudaFree(scratch);
    if (number == FRAMES - 1)
        good = false; /* the last frame is too dark for it */
    if (!good)
        goto failed;
    return true;
failed:
    cudaFree(scratch); /* BUG 4: freed above */
    return false;
}

static void send_frames(void *frames[FRAMES]) {
    char seen;
    for (int number = 0; number < FRAMES; number++) {
        frames[number] = new_buffer(number);
        denoise(number);
        publish(frames[number], number);
        get(&seen, 1);
    }
}

/* The calibration table: sent once, then renewed, and sent again. */
static void send_tables(void) {
    char seen;
    void *table = new_buffer(0x40);
    publish(table, 0x40);
    cudaFree(table);
    table = new_buffer(0x41);
    publish(table, 0x41);
    get(&seen, 1);
    cudaFree(table);
}

static int camera(pid_t viewer) {
    void *frames[FRAMES];
    int status = 0;
    if (!share_event())
        put("m", 1); /* by message, then */
    send_frames(frames);
    send_tables();
    waitpid(viewer, &status, 0);
    for (int number = 0; number < FRAMES; number++)
        cudaFree(frames[number]);
    return status ? 1 : 0;
}

/* --- the viewer --- */

static bool holds(const void *memory, int number) {
    unsigned char byte = 0;
    return cudaMemcpy(&byte, memory, 1, cudaMemcpyDeviceToHost) == cudaSuccess && byte == number;
}

/* Some of the code passes frames around by their pixels. */
static void release_pixels(char *pixels) {
    if (cudaIpcCloseMemHandle(pixels))          /* BUG 2: a pointer into the frame */
        cudaIpcCloseMemHandle(pixels - HEADER); /* found by trial: "sometimes needs this" */
}

static void see_frame(int number) {
    struct message message;
    void *frame = NULL;
    get(&message, sizeof(message));
    if (cudaIpcOpenMemHandle(&frame, message.handle, LAZY) || !holds(frame, number))
        die("a frame is wrong");
    if (number == SKIPPED)
        return; /* BUG 1: it stays open */
    if (number == 1)
        release_pixels((char *)frame + HEADER);
    else
        cudaIpcCloseMemHandle(frame);
}

static void see_tables(void) {
    struct message first, second;
    void *table = NULL;
    get(&first, sizeof(first));
    get(&second, sizeof(second));
    /* BUG 3: takes what came first; its memory is freed, and given out again */
    if (cudaIpcOpenMemHandle(&table, first.handle, LAZY) == cudaSuccess)
        cudaIpcCloseMemHandle(table);
    else if (cudaIpcOpenMemHandle(&table, second.handle, LAZY) == cudaSuccess)
        cudaIpcCloseMemHandle(table);
}

static void viewer(void) {
    char how;
    get(&how, 1);
    for (int number = 0; number < FRAMES; number++) {
        see_frame(number);
        put("", 1);
    }
    see_tables();
    put("", 1);
    printf("viewer: %d frames seen\n", FRAMES);
}

int main(int argc, char **argv) {
    int ends[2];
    char number[16];
    if (argc == 3 && strcmp(argv[1], "viewer") == 0) {
        channel = atoi(argv[2]);
        viewer();
        return 0;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        die("no socket");
    snprintf(number, sizeof(number), "%d", ends[1]);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        execl("/proc/self/exe", "five", "viewer", number, NULL);
        _exit(1);
    }
    close(ends[1]);
    channel = ends[0];
    return camera(child);
}
