/*
 * scopes.c - what the runtime's names mean to dlsym where a runtime can be seen and where none can.
 * Built as a program, with a runtime (LINKED) and without, and as a library that looks for itself
 * (LIBRARY). A program is told how to load a runtime first (local, global, or none), and which
 * library shall look in its stead.
 */
#include "../../common/system_headers.h"
#include <cuda_runtime_api.h>

static const char *const names[] = {
#define RUNTIME(name, parameters, arguments) #name,
#include "cuda/hooks.def"
};

int scopes_look(void);

static void print(const char *how, const char *name, const void *found) {
    const char *error = dlerror();
    const char *text = error ? strstr(error, "undefined symbol") : NULL;
    printf("%s %s: %s, %s\n", how, name, found ? "found" : "null", text ? text : "no error");
}

int scopes_look(void) {
    void *self = dlopen(NULL, RTLD_NOW);
    dlerror();
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        print("default", names[i], dlsym(RTLD_DEFAULT, names[i]));
        print("next", names[i], dlsym(RTLD_NEXT, names[i]));
        print("next version", names[i], dlvsym(RTLD_NEXT, names[i], "libcudart.so.13"));
        print("self", names[i], dlsym(self, names[i]));
        print("version", names[i], dlvsym(RTLD_DEFAULT, names[i], "libcudart.so.13"));
        print("version of self", names[i], dlvsym(self, names[i], "libcudart.so.13"));
        print("no version", names[i], dlvsym(RTLD_DEFAULT, names[i], "none"));
    }
    return 0;
}

#ifndef LIBRARY
#ifdef LINKED
const void *used = (const void *)cudaGetLastError;
#endif

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (strcmp(how, "none") != 0 &&
        !dlopen("libcudart.so.13", RTLD_NOW | (strcmp(how, "global") ? RTLD_LOCAL : RTLD_GLOBAL)))
        return 3;
    void *library = argc > 2 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (argc > 2 && !library)
        return 4;
    return library ? ((int (*)(void))dlsym(library, "scopes_look"))() : scopes_look();
}
#endif
