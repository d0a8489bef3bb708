/*
 * context.c - devices, contexts and what is said of them as a whole.
 */
#include "puppet.h"

COMMAND(device, do_device((int)number(w[1])))
COMMAND(peer, do_peer((int)number(w[1])))

static int c_count(char **w) {
    int count = 0;
    const int code = do_count(&count);
    say(" %d", count);
    return code;
}

COMMAND(sync, do_sync())
COMMAND(reset, do_reset())

static int c_info(char **w) {
    size_t left = 0, total = 0;
    const int code = do_info(&left, &total);
    say(" %zu %zu", left, total);
    return code;
}

#ifdef VENDOR_HIP
COMMAND(lasterror, (int)hipGetLastError())

static int c_procaddress(char **w) {
    int (*look_up)(const char *, void **, int, u64, void *);
    void *found;
    *(void **)&look_up = dlsym(RTLD_DEFAULT, "hipGetProcAddress");
    return look_up ? look_up(w[1], &found, 0, 0, NULL) : -1;
}
#endif

static int c_ctxcreate(char **w) {
    CUcontext context = NULL;
    int code = (int)CU(cuInit)(0);
    code = code ? code : (int)CU(cuCtxCreate)(&context, NULL, 0, (CUdevice)number(w[2]));
    return pointer_reply(w[1], code, (uintptr_t)context);
}
COMMAND(ctxpush, (int)CU(cuCtxPushCurrent)((CUcontext)(uintptr_t)value(w[1])))
COMMAND(ctxset, (int)CU(cuCtxSetCurrent)((CUcontext)(uintptr_t)(w[1] ? value(w[1]) : 0)))
static int c_ctxpop(char **w) {
    CUcontext context;
    return (int)CU(cuCtxPopCurrent)(&context);
}
COMMAND(ctxdestroy, (int)CU(cuCtxDestroy)((CUcontext)(uintptr_t)value(w[1])))

/* green NAME: a green context, of the simulator's; its context becomes current */
static CUgreenCtx green;
static int c_green(char **w) {
    CUcontext context = NULL;
    int code = (int)CU(cuGreenCtxCreate)(&green, NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM);
    code = code ? code : (int)CU(cuCtxFromGreenCtx)(&context, green);
    code = code ? code : (int)CU(cuCtxPushCurrent)(context);
    return pointer_reply(w[1], code, (uintptr_t)context);
}
/* release: the primary context of device 0, of which the runtime has a reference */
COMMAND(release, (int)CU(cuDevicePrimaryCtxRelease)(0))
COMMAND(ungreen, (int)CU(cuGreenCtxDestroy)(green))

const struct command context_commands[] = {
    {"device", "ORDINAL", c_device},
    {"peer", "DEVICE", c_peer},
    {"count", "", c_count},
    {"sync", "", c_sync},
    {"reset", "", c_reset},
    {"info", "", c_info},
    {"ctxcreate", "NAME [DEVICE]", c_ctxcreate},
    {"ctxpush", "NAME", c_ctxpush},
    {"ctxset", "[NAME]", c_ctxset},
    {"ctxpop", "", c_ctxpop},
    {"ctxdestroy", "NAME", c_ctxdestroy},
    {"green", "NAME", c_green},
    {"ungreen", "", c_ungreen},
    {"release", "", c_release},
#ifdef VENDOR_HIP
    {"lasterror", "", c_lasterror},
    {"procaddress", "SYMBOL", c_procaddress},
#endif
    {0},
};
