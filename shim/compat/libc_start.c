/*
 * libc_start.c - starts the tool on glibc before 2.34, too.
 *
 * Since then __libc_start_main runs a program's constructors itself; before, the program gave it a
 * function that does. The old version of it still calls such a function. (Linked with
 * --wrap=__libc_start_main.)
 */
#ifdef __x86_64__
__asm__(".symver old_start,__libc_start_main@GLIBC_2.2.5");
#else
__asm__(".symver old_start,__libc_start_main@GLIBC_2.17");
#endif

typedef int main_fn(int argc, char **argv, char **environment);
typedef void end_fn(void);

int old_start(main_fn *main, int argc, char **argv, main_fn *construct, end_fn *destruct,
              end_fn *end_linker, void *stack);
int __wrap___libc_start_main(main_fn *main, int argc, char **argv, main_fn *construct,
                             end_fn *destruct, end_fn *end_linker, void *stack);

extern main_fn *const __init_array_start[] __attribute__((visibility("hidden")));
extern main_fn *const __init_array_end[] __attribute__((visibility("hidden")));

static int run_constructors(int argc, char **argv, char **environment) {
    for (main_fn *const *fn = __init_array_start; fn != __init_array_end; fn++)
        (void)(*fn)(argc, argv, environment);
    return 0;
}

int __wrap___libc_start_main(main_fn *main, int argc, char **argv, main_fn *construct,
                             end_fn *destruct, end_fn *end_linker, void *stack) {
    return old_start(main, argc, argv, construct ? construct : run_constructors, destruct,
                     end_linker, stack);
}
