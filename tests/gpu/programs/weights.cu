// An ordinary server: it loads weights from a file, one cudaMalloc a layer, says when it is ready,
// and answers questions from its input, a line each, until "end".
//
// usage: weights make FILE BYTES SEED
//        weights serve FILE LAYERS [map|read|attach]   mmap; read by chunks; loads nothing
//        weights used                                  bytes of the card that are in use
//
// sum: a checksum over all layers. copy, set, kernel: the code of a copy, a memset, a kernel that
// writes into the first layer. handle: the interprocess handle of the first layer.
#include "kernels.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

static const size_t CHUNK = 64 << 20;

struct Weights {
    std::vector<uint32_t *> layers;
    size_t bytes; // of a layer
};

static double seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

static int make(const char *path, size_t bytes, uint32_t seed) {
    std::vector<uint32_t> chunk(CHUNK / 4);
    FILE *file = fopen(path, "w");
    for (size_t done = 0; file && done < bytes; done += CHUNK) {
        const size_t count = std::min(CHUNK, bytes - done) / 4;
        for (size_t i = 0; i < count; i++)
            chunk[i] = word_at(done / 4 + i, seed);
        if (fwrite(chunk.data(), 4, count, file) != count)
            return 3;
    }
    return !file || fclose(file) ? 3 : 0;
}

// What makes the bytes from `offset` on readable: the mapped file itself, or a buffer read into.
struct Source {
    int descriptor;
    const char *mapped; // or null
    std::vector<char> buffer;

    const void *at(size_t offset, size_t count) {
        if (mapped)
            return mapped + offset;
        buffer.resize(CHUNK);
        for (size_t done = 0; done < count;) {
            const ssize_t got =
                pread(descriptor, &buffer[done], count - done, (off_t)(offset + done));
            if (got <= 0)
                exit(3);
            done += (size_t)got;
        }
        return buffer.data();
    }
};

static Weights load(const char *path, size_t layers, const std::string &how) {
    Source source{open(path, O_RDONLY | O_CLOEXEC), nullptr, {}};
    const off_t size = lseek(source.descriptor, 0, SEEK_END);
    if (size <= 0)
        exit(3);
    if (how == "map") {
        void *at = mmap(nullptr, (size_t)size, PROT_READ, MAP_PRIVATE, source.descriptor, 0);
        if (at == MAP_FAILED)
            exit(3);
        source.mapped = (const char *)at;
    }
    Weights weights{std::vector<uint32_t *>(layers), (size_t)size / layers};
    for (size_t i = 0; i < layers; i++) {
        check(cudaMalloc((void **)&weights.layers[i], weights.bytes), "cudaMalloc");
        for (size_t done = 0; how != "attach" && done < weights.bytes; done += CHUNK) {
            const size_t count = std::min(CHUNK, weights.bytes - done);
            check(cudaMemcpy((char *)weights.layers[i] + done,
                             source.at(i * weights.bytes + done, count), count,
                             cudaMemcpyHostToDevice),
                  "cudaMemcpy");
        }
    }
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    if (source.mapped)
        munmap((void *)source.mapped, (size_t)size);
    close(source.descriptor);
    return weights;
}

static uint64_t sum(const Weights &weights) {
    uint64_t all = 0;
    for (const uint32_t *layer : weights.layers)
        all = all * 31 + sum_words(layer, weights.bytes / 4);
    return all;
}

static int write_by_kernel(uint32_t *layer) {
#ifdef __CUDACC__
    add_kernel<<<1, 64>>>(layer, 64, 1);
    return cudaDeviceSynchronize();
#else
    (void)layer;
    return -1; // no kernels here
#endif
}

static void print_handle(uint32_t *layer) {
    cudaIpcMemHandle_t handle;
    const int code = cudaIpcGetMemHandle(&handle, layer);
    printf("handle %d ", code);
    for (const char byte : handle.reserved)
        printf("%02x", code ? 0 : (unsigned char)byte);
    printf("\n");
}

static void answer(const Weights &weights, const std::string &question) {
    static const uint32_t zeros[64] = {};
    uint32_t *layer = weights.layers[0];
    int code = -1;
    if (question == "sum") {
        printf("sum %016llx\n", (unsigned long long)sum(weights));
        return;
    }
    if (question == "handle") {
        print_handle(layer);
        return;
    }
    if (question == "copy")
        code = cudaMemcpy(layer, zeros, sizeof(zeros), cudaMemcpyHostToDevice);
    else if (question == "set" && !(code = cudaMemset(layer, 0, sizeof(zeros))))
        code = cudaDeviceSynchronize();
    else if (question == "kernel")
        code = write_by_kernel(layer);
    (void)cudaGetLastError();
    printf("%s %d\n", question.c_str(), code);
}

static int serve(const char *path, size_t layers, const std::string &how) {
    const double started = seconds();
    char line[64];
    use_device();
    check(cudaFree(nullptr), "cudaFree"); // the context
    const double loading = seconds();
    const Weights weights = load(path, layers, how);
    printf("ready load %.4f start %.4f\n", seconds() - loading, loading - started);
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n") != 0) {
        line[strcspn(line, "\n")] = '\0';
        answer(weights, line);
        fflush(stdout);
    }
    for (uint32_t *layer : weights.layers)
        check(cudaFree(layer), "cudaFree");
    printf("ended\n");
    return 0;
}

int main(int argc, char **argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    if (what == "make" && argc == 5)
        return make(argv[2], strtoull(argv[3], nullptr, 10), (uint32_t)atoi(argv[4]));
    if (what == "serve" && argc >= 4)
        return serve(argv[2], (size_t)atoi(argv[3]), argc > 4 ? argv[4] : "map");
    if (what != "used")
        return 2;
    size_t left, total;
    check(cudaMemGetInfo(&left, &total), "cudaMemGetInfo");
    printf("%zu\n", total - left);
    return 0;
}
