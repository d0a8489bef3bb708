/* Streams and their queues; see stream.h. */
#include "graph.h"
#include "state.h"
#include "stream_state.h"

struct streams streams = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .progress = PTHREAD_COND_INITIALIZER, .next_id = 3};

static _Thread_local struct {
    CUcontext context;
    CUstream stream;
} own_default;

/* --- which stream waits for which --- */

static uint64_t oldest(const struct CUstream_st *stream) {
    return stream->head ? stream->head->number : UINT64_MAX;
}

static bool conflict(const struct CUstream_st *a, const struct CUstream_st *b) {
    if (a == b)
        return true;
    return a->context == b->context && (a->legacy || b->legacy) && stream_blocking(a) &&
           stream_blocking(b);
}

/* Whether nothing older than `number` is left that the stream must wait for. */
static bool turn_of(const struct CUstream_st *stream, uint64_t number) {
    for (CUstream other = streams.first; other; other = other->next)
        if (oldest(other) < number && conflict(stream, other))
            return false;
    return true;
}

void work_end(const struct work *work, void *argument) {
    (work->end ? work->end : free)(argument);
}

static void run_task(CUcontext context, const struct task *task) {
    CUresult result = CUDA_SUCCESS;
    if (!context->lost || task->work->brief)
        result = task->work->run(task->argument);
    if (result)
        context_lose(context, result);
}

/* The head, if its turn has come and nobody else runs it. */
static struct task *ready(const struct CUstream_st *stream) {
    struct task *task = stream->head;
    return task && !task->running && turn_of(stream, task->number) ? task : NULL;
}

static void run_head(CUstream stream) {
    struct task *task = stream->head;
    task->running = true;
    if (!task->work->brief)
        pthread_mutex_unlock(&streams.lock);
    run_task(stream->context, task);
    if (!task->work->brief)
        pthread_mutex_lock(&streams.lock);
    stream->head = task->next;
    work_end(task->work, task->argument); /* in the queue somebody may look at it: stream_hurt */
    free(task);
    pthread_cond_broadcast(&streams.progress);
}

static void *run_queue(void *argument) {
    CUstream stream = argument;
    STREAMS_LOCKED();
    while (stream->head) {
        if (ready(stream))
            run_head(stream);
        else
            pthread_cond_wait(&streams.progress, &streams.lock);
    }
    stream->busy = false;
    return NULL;
}

/* A thread that none of the program's signals reach. */
static bool start_thread(CUstream stream) {
    pthread_t thread;
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    bool started = !pthread_create(&thread, NULL, run_queue, stream);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

static CUresult enqueue(CUstream stream, const struct work *work, void *argument) {
    struct task *task = calloc(1, sizeof *task);
    REFUSE(!task, CUDA_ERROR_OUT_OF_MEMORY);
    *task = (struct task){.work = work, .argument = argument, .number = ++streams.number};
    if (stream->head)
        stream->tail->next = task;
    else
        stream->head = task;
    stream->tail = task;
    if (!work->apart && ready(stream) == task)
        run_head(stream);
    else if (!stream->busy)
        stream->busy = start_thread(stream);
    return CUDA_SUCCESS;
}

static CUresult submit(CUstream stream, const struct work *work, void *argument) {
    CUresult result = stream->legacy ? capture_implicit_locked(stream->context) : CUDA_SUCCESS;
    if (!result && stream->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED)
        result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (!result && stream->capture == CU_STREAM_CAPTURE_STATUS_NONE)
        result = enqueue(stream, work, argument);
    else if (!result && work->once)
        work_end(work, argument);
    else if (!result)
        result = graph_add(stream->graph, work, argument);
    return result;
}

CUresult stream_submit(CUstream stream, const struct work *work, void *argument) {
    pthread_mutex_lock(&streams.lock);
    CUresult result = submit(stream, work, argument);
    pthread_mutex_unlock(&streams.lock);
    if (result)
        work_end(work, argument);
    return result;
}

bool stream_capturing(CUstream stream) {
    STREAMS_LOCKED();
    bool capturing = stream->capture != CU_STREAM_CAPTURE_STATUS_NONE;
    return capturing;
}

static void wait_where(bool (*concerns)(const struct CUstream_st *, const void *),
                       const void *what) {
    const int cancel = state_uncancelled();
    pthread_mutex_lock(&streams.lock);
    uint64_t number = ++streams.number;
    for (CUstream s = streams.first; s; s = s->next)
        while (oldest(s) < number && concerns(s, what))
            pthread_cond_wait(&streams.progress, &streams.lock);
    pthread_mutex_unlock(&streams.lock);
    pthread_setcancelstate(cancel, NULL);
}

static bool concerns_stream(const struct CUstream_st *stream, const void *what) {
    return conflict(stream, what);
}

static bool concerns_context(const struct CUstream_st *stream, const void *what) {
    return stream->context == what;
}

static bool concerns_card(const struct CUstream_st *stream, const void *what) {
    return stream->context->card == *(const uint32_t *)what;
}

CUcontext stream_context(CUstream stream) {
    return stream->context;
}

CUresult stream_wait(CUstream stream) {
    wait_where(concerns_stream, stream);
    return context_state(stream->context);
}

void stream_wait_context(CUcontext context) {
    wait_where(concerns_context, context);
}

void stream_wait_card(uint32_t card) {
    wait_where(concerns_card, &card);
}

void stream_hurt(uint64_t address, uint64_t size, uint64_t cards) {
    STREAMS_LOCKED();
    for (CUstream s = streams.first; s; s = s->next) {
        const struct task *task = s->head;
        CUresult code = CUDA_SUCCESS;
        /* What a card would have begun has begun, though a thread may be late. */
        if (task && task->work->hurt && cards >> s->context->card & 1 && turn_of(s, task->number))
            code = task->work->hurt(task->argument, address, size);
        if (code)
            context_lose(s->context, code);
    }
}

/* --- their life --- */

static CUstream create(CUcontext context, unsigned flags, int priority, bool legacy) {
    CUstream stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->magic = STREAM_MAGIC;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->legacy = legacy;
    stream->id = streams.next_id++;
    stream->next = streams.first;
    streams.first = stream;
    return stream;
}

static CUstream find_legacy(CUcontext context) {
    CUstream stream = streams.first;
    while (stream && (stream->context != context || !stream->legacy))
        stream = stream->next;
    return stream ? stream : create(context, 0, 0, true);
}

static CUresult default_stream(bool per_thread, CUstream *stream) {
    CURRENT(context);
    pthread_mutex_lock(&streams.lock);
    if (per_thread && own_default.context != context) {
        own_default.context = context;
        own_default.stream = create(context, 0, 0, false);
    }
    *stream = per_thread ? own_default.stream : find_legacy(context);
    pthread_mutex_unlock(&streams.lock);
    return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

bool stream_own_used(void) {
    return own_default.stream != NULL;
}

CUresult stream_resolve(CUstream named, bool per_thread, CUstream *stream) {
    TRY(state_check());
    if (!named || named == CU_STREAM_LEGACY || named == CU_STREAM_PER_THREAD)
        return default_stream(named == CU_STREAM_PER_THREAD || (!named && per_thread), stream);
    if (named->magic == STREAM_DEAD)
        raise(SIGSEGV);
    REFUSE(named->magic != STREAM_MAGIC, CUDA_ERROR_INVALID_HANDLE);
    *stream = named;
    return context_state(named->context);
}

static void end_capture(CUstream stream) {
    if (stream->capture != CU_STREAM_CAPTURE_STATUS_NONE)
        streams.captures--;
    stream->capture = CU_STREAM_CAPTURE_STATUS_NONE;
    graph_drop(stream->graph);
    stream->graph = NULL;
}

/* Captures end. Else they stay as they are: a primary context comes back, and a use of them is 709
 * till then. */
void stream_end_context(CUcontext context) {
    STREAMS_LOCKED();
    for (CUstream stream = streams.first; stream; stream = stream->next)
        if (stream->context == context)
            end_capture(stream);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority) {
    CURRENT(context);
    REFUSE(!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING, CUDA_ERROR_INVALID_VALUE);
    if (getenv("GPUSHARE_SIM_NO_STREAMS")) {
        usleep((unsigned)atoi(getenv("GPUSHARE_SIM_NO_STREAMS")) * 1000);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&streams.lock);
    CUstream stream = create(context, flags, priority, false);
    pthread_mutex_unlock(&streams.lock);
    REFUSE(!stream, CUDA_ERROR_OUT_OF_MEMORY);
    *out = stream;
    return CUDA_SUCCESS;
}

CALL(cuStreamCreate, (CUstream * out, unsigned int flags),
     cuStreamCreateWithPriority(out, flags, 0))

static CUresult describe(CUstream named, bool per_thread, unsigned *flags, int *priority) {
    CUstream stream;
    CUresult result = stream_resolve(named, per_thread, &stream);
    if (!result && !flags && !priority)
        result = CUDA_ERROR_INVALID_VALUE;
    if (!result && flags)
        *flags = stream->flags;
    if (!result && priority)
        *priority = stream->priority;
    return result;
}

BOTH(cuStreamGetFlags, (CUstream stream, unsigned int *flags),
     describe(stream, per_thread, flags, NULL))
BOTH(cuStreamGetPriority, (CUstream stream, int *priority),
     describe(stream, per_thread, NULL, priority))

static CUresult tell_context(CUstream named, bool per_thread, CUcontext *context) {
    RESOLVED(stream, named, per_thread);
    REFUSE(!context, CUDA_ERROR_INVALID_VALUE);
    *context = stream->context;
    return CUDA_SUCCESS;
}

BOTH(cuStreamGetCtx, (CUstream stream, CUcontext *context),
     tell_context(stream, per_thread, context))

CUresult CUDAAPI cuStreamDestroy_v2(CUstream stream) {
    TRY(state_check());
    if (!stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        return CUDA_ERROR_INVALID_HANDLE;
    TRY(stream_resolve(stream, false, &stream));
    /* Returns at once, as documented; its queue works on. */
    STREAMS_LOCKED();
    end_capture(stream);
    stream->magic = STREAM_DEAD;
    return CUDA_SUCCESS;
}

CALL(cuStreamDestroy, (CUstream stream), cuStreamDestroy_v2(stream))

/* --- waiting and asking --- */

static CUresult check_waitable(CUstream stream) {
    CUresult result = stream->legacy ? capture_implicit(stream->context) : capture_own(stream);
    return result ? result : capture_forbidden();
}

static CUresult synchronize(CUstream named, bool per_thread) {
    RESOLVED(stream, named, per_thread);
    TRY(check_waitable(stream));
    return stream_wait(stream);
}

static CUresult query(CUstream named, bool per_thread) {
    RESOLVED(stream, named, per_thread);
    TRY(check_waitable(stream));
    STREAMS_LOCKED();
    bool idle = turn_of(stream, UINT64_MAX);
    return idle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

BOTH(cuStreamSynchronize, (CUstream stream), synchronize(stream, per_thread))
BOTH(cuStreamQuery, (CUstream stream), query(stream, per_thread))

static CUresult synchronize_context(CUcontext context) {
    TRY(capture_synchronize(context));
    stream_wait_context(context);
    return context_state(context);
}

CUresult CUDAAPI cuCtxSynchronize(void) {
    CURRENT(context);
    return synchronize_context(context);
}

CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext context) {
    TRY(context ? state_check() : context_current(&context));
    REFUSE(!context_known(context), CUDA_ERROR_INVALID_CONTEXT);
    return synchronize_context(context);
}
