/* two-main.c - loads the libraries it is given, each with its own runtime, and sees whose call
 * reaches whose: an error must show in the runtime of the library that made the call, only there.
 */
#include <dlfcn.h>
#include <stdio.h>

enum { MOST = 8 };

int main(int argc, char **argv) {
    int (*fail[MOST])(int), (*last[MOST])(void);
    for (int i = 1; i < argc && i < MOST; i++) {
        void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            puts(dlerror());
            return 2;
        }
        fail[i] = (int (*)(int))dlsym(library, "two_fail");
        last[i] = (int (*)(void))dlsym(library, "two_last");
    }
    for (int which = 0; which < 4; which++)
        for (int i = 1; i < argc; i++) {
            printf("%d calls: %d, errors", i, fail[i](which & 1));
            for (int k = 1; k < argc; k++)
                printf(" %d", last[k]());
            puts("");
        }
    return 0;
}
