/* device.c - the buffers, streams and host memory of a replica. */
#include "program.h"

void device_note(struct replica *replica, int code) {
    if (!replica->code)
        replica->code = code;
}

static bool load_kernels(struct replica *replica, const char *path) {
    static char text[MIB];
    FILE *file = fopen(path, "re");
    CUmodule module;
    if (!file)
        return false;
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return !cuModuleLoadData(&module, text) &&
           !cuModuleGetFunction(&replica->read, module, "test_read") &&
           !cuModuleGetFunction(&replica->write, module, "test_write") &&
           !cuModuleGetFunction(&replica->add, module, "test_add") &&
           !cuModuleGetFunction(&replica->spin, module, "test_spin");
}

static bool make_streams(struct replica *replica) {
    replica->streams[0] = NULL;
    replica->streams[1] = CU_STREAM_PER_THREAD;
    for (int i = 2; i < STREAMS; i++)
        if (cuStreamCreate(&replica->streams[i],
                           i == 2 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
            return false;
    return true;
}

/* Memory that no rule takes, because it is too small for one. */
static bool make_small(struct buffer *buffer, size_t size) {
    *buffer = (struct buffer){.size = size, .stream = 0};
    return !cuMemAlloc(&buffer->at, size) && !cuMemsetD8(buffer->at, 0, size);
}

bool device_begin(struct replica *replica) {
    CUdevice device;
    for (int i = 0; i < BUFFERS; i++)
        replica->buffers[i] = (struct buffer){.stream = -1};
    replica->computed = (struct buffer){.stream = -1};
    if (!replica->registered)
        replica->registered =
            mmap(NULL, PINNED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return replica->registered != MAP_FAILED && !cuInit(0) && !cuDeviceGet(&device, 0) &&
           !cuDevicePrimaryCtxRetain(&replica->context, device) &&
           !cuCtxSetCurrent(replica->context) && load_kernels(replica, replica->kernels) &&
           make_streams(replica) && !cuEventCreate(&replica->turned, CU_EVENT_DISABLE_TIMING) &&
           !cuMemHostAlloc((void **)&replica->pinned, PINNED, 0) &&
           !cuMemHostRegister(replica->registered, PINNED, 0) &&
           make_small(&replica->scratch, SCRATCH) && make_small(&replica->sum, 4096);
}

void device_finish(struct replica *replica, struct buffer *buffer) {
    if (buffer->stream >= 0)
        device_note(replica, (int)cuStreamSynchronize(replica->streams[buffer->stream]));
    buffer->stream = -1;
}

void device_claim(struct replica *replica, struct buffer *buffer, int stream) {
    if (buffer->stream >= 0 && buffer->stream != stream && replica->claims++ % 2) {
        device_note(replica, (int)cuEventRecord(replica->turned, replica->streams[buffer->stream]));
        device_note(replica, (int)cuStreamWaitEvent(replica->streams[stream], replica->turned, 0));
    } else if (buffer->stream != stream) {
        device_finish(replica, buffer);
    }
    buffer->stream = stream;
}

void device_read(struct replica *replica, struct buffer *buffer, size_t from, size_t size) {
    unsigned char *const bytes = malloc(size ? size : 1);
    device_finish(replica, buffer);
    if (!bytes)
        abort();
    memset(bytes, 0, size);
    const int code = (int)cuMemcpyDtoH(bytes, buffer->at + from, size);
    device_note(replica, code);
    if (!code)
        replica->hash = replica->hash * 31 + bytes_hash(bytes, size);
    free(bytes);
}

CUresult device_launch(struct replica *replica, CUfunction kernel, int stream, void **arguments) {
    return cuLaunchKernel(kernel, 64, 1, 1, 256, 1, 1, 0, replica->streams[stream], arguments,
                          NULL);
}
