/* Contexts, primary and created, and the stack of them that each thread has; see context.h. */
#include "context.h"

#include "device.h"
#include "link.h"
#include "state.h"
#include "stream.h"

enum { STACK_DEPTH = 64, CONTEXT_MAGIC = 0x43747831, API_VERSION = 3020 };

static struct {
    CUcontext first;
    CUcontext primary[SIM_MAX_DEVICES]; /* by ordinal */
    atomic_int lost[SIM_MAX_DEVICES];   /* by card: no new context after one that was lost */
} contexts;

static _Thread_local struct {
    CUcontext at[STACK_DEPTH];
    unsigned depth;
} stack;

CUcontext context_top(void) {
    return stack.depth ? stack.at[stack.depth - 1] : NULL;
}

CUresult context_current(CUcontext *context) {
    TRY(state_check());
    *context = context_top();
    REFUSE(!*context, CUDA_ERROR_INVALID_CONTEXT);
    return context_state(*context);
}

CUresult context_state(const struct CUctx_st *context) {
    REFUSE(!context->alive, CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return !context->lost && device_has_faulted(context->card) ? CUDA_ERROR_ILLEGAL_ADDRESS
                                                               : (CUresult)context->lost;
}

void context_lose(CUcontext context, CUresult code) {
    int none = 0;
    if (context->of)
        context_lose(context->of, code);
    if (atomic_compare_exchange_strong(&context->lost, &none, (int)code))
        contexts.lost[context->card] = (int)code;
}

CUcontext context_first(void) {
    return contexts.first;
}

bool context_known(CUcontext context) {
    STATE_LOCKED();
    CUcontext known = contexts.first;
    while (known && known != context)
        known = known->next;
    return known;
}

static CUresult push(CUcontext context) {
    REFUSE(stack.depth == STACK_DEPTH, CUDA_ERROR_OUT_OF_MEMORY);
    stack.at[stack.depth++] = context;
    return CUDA_SUCCESS;
}

static CUcontext create(CUdevice device, bool primary, unsigned flags) {
    CUcontext context = calloc(1, sizeof *context);
    if (!context)
        return NULL;
    context->magic = CONTEXT_MAGIC;
    context->device = device;
    context->card = device_card(device);
    context->primary = primary;
    context->flags = flags;
    context->id = state_serial();
    context->next = contexts.first;
    contexts.first = context;
    return context;
}

/* Ends it: its work first, then all that it owns. */
static void end(CUcontext context) {
    stream_wait_context(context);
    state_lock();
    context->alive = false;
    context->peers = 0;
    block_drop_all(context);
    state_unlock();
    stream_end_context(context);
}

/* --- created contexts --- */

static CUresult create_current(CUcontext *out, unsigned flags, CUdevice device) {
    TRY(state_check());
    REFUSE(!out || flags & ~(unsigned)CU_CTX_FLAGS_MASK, CUDA_ERROR_INVALID_VALUE);
    REFUSE(!device_valid(device), CUDA_ERROR_INVALID_DEVICE);
    if (contexts.lost[device_card(device)])
        return (CUresult)contexts.lost[device_card(device)];
    state_lock();
    CUcontext context = create(device, false, flags);
    state_unlock();
    REFUSE(!context, CUDA_ERROR_OUT_OF_MEMORY);
    context->references = 1;
    context->alive = true;
    TRY(push(context));
    *out = context;
    return CUDA_SUCCESS;
}

CALL(cuCtxCreate, (CUcontext * out, unsigned int flags, CUdevice device),
     create_current(out, flags, device))
CALL(cuCtxCreate_v2, (CUcontext * out, unsigned int flags, CUdevice device),
     create_current(out, flags, device))
CALL(cuCtxCreate_v3,
     (CUcontext * out, CUexecAffinityParam *affinity, int count, unsigned int flags,
      CUdevice device),
     create_current(out, flags, device))
CALL(cuCtxCreate_v4,
     (CUcontext * out, CUctxCreateParams *params, unsigned int flags, CUdevice device),
     create_current(out, flags, device))

CUresult CUDAAPI cuCtxDestroy_v2(CUcontext context) {
    TRY(state_check());
    REFUSE(!context || !context_known(context), CUDA_ERROR_INVALID_VALUE);
    REFUSE(context->primary || !context->alive, CUDA_ERROR_INVALID_CONTEXT);
    end(context);
    if (context_top() == context)
        stack.depth--;
    state_pause("GPUSHARE_SIM_LATE_DESTROY_MS");
    return CUDA_SUCCESS;
}

CALL(cuCtxDestroy, (CUcontext context), cuCtxDestroy_v2(context))

CUresult CUDAAPI cuCtxAttach(CUcontext *out, unsigned int flags) {
    CURRENT(context);
    REFUSE(!out || flags, CUDA_ERROR_INVALID_VALUE);
    context->references++;
    *out = context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxDetach(CUcontext context) {
    CUcontext current;
    TRY(context_current(&current));
    REFUSE(context != current || context->primary, CUDA_ERROR_INVALID_CONTEXT);
    return --context->references ? CUDA_SUCCESS : cuCtxDestroy_v2(context);
}

/* --- primary contexts --- */

static CUresult primary_check(CUdevice device) {
    TRY(state_check());
    REFUSE(!device_valid(device), CUDA_ERROR_INVALID_DEVICE);
    return CUDA_SUCCESS;
}

/* Made at the first mention and never freed: its handle is the same through resets. */
static CUcontext primary_of(CUdevice device) {
    if (!contexts.primary[device])
        contexts.primary[device] = create(device, true, 0);
    return contexts.primary[device];
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
    TRY(primary_check(device));
    CUresult result = CUDA_SUCCESS;
    REFUSE(!out, CUDA_ERROR_INVALID_VALUE);
    STATE_LOCKED();
    CUcontext context = primary_of(device);
    if (!context)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    else if (!context->alive)
        result = (CUresult)contexts.lost[context->card];
    if (!result) {
        context->references++;
        context->alive = true;
        *out = context;
    }
    return result;
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    TRY(primary_check(device));
    state_lock();
    CUcontext context = contexts.primary[device];
    bool held = context && context->references;
    bool last = held && --context->references == 0;
    state_unlock();
    if (last)
        end(context);
    return held ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CALL(cuDevicePrimaryCtxRelease, (CUdevice device), cuDevicePrimaryCtxRelease_v2(device))

CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice device) {
    TRY(primary_check(device));
    REFUSE(state_pause("GPUSHARE_SIM_RESET_REFUSED_MS"), CUDA_ERROR_UNKNOWN);
    state_lock();
    CUcontext context = contexts.primary[device];
    state_unlock();
    if (context && context->alive) {
        end(context);
        state_pause("GPUSHARE_SIM_LATE_DESTROY_MS");
    }
    return CUDA_SUCCESS;
}

CALL(cuDevicePrimaryCtxReset, (CUdevice device), cuDevicePrimaryCtxReset_v2(device))

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
    TRY(primary_check(device));
    REFUSE(flags & ~(unsigned)CU_CTX_FLAGS_MASK, CUDA_ERROR_INVALID_VALUE);
    STATE_LOCKED();
    CUcontext context = primary_of(device);
    if (context)
        context->flags = flags;
    return context ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CALL(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned int flags),
     cuDevicePrimaryCtxSetFlags_v2(device, flags))

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
    TRY(primary_check(device));
    REFUSE(!flags || !active, CUDA_ERROR_INVALID_VALUE);
    state_lock();
    CUcontext context = contexts.primary[device];
    *flags = context ? context->flags : 0;
    *active = context && context->alive;
    state_unlock();
    return CUDA_SUCCESS;
}

/* --- green contexts: of no resources of their own; what they allocate is theirs here --- */

CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc resources, CUdevice device,
                                  unsigned int flags) {
    CUcontext of;
    TRY(cuDevicePrimaryCtxRetain(&of, device));
    REFUSE(!out || flags != CU_GREEN_CTX_DEFAULT_STREAM, CUDA_ERROR_INVALID_VALUE);
    state_lock();
    CUcontext context = create(device, false, 0);
    state_unlock();
    REFUSE(!context, CUDA_ERROR_OUT_OF_MEMORY);
    context->of = of;
    context->alive = true;
    *out = (CUgreenCtx)context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext *out, CUgreenCtx green) {
    TRY(state_check());
    REFUSE(!out || !context_known((CUcontext)green), CUDA_ERROR_INVALID_VALUE);
    *out = (CUcontext)green;
    return CUDA_SUCCESS;
}

/* Its work goes on. Entering it kills the process from now on. */
CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx green) {
    TRY(state_check());
    CUcontext context = (CUcontext)green;
    REFUSE(!context_known(context) || !context->of || !context->alive, CUDA_ERROR_INVALID_CONTEXT);
    context->alive = false;
    stream_end_context(context);
    return cuDevicePrimaryCtxRelease_v2(context->device);
}

/* --- the current context --- */

CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext context) {
    TRY(state_check());
    if (!context_known(context) || (!context->primary && !context->alive))
        abort(); /* as a driver does of one that was destroyed: "free(): invalid pointer" */
    return push(context);
}

CALL(cuCtxPushCurrent, (CUcontext context), cuCtxPushCurrent_v2(context))

CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *out) {
    TRY(state_check());
    REFUSE(!stack.depth, CUDA_ERROR_INVALID_CONTEXT);
    if (out)
        *out = context_top();
    stack.depth--;
    return CUDA_SUCCESS;
}

CALL(cuCtxPopCurrent, (CUcontext * out), cuCtxPopCurrent_v2(out))

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context) {
    TRY(state_check());
    REFUSE(context && !context_known(context), CUDA_ERROR_INVALID_VALUE);
    if (stack.depth)
        stack.depth--;
    return context ? push(context) : CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *out) {
    TRY(state_check());
    REFUSE(!out, CUDA_ERROR_INVALID_VALUE);
    *out = context_top();
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device) {
    TRY(state_check());
    REFUSE(!context_top(), CUDA_ERROR_INVALID_CONTEXT);
    REFUSE(!device, CUDA_ERROR_INVALID_VALUE);
    *device = context_top()->device;
    return CUDA_SUCCESS;
}

static CUresult context_or_current(CUcontext *context) {
    TRY(state_check());
    if (!*context)
        return context_current(context);
    return context_known(*context) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult CUDAAPI cuCtxGetDevice_v2(CUdevice *device, CUcontext context) {
    TRY(context_or_current(&context));
    REFUSE(!device, CUDA_ERROR_INVALID_VALUE);
    *device = context->device;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetId(CUcontext context, unsigned long long *id) {
    TRY(context_or_current(&context));
    REFUSE(!id, CUDA_ERROR_INVALID_VALUE);
    *id = context->id;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetApiVersion(CUcontext context, unsigned int *version) {
    TRY(context_or_current(&context));
    REFUSE(!version, CUDA_ERROR_INVALID_VALUE);
    *version = API_VERSION;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetFlags(unsigned int *flags) {
    CURRENT(context);
    REFUSE(!flags, CUDA_ERROR_INVALID_VALUE);
    *flags = context->flags;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    CUcontext context;
    CUresult result = context_current(&context);
    if (!result && least)
        *least = 0;
    if (!result && greatest)
        *greatest = -5;
    return result;
}
