/* embed.c - embed LIBPYTHON SCRIPT: a program of another name in which Python runs. */
#include <dlfcn.h>
#include <stdio.h>

static int (*run)(const char *script);

__attribute__((noinline)) static int work(const char *script) {
    const int status = run(script);
    puts(status ? "failed" : "ran");
    return status != 0;
}

int main(int argc, char **argv) {
    void *python = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
    if (!python)
        return 2;
    ((void (*)(void))dlsym(python, "Py_Initialize"))();
    run = (int (*)(const char *))dlsym(python, "PyRun_SimpleString");
    return work(argv[2]);
}
