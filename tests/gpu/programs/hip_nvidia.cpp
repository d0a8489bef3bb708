// An ordinary HIP program, for NVIDIA cards: with __HIP_PLATFORM_NVIDIA__ its calls are CUDA's, by
// AMD's header. By its name it is a writer, which fills a buffer, or a reader, which finds it and
// writes to its second half. "MIB [wait|twice]": the writer waits for a line on its input and tells
// what the reader wrote; or it frees the buffer once too often, which is a bug.
#define __HIP_PLATFORM_NVIDIA__
#include <hip/hip_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

static void check(hipError_t code, const char *call) {
    if (code == hipSuccess)
        return;
    printf("%s: %d\n", call, code);
    exit(1);
}

static const char *how_much(const unsigned char *from, size_t bytes, int byte) {
    std::vector<unsigned char> got(bytes);
    check(hipMemcpy(got.data(), from, bytes, hipMemcpyDeviceToHost), "hipMemcpy");
    return got == std::vector<unsigned char>(bytes, (unsigned char)byte) ? "all" : "not all";
}

static int write(unsigned char *buffer, size_t bytes, const std::string &what) {
    check(hipMemset(buffer, 0x5a, bytes), "hipMemset");
    check(hipDeviceSynchronize(), "hipDeviceSynchronize");
    printf("writer filled %zu MiB\n", bytes >> 20);
    fflush(stdout);
    if (what == "wait") {
        (void)getchar();
        printf("writer sees the reader's bytes in %s of its second half\n",
               how_much(buffer + bytes / 2, bytes / 2, 0x77));
    }
    check(hipFree(buffer), "hipFree");
    if (what == "twice")
        printf("the second hipFree: %d\n", hipFree(buffer)); // a bug
    return 0;
}

static int read(unsigned char *buffer, size_t bytes) {
    const std::string found = how_much(buffer, bytes, 0x5a);
    check(hipMemset(buffer + bytes / 2, 0x77, bytes / 2), "hipMemset");
    check(hipDeviceSynchronize(), "hipDeviceSynchronize");
    printf("reader found %s of what the writer wrote\n", found.c_str());
    check(hipFree(buffer), "hipFree");
    return found == "all" ? 0 : 2;
}

int main(int argc, char **argv) {
    const size_t bytes = (size_t)atoi(argv[1]) << 20;
    const char *slash = strrchr(argv[0], '/');
    unsigned char *buffer;
    check(hipMalloc((void **)&buffer, bytes), "hipMalloc");
    return strncmp(slash ? slash + 1 : argv[0], "reader", 6) == 0
               ? read(buffer, bytes)
               : write(buffer, bytes, argc > 2 ? argv[2] : "");
}
