/* AMD's runtime, by dlopen; see hip.h. */
#include "hip.h"

struct hip hip;

static void *open_library(void) {
    static const char *const names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        "/opt/rocm/lib/libamdhip64.so"};
    for (size_t i = 0; !hip.library && i < sizeof names / sizeof *names; i++) {
        hip.library = dlopen(names[i], RTLD_NOW);
        hip.soname = names[i];
    }
    return hip.library;
}

int hip_load(void) {
    if (!open_library()) {
        fprintf(stderr, "conformance: %s\n", dlerror());
        return 0;
    }
#define X(name)                                                                                    \
    if (!(*(void **)(void *)&hip.name = dlsym(hip.library, #name))) {                              \
        fprintf(stderr, "conformance: no %s in %s\n", #name, hip.soname);                          \
        return 0;                                                                                  \
    }
    HIP_CALLS(X)
#undef X
    return 1;
}

int hip_ask_version(void) {
    int ends[2], version = 0;
    if (pipe(ends))
        return 0;
    const pid_t child = fork();
    if (child == 0) {
        hip.hipRuntimeGetVersion(&version);
        _exit(write(ends[1], &version, sizeof version) != sizeof version);
    }
    close(ends[1]);
    const int got = read(ends[0], &version, sizeof version) == sizeof version;
    close(ends[0]);
    waitpid(child, NULL, 0);
    hip.major = version / 10000000;
    hip.minor = version / 100000 % 100;
    return got && hip.major > 0;
}

int hip_by(int six, int seven) {
    return hip.major >= 7 ? seven : six;
}

unsigned hip_flags(void) {
    return hip.major >= 6;
}

int hip_device_kind(void) {
    return hip.major >= 6 ? 2 : 1;
}
