// where.cpp - prints places in its own file, "0x1b2c", as a frame of a log has them: return
// addresses.
//
// For tests of what gpushare report makes of them: a call that was inlined into a member function,
// and one in a function with a name as Rust's compiler makes them.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>

static __attribute__((noinline)) void here() {
    Dl_info info;
    const char *address = static_cast<const char *>(__builtin_return_address(0));
    if (dladdr(address, &info))
        printf("0x%tx\n", address - static_cast<const char *>(info.dli_fbase));
}

namespace shop {
struct Buffer {
    int release(int times);
};

inline __attribute__((always_inline)) int drop(int times) {
    here(); // innermost
    return times + 1;
}

__attribute__((noinline)) int Buffer::release(int times) {
    return drop(times) + 1; // outer
}
} // namespace shop

int rust() __asm__("_ZN4shop6buffer7release17h05af221e174051e9E");
__attribute__((noinline)) int rust() {
    here();
    return 0;
}

int main(int argc, char **) {
    shop::Buffer buffer;
    return buffer.release(argc) == 3 ? rust() : 1;
}
