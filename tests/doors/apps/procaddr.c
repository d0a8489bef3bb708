/*
 * procaddr.c - asks every resolver for every hooked name and for some others, by every version and
 * flag. A line says: resolver, name, version, flags, code, status, symbol found, its module.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>

#include "../../common/system_headers.h"

#include "names.h"

static const char *const others[] = {"cuMemcpyHtoD",
                                     "cuMemcpyHtoD_v2",
                                     "cuCtxGetCurrent",
                                     "cuMemGetAddressRange",
                                     "cuStreamSynchronize",
                                     "cuMemAllocManaged",
                                     "cuNoSuchThing",
                                     "cudaMalloc",
                                     "",
                                     "cu"};
static const int versions[] = {2000,  3020,  4000,  4010,  5000,  7000,  10000,
                               11000, 11030, 11040, 12000, 12040, 13000, 13010};

static __typeof__(cuGetProcAddress) *get1;
static __typeof__(cuGetProcAddress_v2) *get2;
static __typeof__(cudaGetDriverEntryPointByVersion) *entry;

static void print(const char *how, const char *name, int version, unsigned long long flags,
                  int code, int status, void *found) {
    Dl_info info = {.dli_fname = "-", .dli_sname = "-"};
    if (found)
        dladdr(found, &info);
    const char *slash = strrchr(info.dli_fname, '/');
    printf("%s %s %d %llu %d %d %s %s\n", how, *name ? name : "''", version, flags, code, status,
           info.dli_sname ? info.dli_sname : "?", slash ? slash + 1 : info.dli_fname);
}

static void ask(const char *name, int version, unsigned long long flags) {
    CUdriverProcAddressQueryResult status = 77;
    enum cudaDriverEntryPointQueryResult answer = 77;
    void *found = NULL;
    int code = (int)get1(name, &found, version, flags);
    print("v1", name, version, flags, code, 0, found);
    found = NULL;
    code = (int)get2(name, &found, version, flags, &status);
    print("v2", name, version, flags, code, (int)status, found);
    found = NULL;
    code = (int)get2(name, &found, version, flags, NULL);
    print("v2-no-status", name, version, flags, code, 0, found);
    found = NULL;
    code = (int)entry(name, &found, (unsigned)version, flags, &answer);
    print("entry", name, version, flags, code, (int)answer, found);
}

/* The API's names are the ABI's without their suffix; cuGetProcAddress also sees odd ones. */
static void ask_all(const char *abi) {
    char name[64];
    snprintf(name, sizeof name, "%s", abi);
    char *variant = strstr(name, "_ptds");
    if (variant || (variant = strstr(name, "_ptsz")))
        *variant = '\0';
    if (strlen(name) > 3 && !strcmp(name + strlen(name) - 3, "_v2"))
        name[strlen(name) - 3] = '\0';
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        for (unsigned long long flags = 0; flags < 3; flags++) {
            ask(name, versions[i], flags);
            if (strcmp(name, abi) != 0)
                ask(abi, versions[i], flags);
        }
}

int main(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW),
         *runtime = dlopen("libcudart.so.13", RTLD_NOW);
    for (size_t i = 0; i < DRIVER_NAMES; i++)
        print("dlsym", driver_names[i], 0, 0, 0, 0, dlsym(library, driver_names[i]));
    for (size_t i = 0; i < RULED_NAMES; i++)
        print("dlsym", ruled_names[i], 0, 0, 0, 0, dlsym(library, ruled_names[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        print("dlsym", others[i], 0, 0, 0, 0, dlsym(library, others[i]));
    get1 = (__typeof__(get1))dlsym(library, "cuGetProcAddress");
    get2 = (__typeof__(get2))dlsym(library, "cuGetProcAddress_v2");
    entry = (__typeof__(entry))dlsym(runtime, "cudaGetDriverEntryPointByVersion");
    for (int round = 0; round < 3; round++) { /* again, by what the last round found for itself */
        for (size_t i = 0; i < DRIVER_NAMES; i++)
            ask_all(driver_names[i]);
        for (size_t i = 0; i < RULED_NAMES; i++)
            ask_all(ruled_names[i]);
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            ask_all(others[i]);
        void *found = NULL;
        if (round == 0 ? get1("cuGetProcAddress", &found, 12000, 0)
                       : get2("cuGetProcAddress", &found, 13000, 2, NULL))
            return 1;
        get2 = (__typeof__(get2))found;
    }
    return 0;
}
