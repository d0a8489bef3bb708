/* threads.c - sixteen threads resolve every hooked name at once, before anybody else did. */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "../../common/system_headers.h"

#include "names.h"

enum { THREADS = 16 };

static pthread_barrier_t start;
static void *found[THREADS][2][DRIVER_NAMES];

static void *resolve(void *arg) {
    void *(*mine)[DRIVER_NAMES] = arg;
    pthread_barrier_wait(&start);
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    for (size_t i = 0; i < DRIVER_NAMES; i++)
        mine[0][i] = dlsym(library, driver_names[i]);
    __typeof__(cuGetProcAddress_v2) *get = (__typeof__(get))dlsym(library, "cuGetProcAddress_v2");
    for (size_t i = 0; i < DRIVER_NAMES; i++)
        get(driver_names[i], &mine[1][i], 12000, 0, NULL);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    int same = 1, ours = 1;
    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, resolve, found[i]))
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < THREADS; i++)
        same &= !memcmp(found[0], found[i], sizeof found[0]);
    for (size_t i = 0; i < DRIVER_NAMES; i++) {
        Dl_info info;
        ours &= found[0][0][i] && dladdr(found[0][0][i], &info) &&
                strstr(info.dli_fname, "libgpushare.so") != NULL;
    }
    printf("%s %s\n", same ? "same" : "different", ours ? "ours" : "not ours");
    return 0;
}
