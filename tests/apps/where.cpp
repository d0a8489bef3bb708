// where.cpp - prints places in its own file, "0x1b2c", as a frame of a log has them: return
// addresses.
//
// For tests of what gpushare report makes of them: a call that was inlined into a member function,
// one in a function with a name as Rust's compiler makes them, and some in functions with the long
// names that templates get.
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

template <typename... Goods> struct Shelf {
    template <typename... More> static __attribute__((noinline)) int call(Shelf<More...> *) {
        here();
        return 1;
    }
    int operator()(Shelf<Goods...> *) __attribute__((noinline)) {
        here();
        return 2;
    }
};

template <typename Left, typename Right>
__attribute__((noinline)) int operator<(const Left &, const Right &) {
    here();
    return 3;
}

namespace {
template <typename Left, bool (*compare)(Left, Left)> __attribute__((noinline)) int sort() {
    here();
    return 4;
}
template <typename Goods> bool less(Goods, Goods) {
    return false;
}
} // namespace

using Long = Shelf<Buffer, Shelf<Buffer, Buffer>, Shelf<Shelf<Buffer>, Buffer, Shelf<Buffer>>>;
static int long_names() {
    Long shelf;
    return Long::call(&shelf) + shelf(&shelf) + (shelf < shelf) + sort<Long, less<Long>>();
}
} // namespace shop

int rust() __asm__("_ZN4shop6buffer7release17h05af221e174051e9E");
__attribute__((noinline)) int rust() {
    here();
    return 0;
}

int main(int argc, char **) {
    shop::Buffer buffer;
    return buffer.release(argc) == 3 && rust() == 0 ? shop::long_names() - 10 : 1;
}
