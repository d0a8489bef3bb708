/*
 * fork.c - resets the state of the parent in a forked child.
 *
 * A variable that becomes zero again is marked at its definition (util/forgotten.h). Every other
 * module with variables has a row here: the function that resets them, or why the state holds in
 * the child, too. Thread-local variables count, because the thread that forks goes on. The parent's
 * threads are not in the child, but their locks may be taken there: a reset touches none of them,
 * and loses memory rather than freeing it. tests/built/rooms compares rows and variables with the
 * object files, so none is left out.
 */
#include "digest/worker_pool.h"
#include "findings/leaks.h"
#include "gate/gate.h"
#include "gate/streams.h"
#include "gate/swap.h"
#include "ipc/deferred.h"
#include "ipc/open_cache.h"
#include "ipc/token.h"
#include "lifecycle.h"
#include "process/membership.h"
#include "process/process.h"
#include "stack/trace.h"
#include "suspend/suspension.h"
#include "threads/thread.h"
#include "util/forgotten.h"
#include "vmm/vmm_region.h"

/* In the order of the rooms, from the bottom up. */
#define MODULES(FORGETS, KEEPS)                                                                    \
    KEEPS(processor, "it is the same")                                                             \
    KEEPS(lock, "a thread that forks holds none")                                                  \
    KEEPS(linker, "it tells the parent from the child")                                            \
    KEEPS(program_signals, "the thread that forks goes on inside or outside of its scope")         \
    KEEPS(file, "a number in names that also have the process's own")                              \
    KEEPS(log, "gps_log_open begins it anew")                                                      \
    KEEPS(sink, "gps_log_open begins it anew")                                                     \
    KEEPS(channel, "the mapping is the child's, too")                                              \
    KEEPS(wording, "the vendor is the same")                                                       \
    KEEPS(event_log, "gps_event_log_open begins it anew; until then it writes nothing")            \
    KEEPS(stack, "the executable is the same")                                                     \
    KEEPS(find_object, "the linker is the same")                                                   \
    KEEPS(preloaded, "so are the libraries beside this one")                                       \
    KEEPS(call, "the thread that forks may be inside one")                                         \
    FORGETS(trace, gps_trace_reset)                                                                \
    KEEPS(scope, "the driver's operations are where they were")                                    \
    KEEPS(call_counter, "its start takes another row")                                             \
    FORGETS(thread, gps_thread_reset)                                                              \
    FORGETS(membership, gps_membership_reset)                                                      \
    FORGETS(leaks, gps_leak_reset)                                                                 \
    FORGETS(vmm_region, gps_vmm_region_reset)                                                      \
    FORGETS(worker_pool, gps_worker_pool_reset)                                                    \
    KEEPS(digest, "a key, of which shared_block makes sure first")                                 \
    KEEPS(exchange, "the thread that forks is in no call")                                         \
    KEEPS(load, "a buffer and a count")                                                            \
    KEEPS(device_digest, "a buffer")                                                               \
    FORGETS(gate, gps_gate_reset)                                                                  \
    FORGETS(streams, gps_streams_reset)                                                            \
    FORGETS(swap, gps_swap_reset)                                                                  \
    KEEPS(allocation, "a count of what has ended")                                                 \
    KEEPS(importers, "a time")                                                                     \
    FORGETS(token_server, gps_token_server_reset)                                                  \
    FORGETS(open_cache, gps_open_cache_reset)                                                      \
    FORGETS(deferred, gps_deferred_reset)                                                          \
    KEEPS(rule_counts, "the thread that forks is in no allocation")                                \
    FORGETS(suspension, gps_suspension_reset)                                                      \
    FORGETS(process, gps_process_reset) /* the configuration, to which the rules point */          \
    KEEPS(parent, "it is what the child has of it")                                                \
    KEEPS(start, "it tells that this is a fork")                                                   \
    KEEPS(exit, "exit handlers survive a fork")                                                    \
    KEEPS(kernels, "no call of the driver succeeds in it")                                         \
    KEEPS(driver, "libcuda is where it was, and there is no lock")                                 \
    KEEPS(hip_library, "so is HIP's runtime")                                                      \
    KEEPS(last_error, "the thread that forks goes on with it")                                     \
    KEEPS(hip_operations, "so it does with the devices that it has entered")                       \
    KEEPS(chain, "what stands behind us goes on with it")                                          \
    KEEPS(hooks, "the calls that the parent lets pass succeed in no child of it")                  \
    KEEPS(unwatched, "its stubs lead where they did")                                              \
    KEEPS(resolved, "the driver answers as it did")                                                \
    KEEPS(resolver, "libc's functions are where they were")                                        \
    KEEPS(runtime, "so are call sites and the runtime's functions")

static void (*const resets[])(void) = {
#define RESET(module, reset) reset,
#define NOTHING(module, why)
    MODULES(RESET, NOTHING)};

void gps_fork_reset(void) {
    gps_forget_all(); /* first: the resets use the locks of modules below */
    for (unsigned i = 0; i < sizeof(resets) / sizeof(resets[0]); i++)
        resets[i]();
}
