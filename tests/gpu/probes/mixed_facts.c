/*
 * mixed_facts.c - whether a driver opens a memory handle whose beginning is of one allocation and
 * whose end of another, and what it maps then.
 *
 *   cc -std=gnu11 -O1 mixed_facts.c -o mixed_facts -lcuda && ./mixed_facts
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void begin(void) {
    CUdevice device;
    CUcontext context;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context))
        exit(9);
}

static void exporter(int channel, size_t second) {
    CUdeviceptr p, q;
    CUipcMemHandle handles[2];
    char byte;
    begin();
    if (cuMemAlloc(&p, 2 << 20) || cuMemAlloc(&q, second) || cuMemsetD8(p, 0x11, 2 << 20) ||
        cuMemsetD8(q, 0x22, second) || cuCtxSynchronize() || cuIpcGetMemHandle(&handles[0], p) ||
        cuIpcGetMemHandle(&handles[1], q))
        exit(8);
    send(channel, handles, sizeof(handles), 0);
    recv(channel, &byte, 1, 0);
    exit(0);
}

static void importer(int channel) {
    CUipcMemHandle handles[2];
    if (recv(channel, handles, sizeof(handles), MSG_WAITALL) != sizeof(handles))
        exit(7);
    begin();
    for (unsigned cut = 4; cut < 64; cut += 4) {
        CUipcMemHandle mixed = handles[0];
        CUdeviceptr at = 0, base = 0;
        size_t size = 0;
        unsigned char byte = 0;
        memcpy(mixed.reserved + cut, handles[1].reserved + cut, 64 - cut);
        const int code = cuIpcOpenMemHandle(&at, mixed, 1);
        if (code == 0) {
            cuMemcpyDtoH(&byte, at, 1);
            cuMemGetAddressRange(&base, &size, at);
        }
        printf("from byte %2u: %d%s", cut, code, code ? "\n" : "");
        if (code == 0)
            printf(", byte 0x%02x, %zu bytes, close %d\n", byte, size, cuIpcCloseMemHandle(at));
    }
    send(channel, "", 1, 0);
}

static void pair(size_t second) {
    int channel[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, channel);
    printf("the second has %zu bytes\n", second);
    fflush(stdout);
    if (fork() == 0)
        exporter(channel[0], second);
    if (fork() == 0) {
        importer(channel[1]);
        exit(0);
    }
    while (wait(NULL) > 0)
        ;
}

int main(void) {
    pair(2 << 20);
    pair(4 << 20);
    return 0;
}
