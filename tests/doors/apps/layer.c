/* layer.c - a libcuda.so.1 that goes on in another driver, libcuda-inner.so beside it: each
 * function jumps to that one's, so its resolvers answer with the other one's addresses. */
#include <dlfcn.h>
#include <stdlib.h>

#ifdef __x86_64__
#define JUMP(name) "jmp *real_" name "(%rip)\n"
#else
#define JUMP(name) "adrp x16, real_" name "\nldr x16, [x16, #:lo12:real_" name "]\nbr x16\n"
#endif
#define FORWARD(name)                                                                              \
    extern void *real_##name __attribute__((visibility("hidden")));                                \
    void *real_##name;                                                                             \
    __asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" JUMP(#name));
#include "layer.inc"
#undef FORWARD

__attribute__((constructor)) static void find_inner(void) {
    void *const inner = dlopen("libcuda-inner.so", RTLD_NOW);
    if (!inner)
        abort();
#define FORWARD(name) real_##name = dlsym(inner, #name);
#include "layer.inc"
}
