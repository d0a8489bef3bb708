#include "selftest.h"

#include <dlfcn.h>

#include "cli/tool.h"
#include "run/driver_answer.h"

enum { TO_DEVICE = 1, TO_HOST = 2 }; /* hipMemcpyKind */
enum { LAZY_PEER_ACCESS = 1 };       /* what every open has to say */

struct handle {
    uint8_t bytes[64];
};

/* What it calls beside that; a device pointer has the size of a pointer. */
#define FUNCTIONS(F)                                                                               \
    F(retain, int (*)(void **, int), "cuDevicePrimaryCtxRetain", NULL)                             \
    F(enter, int (*)(void *), "cuCtxSetCurrent", NULL)                                             \
    F(synchronize, int (*)(void), "cuCtxSynchronize", "hipDeviceSynchronize")                      \
    F(allocate, int (*)(uint64_t *, size_t), "cuMemAlloc_v2", "hipMalloc")                         \
    F(free, int (*)(uint64_t), "cuMemFree_v2", "hipFree")                                          \
    F(to_device, int (*)(uint64_t, const void *, size_t), "cuMemcpyHtoD_v2", NULL)                 \
    F(to_host, int (*)(void *, uint64_t, size_t), "cuMemcpyDtoH_v2", NULL)                         \
    F(copy, int (*)(uint64_t, uint64_t, size_t, int), NULL, "hipMemcpy")                           \
    F(export, int (*)(struct handle *, uint64_t), "cuIpcGetMemHandle", "hipIpcGetMemHandle")       \
    F(import, int (*)(uint64_t *, struct handle, unsigned), "cuIpcOpenMemHandle_v2",               \
      "hipIpcOpenMemHandle")                                                                       \
    F(close, int (*)(uint64_t), "cuIpcCloseMemHandle", "hipIpcCloseMemHandle")

struct gpu {
    FUNCTIONS(DRIVER_MEMBER)
};

struct actor {
    enum runtime runtime;
    struct driver driver;
    struct gpu gpu;
    uint64_t memory, imported;
    uint8_t *host; /* as large as the allocation */
    size_t size;
    char *argument; /* of the command; NULL: it has none */
    char said[256]; /* behind the code */
};

/* --- the GPU --- */

static bool actor_find_driver(struct actor *actor) {
    void *library = driver_open(actor->runtime, &actor->driver, actor->said, sizeof(actor->said));
    const char *missing = NULL;
    if (!library)
        return false;
#define FIND(id, type, cuda, hip)                                                                  \
    const char *id##_name = actor->runtime == RUNTIME_HIP ? (hip) : (cuda);                        \
    if (id##_name && !(*(void **)&actor->gpu.id = dlsym(library, id##_name)))                      \
        missing = id##_name;
    FUNCTIONS(FIND)
    if (missing)
        snprintf(actor->said, sizeof(actor->said), "%s is missing", missing);
    return !missing;
}

static int actor_begin(struct actor *actor) {
    void *context;
    int count = 0, code = -1, version = 0;
    char name[128] = "unknown";
    const struct driver *driver = &actor->driver;
    const struct gpu *gpu = &actor->gpu;
    if (!actor_find_driver(actor))
        return code;
    if ((driver->init && (code = driver->init(0)) != 0) || (code = driver->count(&count)) != 0)
        return code;
    if (count == 0)
        return 100; /* no device, in both */
    if (gpu->retain &&
        ((code = gpu->retain(&context, 0)) != 0 || (code = gpu->enter(context)) != 0))
        return code;
    driver->version(&version);
    driver->name(name, sizeof(name) - 1, 0);
    snprintf(actor->said, sizeof(actor->said), "%d %s", version, name);
    return 0;
}

static int copy_in(const struct actor *actor, uint64_t to) {
    const struct gpu *gpu = &actor->gpu;
    const int code = gpu->copy ? gpu->copy(to, (uintptr_t)actor->host, actor->size, TO_DEVICE)
                               : gpu->to_device(to, actor->host, actor->size);
    return code ? code : gpu->synchronize();
}

static int actor_copy_out(const struct actor *actor, uint64_t from) {
    const struct gpu *gpu = &actor->gpu;
    return gpu->copy ? gpu->copy((uintptr_t)actor->host, from, actor->size, TO_HOST)
                     : gpu->to_host(actor->host, from, actor->size);
}

/* --- the commands --- */

static void get_host(struct actor *actor, size_t size) {
    actor->host = tool_resize(actor->host, size, 1);
    actor->size = size;
}

static int on_allocate(struct actor *actor) {
    get_host(actor, strtoul(actor->argument, NULL, 10));
    return actor->gpu.allocate(&actor->memory, actor->size);
}

static int on_fill(struct actor *actor) {
    memset(actor->host, atoi(actor->argument), actor->size);
    return copy_in(actor, actor->memory);
}

static int on_read(struct actor *actor) {
    memset(actor->host, 0, actor->size);
    const int code = actor_copy_out(actor, actor->imported ? actor->imported : actor->memory);
    if (code)
        return code;
    const bool equal = memcmp(actor->host, actor->host + 1, actor->size - 1) == 0;
    snprintf(actor->said, sizeof(actor->said), equal ? "%d" : "mixed", actor->host[0]);
    return 0;
}

static int actor_on_free(struct actor *actor) {
    return actor->gpu.free(actor->memory);
}

static int on_export(struct actor *actor) {
    struct handle handle;
    const int code = actor->gpu.export(&handle, actor->memory);
    for (size_t i = 0; code == 0 && i < sizeof(handle.bytes); i++)
        sprintf(actor->said + 2 * i, "%02x", handle.bytes[i]);
    return code;
}

static int on_import(struct actor *actor) {
    struct handle handle = {{0}};
    const char *argument = actor->argument;
    for (size_t i = 0; i < sizeof(handle.bytes) && strlen(argument) >= 2; i++, argument += 2) {
        const char digits[3] = {argument[0], argument[1], 0};
        handle.bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
    get_host(actor, 4096);
    return actor->gpu.import(&actor->imported, handle, LAZY_PEER_ACCESS);
}

static int on_close(struct actor *actor) {
    return actor->gpu.close(actor->imported);
}

static const struct command {
    const char *name;
    int (*run)(struct actor *);
} commands[] = {
    {"open", actor_begin},   {"allocate", on_allocate}, {"fill", on_fill},     {"read", on_read},
    {"free", actor_on_free}, {"export", on_export},     {"import", on_import}, {"close", on_close},
};

static bool actor_answer(struct actor *actor, char *line) {
    line[strcspn(line, "\n")] = 0;
    actor->argument = line;
    strsep(&actor->argument, " ");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(line, commands[i].name) != 0)
            continue;
        actor->said[0] = 0;
        const int code = commands[i].run(actor);
        printf("%d%s%s\n", code, actor->said[0] ? " " : "", actor->said);
        return fflush(stdout) == 0;
    }
    return false;
}

int actor_run(enum runtime runtime) {
    struct actor actor = {.runtime = runtime};
    char line[512];
    while (fgets(line, sizeof(line), stdin))
        if (!actor_answer(&actor, line))
            return TOOL_FAILED;
    free(actor.host);
    return TOOL_OK;
}
