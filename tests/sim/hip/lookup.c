/* Functions by their names: looked up in libamdhip64.so, by that bare name, as the real one does.
 */
#include "runtime.h"

static hipError_t find(const char *symbol, void **function) {
    if (!symbol || !function)
        return hipErrorInvalidValue;
    void *library = dlopen("libamdhip64.so", RTLD_LAZY);
    void *found = library ? dlsym(library, symbol) : NULL;
    if (!found)
        return hipErrorInvalidValue;
    *function = found;
    return hipSuccess;
}

PLAIN(hipGetProcAddress,
      (const char *symbol, void **function, int version, uint64_t flags, void *status),
      find(symbol, function))

#if HIP_GENERATION >= 7
PLAIN(hipGetDriverEntryPoint,
      (const char *symbol, void **function, unsigned long long flags, void *status),
      find(symbol, function))
#endif
