/*
 * replaced.c - libraries that come to stand where others stood. Loads and unloads each library it
 * is given in turn, and says what its call answered, and what the library's own runtime then had
 * for a last error. A library whose name has "libcudart" in it stays loaded.
 */
#include "../../common/system_headers.h"

static int call_once(const char *path, uintptr_t *place) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        puts(dlerror());
        return 2;
    }
    int (*call)(int) = (int (*)(int))dlsym(library, "two_fail");
    int (*last)(void) = (int (*)(void))dlsym(library, "two_last");
    const int failed = call(0);
    printf("%s: fails %d, own error %d\n", *place && *place != (uintptr_t)call ? "apart" : "there",
           failed, last() != 0);
    *place = (uintptr_t)call;
    return dlclose(library);
}

int main(int argc, char **argv) {
    uintptr_t place = 0;
    for (int i = 1; i < argc; i++) {
        if (strstr(argv[i], "libcudart"))
            dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        else if (call_once(argv[i], &place))
            return 2;
    }
    return 0;
}
