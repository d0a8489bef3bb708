/*
 * lookups.c - that dlsym and dlvsym are as if nobody stood in between: what they answer for names
 * that have nothing to do with CUDA, by every handle; what they do to registers; and whose call
 * they think it is.
 */
#include "../../common/system_headers.h"

#include <link.h>

/* "libc.so.6+0x1234" */
static void print_place(const char *what, const char *name, void *address) {
    Dl_info info;
    if (!address) {
        const char *error = dlerror();
        printf("%s %s: null, %s\n", what, name, error ? error : "no error");
    } else if (dladdr(address, &info)) {
        const char *slash = strrchr(info.dli_fname, '/');
        printf("%s %s: %s+%#lx\n", what, name, slash ? slash + 1 : info.dli_fname,
               (unsigned long)((uintptr_t)address - (uintptr_t)info.dli_fbase));
    } else {
        printf("%s %s: elsewhere\n", what, name);
    }
}

/* Every name that libc and libm define, and some that nobody does. */
static void names_of(const char *library, void (*use)(const char *name)) {
    void *handle = dlopen(library, RTLD_NOW);
    struct link_map *map = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map))
        return;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            symbols = (const void *)entry->d_un.d_ptr;
        if (entry->d_tag == DT_STRTAB)
            strings = (const void *)entry->d_un.d_ptr;
    }
    /* the string table follows the symbol table in what every linker makes */
    for (const ElfW(Sym) *symbol = symbols; (const char *)symbol + sizeof *symbol <= strings;
         symbol++)
        if (symbol->st_name && symbol->st_shndx && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC)
            use(strings + symbol->st_name);
}

static int is_exit(const char *name) {
    static const char *const replaced[] = {"_exit", "_Exit", "dlsym", "dlvsym"};
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++)
        if (strcmp(name, replaced[i]) == 0)
            return 1;
    return 0;
}

static void look_up(const char *name) {
    static void *self, *libc;
    self = self ? self : dlopen(NULL, RTLD_NOW);
    libc = libc ? libc : dlopen("libc.so.6", RTLD_NOW);
    if (is_exit(name)) /* ours comes first in the global scope, as any preloaded one does */
        return;
    dlerror();
    print_place("default", name, dlsym(RTLD_DEFAULT, name));
    print_place("next", name, dlsym(RTLD_NEXT, name));
    print_place("self", name, dlsym(self, name));
    print_place("libc", name, dlsym(libc, name));
    print_place("version", name, dlvsym(libc, name, "GLIBC_2.2.5"));
    print_place("no version", name, dlvsym(libc, name, "NONE_1.0"));
}

/* --- registers --- */

#if defined(__x86_64__)
/* Fills every register that a callee must keep, calls, and says whether one changed. */
uint64_t kept(void *function, void *a, const void *b, const void *c);
__asm__(".text; .globl kept; .type kept, @function; kept:\n"
        "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15; sub $24, %rsp\n"
        "mov %rdi, %rax; mov %rsi, %rdi; mov %rdx, %rsi; mov %rcx, %rdx\n"
        "mov $0x1111, %rbx; mov $0x2222, %rbp; mov $0x3333, %r12; mov $0x4444, %r13\n"
        "mov $0x5555, %r14; mov $0x6666, %r15; stmxcsr (%rsp); fnstcw 8(%rsp)\n"
        "mov %rsp, 16(%rsp)\n"
        "call *%rax\n"
        "xor %eax, %eax\n"
        "cmp $0x1111, %rbx; setne %al; cmp $0x2222, %rbp; setne %cl; or %cl, %al\n"
        "cmp $0x3333, %r12; setne %cl; or %cl, %al; cmp $0x4444, %r13; setne %cl; or %cl, %al\n"
        "cmp $0x5555, %r14; setne %cl; or %cl, %al; cmp $0x6666, %r15; setne %cl; or %cl, %al\n"
        "cmp %rsp, 16(%rsp); setne %cl; or %cl, %al\n"
        "mov (%rsp), %edx; stmxcsr (%rsp); cmp (%rsp), %edx; setne %cl; or %cl, %al\n"
        "movzwl 8(%rsp), %edx; fnstcw 8(%rsp); cmp 8(%rsp), %dx; setne %cl; or %cl, %al\n"
        "add $24, %rsp; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n"
        ".size kept, .-kept\n");
#else
static uint64_t kept(void *function, void *a, const void *b, const void *c) {
    register uint64_t x19 __asm__("x19") = 0x1111;
    register uint64_t x28 __asm__("x28") = 0x2222;
    __asm__ volatile("" : "+r"(x19), "+r"(x28));
    ((void *(*)(void *, const void *, const void *))function)(a, b, c);
    __asm__ volatile("" : "+r"(x19), "+r"(x28));
    return x19 != 0x1111 || x28 != 0x2222;
}
#endif

static void registers(void) {
    void *libc = dlopen("libc.so.6", RTLD_NOW), *cuda = dlopen("libcuda.so.1", RTLD_NOW);
    printf("registers: %d %d %d %d\n", (int)kept((void *)dlsym, libc, "puts", "x"),
           (int)kept((void *)dlsym, cuda, "cuMemAlloc_v2", "x"),
           (int)kept((void *)dlvsym, libc, "puts", "GLIBC_2.2.5"),
           (int)kept((void *)dlvsym, cuda, "cuMemAlloc_v2", "x"));
}

/* --- the stack, seen from below --- */

static void trace(const char *what) {
    void *frames[8];
    Dl_info info;
    const int count = backtrace(frames, 8);
    printf("%s: %d frames, %s\n", what, count > 2,
           dladdr((void *)(uintptr_t)&dlsym, &info) ? "known" : "unknown");
}

int main(void) {
    const char *const odd[] = {"",
                               "c",
                               "cu",
                               "cud",
                               "cuMemAll",
                               "cuMemAlloc_v",
                               "cuMemAlloc_v22",
                               "cudaMalloc",
                               "cudaMallo",
                               "CUMEMALLOC",
                               "no_such",
                               "_exi",
                               "main",
                               "environ",
                               "__dlsym"};
    names_of("libc.so.6", look_up);
    names_of("libm.so.6", look_up);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        if (strcmp(odd[i], "cudaMalloc") != 0)
            look_up(odd[i]);
        print_place("bad handle", odd[i], dlsym(dlopen("libm.so.6", RTLD_NOW), odd[i]));
    }
    registers();
    trace("backtrace");
    return 0;
}
