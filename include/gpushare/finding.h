/*
 * finding.h - the catalogue of findings: every problem that gpushare reports.
 *
 * A row gives the identifier in C, the id in reports, the level, a sentence on what happened and a
 * sentence on what to change. The library, the tool and the documentation are generated from these
 * rows or tested against them, so a new finding needs only a new row.
 *
 * ERROR: the program is wrong, and its own results or those of other processes are at risk.
 * WARNING: the program works only by luck or through gpushare's protection, or sharing did not
 * happen as configured. INFO: the user may want to know. What makes a finding worse raises the
 * level of its report (GPS_RAISED_LEVELS); of memory that a rule shares, a free that is deferred
 * and an end without linger are INFO. The sentences contain no pointers or names; a report has
 * fields for those.
 */
#ifndef GPUSHARE_FINDING_H
#define GPUSHARE_FINDING_H

#define GPS_FINDINGS(ROW)                                                                          \
    ROW(FREE_WHILE_OPEN, "free-while-open", WARNING,                                               \
        "memory was freed while another process has it open",                                      \
        "let every importer call cudaIpcCloseMemHandle before its exporter calls cudaFree")        \
    ROW(EXIT_WHILE_OPEN, "exit-while-open", WARNING,                                               \
        "a process ended while other processes have its memory open",                              \
        "wait for the importers to close before exiting, or set linger in the configuration")      \
    ROW(DOUBLE_FREE, "double-free", ERROR, "memory that is freed already was freed again",         \
        "free each allocation once; clear the pointer after cudaFree")                             \
    ROW(FREE_INTERIOR, "free-interior", ERROR,                                                     \
        "a pointer into the middle of an allocation was freed",                                    \
        "free the pointer that the allocation returned; this call freed nothing")                  \
    ROW(FREE_IMPORTED, "free-imported", ERROR,                                                     \
        "memory of another process was freed instead of closed",                                   \
        "call cudaIpcCloseMemHandle for what cudaIpcOpenMemHandle returned; it is still open")     \
    ROW(FREE_HOST, "free-host", ERROR, "pinned host memory was freed as if it were a device's",    \
        "call cudaFreeHost for what cudaMallocHost returned, cudaHostUnregister for what was "     \
        "registered; this call freed nothing")                                                     \
    ROW(FREE_UNKNOWN, "free-unknown", ERROR, "a pointer was freed where no allocation begins",     \
        "free once, and exactly, what the allocation returned: the pointer, not its address "      \
        "(cudaFree(p), not cudaFree(&p)); this call freed nothing")                                \
    ROW(USE_AFTER_FREE, "use-after-free", ERROR,                                                   \
        "memory was copied, filled, exported or used by a graph after it had been freed",          \
        "free it after its last use; clear the pointer after cudaFree")                            \
    ROW(COPY_OUTSIDE, "copy-outside", ERROR,                                                       \
        "a copy or fill was refused that begins or ends outside of any allocation",                \
        "copy no more than was allocated; the size of a copy counts bytes, not elements")          \
    ROW(CLOSE_UNOPENED, "close-unopened", ERROR,                                                   \
        "a pointer was closed that no cudaIpcOpenMemHandle returned",                              \
        "close exactly the pointers that cudaIpcOpenMemHandle returned")                           \
    ROW(DOUBLE_CLOSE, "double-close", ERROR, "memory that is closed already was closed again",     \
        "close once for every open; clear the pointer after cudaIpcCloseMemHandle")                \
    ROW(CLOSE_INTERIOR, "close-interior", ERROR,                                                   \
        "a pointer into the middle of opened memory was closed",                                   \
        "close the pointer that cudaIpcOpenMemHandle returned; the memory is still open")          \
    ROW(CLOSE_OWN, "close-own", ERROR, "memory of this process's own was closed",                  \
        "free your own memory with cudaFree; cudaIpcCloseMemHandle is for what was opened")        \
    ROW(USE_AFTER_CLOSE, "use-after-close", ERROR,                                                 \
        "memory of another process was copied, filled or given to a kernel or a graph after it "   \
        "was closed",                                                                              \
        "close it after its last use; clear the pointer after cudaIpcCloseMemHandle")              \
    ROW(DOUBLE_OPEN, "double-open", WARNING,                                                       \
        "a memory handle that is open in this context was opened again",                           \
        "keep the pointer of the first open, or close the handle once for every open")             \
    ROW(OPEN_SECOND_CONTEXT, "open-second-context", ERROR,                                         \
        "a memory handle was opened that is open in another context of this process",              \
        "open a handle in one context of a process only, and use that context's pointer")          \
    ROW(OPEN_OWN_HANDLE, "open-own-handle", ERROR, "a process opened a memory handle of its own",  \
        "use the pointer itself in the process that allocated it")                                 \
    ROW(OPEN_STALE, "open-stale", ERROR,                                                           \
        "a handle was opened whose memory its exporter has freed",                                 \
        "send a new handle after each allocation; drop the old one when its exporter frees")       \
    ROW(OPEN_DEAD_OWNER, "open-dead-owner", ERROR, "a handle was opened whose exporter has ended", \
        "keep the exporter running until its importers have opened, or hand over with ready = "    \
        "free")                                                                                    \
    ROW(OPEN_UNKNOWN, "open-unknown", ERROR,                                                       \
        "a memory handle was opened that no process that gpushare sees has exported",              \
        "check that all 64 bytes arrive unchanged from a live exporter; run the exporter under "   \
        "gpushare, too")                                                                           \
    ROW(OPEN_BAD_FLAGS, "open-bad-flags", ERROR,                                                   \
        "a memory handle was opened with flags that the driver refuses",                           \
        "pass cudaIpcMemLazyEnablePeerAccess (1), the only flag there is")                         \
    ROW(OPEN_OTHER_NAMESPACE, "open-other-namespace", ERROR,                                       \
        "a handle could not be opened because the two processes do not share what they must",      \
        "start both by gpushare run with one GPUSHARE_DIR, one GPUSHARE_NAMESPACE and one user")   \
    ROW(OPEN_NO_CONTEXT, "open-no-context", ERROR,                                                 \
        "an IPC call was made by a thread that has no current CUDA context",                       \
        "make a context current in this thread first: cudaSetDevice, or cuCtxSetCurrent")          \
    ROW(OPEN_PEER_DENIED, "open-peer-denied", ERROR,                                               \
        "a handle was opened on a device that cannot reach the memory of the exporter's",          \
        "open it with a device current that is the exporter's or a peer of it "                    \
        "(cudaDeviceCanAccessPeer)")                                                               \
    ROW(OPEN_PLACE_HELD, "open-place-held", ERROR,                                                 \
        "a memory handle could not be opened: something is open already where its memory belongs", \
        "close what was opened of freed memory before opening what the exporter made in its "      \
        "place; where threads open and close the same memory at once, try again")                  \
    ROW(OPEN_INTERIOR, "open-interior", WARNING,                                                   \
        "a handle was opened that was taken inside an allocation; the open gives its base",        \
        "add the bytes to the pointer, or have the exporter take the handle of the base and send " \
        "the offset along")                                                                        \
    ROW(EXPORT_NOT_CAPABLE, "export-not-capable", ERROR,                                           \
        "a handle was asked for of memory that cannot have one",                                   \
        "export memory of cudaMalloc; pool, managed, host and VMM memory have sharing of their "   \
        "own, and vmm_ipc = on gives VMM memory handles")                                          \
    ROW(EXPORT_INTERIOR, "export-interior", INFO,                                                  \
        "a handle was taken of a pointer inside an allocation; it stands for the whole of it",     \
        "send the offset along: cudaIpcOpenMemHandle returns the beginning of the allocation")     \
    ROW(EXPORT_SHARED_BLOCK, "export-shared-block", INFO,                                          \
        "exported memory shares its 2 MiB block with other allocations of this process",           \
        "importers can read and write the others, too: allocate what you export in multiples of "  \
        "2 MiB")                                                                                   \
    ROW(EVENT_NOT_INTERPROCESS, "event-not-interprocess", ERROR,                                   \
        "an event was to be shared that was not made for other processes",                         \
        "create it with cudaEventInterprocess | cudaEventDisableTiming, both of them")             \
    ROW(EVENT_DOUBLE_DESTROY, "event-double-destroy", ERROR,                                       \
        "an event that is destroyed already was destroyed again; the driver crashes of it",        \
        "destroy each event once; clear the variable after cudaEventDestroy")                      \
    ROW(EVENT_DESTROYED_WHILE_OPEN, "event-destroyed-while-open", INFO,                            \
        "an event was destroyed while another process has it open",                                \
        "destroy an exported event last: CUDA leaves undefined what the others' calls then do")    \
    ROW(EVENT_OPEN_OWN, "event-open-own", ERROR, "a process opened an event handle of its own",    \
        "use the event itself in the process that created it")                                     \
    ROW(EVENT_OTHER_CONTAINER, "event-other-container", ERROR,                                     \
        "an event of another container could not be opened",                                       \
        "start both programs by gpushare run with --cap-add CHECKPOINT_RESTORE, which gives them " \
        "different pids, or in one pid namespace (--pid), and give both one /dev/shm (--ipc)")     \
    ROW(EVENT_UNKNOWN, "event-unknown", ERROR,                                                     \
        "an event was opened by a handle that no process seen here has exported",                  \
        "check that all 64 bytes of cudaIpcGetEventHandle arrive unchanged from a live process")   \
    ROW(EVENT_STALE, "event-stale", ERROR,                                                         \
        "an event was opened that its creator has destroyed; the driver opens what is left of it", \
        "destroy an exported event after its last use in any process, and send a new handle for "  \
        "a new event")                                                                             \
    ROW(EVENT_DEAD_OWNER, "event-dead-owner", ERROR,                                               \
        "an event was opened whose creator has ended; the driver opens what is left of it, which " \
        "nobody else will record",                                                                 \
        "keep the creator running while its events are in use")                                    \
    ROW(EVENT_NEVER_RECORDED, "event-never-recorded", WARNING,                                     \
        "another process's event was waited for, and no process seen here has ever recorded it: "  \
        "such a wait does not wait",                                                               \
        "record the event, in any process, before others wait for it")                             \
    ROW(EVENT_USE_AFTER_DESTROY, "event-use-after-destroy", ERROR,                                 \
        "an event was used that is destroyed; the driver crashes of most such calls",              \
        "destroy each event after its last use; clear the variable after cudaEventDestroy")        \
    ROW(EVENT_EXPORT_IMPORTED, "event-export-imported", ERROR,                                     \
        "a handle was asked for of another process's event",                                       \
        "pass on the handle that was opened: only the process that created an event has handles "  \
        "of it")                                                                                   \
    ROW(NULL_OUTPUT, "null-output", ERROR, "a call was given a null pointer for its result",       \
        "pass the address of a variable: of a null one cudaIpcGetMemHandle and "                   \
        "cudaIpcGetEventHandle end the process")                                                   \
    ROW(CALL_AFTER_SHUTDOWN, "call-after-shutdown", WARNING,                                       \
        "an IPC call was made after CUDA had shut down at the end of the process",                 \
        "make it before main returns or exit is called: destructors of static objects, and "       \
        "atexit handlers older than the first CUDA call, run too late")                            \
    ROW(IPC_CALL_FAILED, "ipc-call-failed", ERROR,                                                 \
        "an IPC call was refused, for a reason that lies outside of what is shared",               \
        "look at what the code says: an error of earlier work comes back from every later call")   \
    ROW(VMM_DOUBLE_RELEASE, "vmm-double-release", ERROR,                                           \
        "a handle of cuMemCreate was released that the program had released before",               \
        "release it once for each cuMemCreate, import and cuMemRetainAllocationHandle")            \
    ROW(UNMAP_MISMATCH, "unmap-mismatch", ERROR,                                                   \
        "a part of a mapping, or what nothing is mapped at, was to be unmapped",                   \
        "unmap whole mappings, once, by the address and the size of their cuMemMap")               \
    ROW(VMM_GRANULARITY, "vmm-granularity", ERROR,                                                 \
        "a size or an address of VMM memory is no multiple of its granularity",                    \
        "round it up to what cuMemGetAllocationGranularity says")                                  \
    ROW(MAPPING_WITHOUT_ACCESS, "mapping-without-access", ERROR,                                   \
        "memory of cuMemCreate was copied or filled where it is mapped without access",            \
        "call cuMemSetAccess after each cuMemMap: every mapping has an access of its own")         \
    ROW(MAPPING_NEVER_ACCESSIBLE, "mapping-never-accessible", WARNING,                             \
        "memory of cuMemCreate is mapped to the end, and no device was given access to it there",  \
        "call cuMemSetAccess after each cuMemMap, or do without the mapping: no call can use it")  \
    ROW(ACCESS_PEER_MISSING, "access-peer-missing", ERROR,                                         \
        "memory of cuMemCreate was copied or filled on a device that has no access to it; that "   \
        "peer access is enabled does not count for such memory",                                   \
        "call cuMemSetAccess with a descriptor for each device that uses the mapping")             \
    ROW(EXPORT_TYPE_MISSING, "export-type-missing", ERROR,                                         \
        "memory was to be exported that was made without this type of handle",                     \
        "set requestedHandleTypes in the properties that cuMemCreate gets, handleTypes in those "  \
        "of cuMemPoolCreate")                                                                      \
    ROW(DESCRIPTOR_REFUSED, "descriptor-refused", ERROR,                                           \
        "the descriptor of another process's memory could not be imported",                        \
        "send the descriptor (SCM_RIGHTS, pidfd_getfd) and not its number, pass it by value, "     \
        "(void *)(intptr_t)fd and not &fd, close it after the import, and let both processes see " \
        "the GPU of the memory")                                                                   \
    ROW(FABRIC_UNUSABLE, "fabric-unusable", ERROR,                                                 \
        "memory with fabric handles was refused, and the program asked for no other",              \
        "fabric handles need an IMEX channel (/dev/nvidia-caps-imex-channels), also where the "    \
        "device says that it supports them: ask for POSIX descriptors then")                       \
    ROW(ADDRESS_FREE_MAPPED, "address-free-mapped", ERROR,                                         \
        "addresses were to be freed while memory is mapped there",                                 \
        "call cuMemUnmap for all of the reservation before cuMemAddressFree")                      \
    ROW(MAP_OVER_MAPPING, "map-over-mapping", ERROR,                                               \
        "memory of cuMemCreate was to be mapped where memory is mapped already",                   \
        "call cuMemUnmap there first, or map it at other addresses of the reservation")            \
    ROW(VMM_USE_AFTER_RELEASE, "vmm-use-after-release", ERROR,                                     \
        "a handle of cuMemCreate was mapped or exported that the program had released before",     \
        "release it after its last map and export; a mapping needs no handle any more")            \
    ROW(USE_UNMAPPED, "use-unmapped", ERROR,                                                       \
        "reserved addresses were copied, filled, given access, asked for their handle or used by " \
        "a graph where no memory is mapped",                                                       \
        "map memory of cuMemCreate there first, and unmap it after its last use")                  \
    ROW(EXPORT_IMPORTED, "export-imported", ERROR,                                                 \
        "memory of another process, which this one has imported, was to be exported",              \
        "have the process that made it export it, once for each that is to have it")               \
    ROW(MEMORY_CALL_FAILED, "memory-call-failed", INFO,                                            \
        "a call for memory of cuMemCreate or of a pool was refused, and nothing that is known "    \
        "here says why",                                                                           \
        "look at what the code says; a program that asks what the device can do may ignore it")    \
    ROW(IMPORT_PARTIAL, "import-partial", WARNING,                                                 \
        "a copy or fill went beyond the memory that a token of cuMemCreate memory has open: its "  \
        "exporter had mapped no more when it made the token, or what follows has no handle",       \
        "have the exporter get the handle after it has mapped all of the buffer, and open that")   \
    ROW(VMM_REMAPPED_SHARED, "vmm-remapped-shared", WARNING,                                       \
        "other memory was mapped where another process has the memory before open, by a token: "   \
        "it sees the old bytes, without an error",                                                 \
        "have it close the handle before the unmap, and pass a new handle on after the map")       \
    ROW(VMM_HANDLE_LEAK, "vmm-handle-leak", WARNING,                                               \
        "memory of cuMemCreate was unmapped, and its handle was never released",                   \
        "call cuMemRelease once for each cuMemCreate, import and retain; right after cuMemMap "    \
        "will do")                                                                                 \
    ROW(EXPORT_DESCRIPTOR_LEAK, "export-descriptor-leak", WARNING,                                 \
        "memory of cuMemCreate was released, and a descriptor that it was exported by stayed "     \
        "open: it kept the memory allocated",                                                      \
        "close each descriptor once it is sent; whoever received it has one of its own")           \
    ROW(IMPORT_DESCRIPTOR_LEAK, "import-descriptor-leak", WARNING,                                 \
        "memory of another process was released, and the descriptor that it was imported by "      \
        "stayed open: it kept the memory allocated",                                               \
        "close the descriptor right after cuMemImportFromShareableHandle, which does not")         \
    ROW(POOL_ALLOC_IMPORTED, "pool-alloc-imported", ERROR,                                         \
        "memory was to be allocated from a pool of another process",                               \
        "allocate in the process that created the pool, and import the pointer "                   \
        "(cudaMemPoolImportPointer)")                                                              \
    ROW(POOL_IMPORTED_TWICE, "pool-imported-twice", ERROR,                                         \
        "a pointer of a pool was imported more than once, and freed more than once",               \
        "free it once, after its last use: the driver does not count how often it is imported")    \
    ROW(POOL_FREE_ORDER, "pool-free-order", ERROR,                                                 \
        "memory of a pool was freed while another process has it imported: that one reads old "    \
        "bytes from then on, without an error",                                                    \
        "let every importer free the pointer (cudaFreeAsync, and wait for it) before the process " \
        "that allocated it does")                                                                  \
    ROW(POOL_DESTROYED_IN_USE, "pool-destroyed-in-use", WARNING,                                   \
        "a pool was destroyed while memory of it is allocated or imported",                        \
        "free all of its memory before cudaMemPoolDestroy")                                        \
    ROW(LEAK_OPEN, "leak-open", INFO, "memory of another process was opened and never closed",     \
        "call cudaIpcCloseMemHandle when done: until then it stays allocated, even if its "        \
        "exporter frees")                                                                          \
    ROW(UNBALANCED_OPEN, "unbalanced-open", WARNING,                                               \
        "memory of another process was opened more often than closed, and so it is open still",    \
        "call cudaIpcCloseMemHandle once for every successful cudaIpcOpenMemHandle")               \
    ROW(LEAK_EVENT, "leak-event", INFO,                                                            \
        "an event was opened, or its handle given to other processes, and it was never destroyed", \
        "call cudaEventDestroy once for every successful cudaIpcOpenEventHandle, and for every "   \
        "event whose handle cudaIpcGetEventHandle gave")                                           \
    ROW(LEAK_EXPORT, "leak-export", INFO, "exported memory was never freed",                       \
        "free it with cudaFree once its importers have closed")                                    \
    ROW(LEAK_MEMORY, "leak-memory", INFO,                                                          \
        "memory was allocated, and no free of it was seen until the end of the process",           \
        "free it with cudaFree before CUDA shuts down, that is before main returns; a static "     \
        "runtime hides later frees; what a program needs to its end may stay")                     \
    ROW(RESET_WITH_SHARED, "reset-with-shared", WARNING,                                           \
        "a context was destroyed with shared memory in it that is in use",                         \
        "close what was opened, and let importers close what was exported, before the reset")      \
    ROW(FORK_WITH_CONTEXT, "fork-with-context", ERROR,                                             \
        "a forked child called CUDA, which its parent had initialised",                            \
        "start CUDA in the child only, or exec after fork (Python: the spawn start method)")       \
    ROW(SHARE_MISMATCH, "share-mismatch", ERROR,                                                   \
        "a region does not fit the allocation that should share it",                               \
        "make size and device of the rule's allocations agree in exporter and importer")           \
    ROW(SHARE_TIMEOUT, "share-timeout", WARNING, "the other side of a shared region did not come", \
        "give the other program a rule that fits (gpushare explain tells), the same user, "        \
        "GPUSHARE_DIR and GPUSHARE_NAMESPACE; start it sooner, or raise wait (import) or "         \
        "handover (export)")                                                                       \
    ROW(SHARE_FALLBACK, "share-fallback", WARNING,                                                 \
        "an allocation that a rule matches was left private",                                      \
        "see the reason; where the directory cannot be used, gpushare doctor says what to do; "    \
        "where the name is taken, role = auto lets further processes import it, a "                \
        "GPUSHARE_NAMESPACE of their own keeps them apart, and {n} in the name, with index = *, "  \
        "gives each allocation of a process one of its own")                                       \
    ROW(FRAME_LATE, "frame-late", WARNING,                                                         \
        "a program waited for a frame, or for the reader of one, as long as frames_timeout says",  \
        "with frames = each both wait for each other: use latest where frames may be left out, "   \
        "give frame_slots more for a reader that is late now and then, or raise frames_timeout")   \
    ROW(WRITE_READ_ONLY, "write-read-only", ERROR,                                                 \
        "memory that is shared read-only was to be written; nothing of it was",                    \
        "let only the process that created the region write it, or set access = rw in its rules")  \
    ROW(MERGE_WRITTEN, "merge-written", ERROR,                                                     \
        "a kernel may have written into memory that was merged; the process has lost its context", \
        "start it again: what is excluded stays private, and so does what is suspected after "     \
        "another error 700; gpushare forget undoes that")                                          \
    ROW(CONFIG_ERROR, "config-error", ERROR,                                                       \
        "the configuration cannot be used; gpushare is off in this process",                       \
        "correct it and test it with: gpushare check FILE")                                        \
    ROW(DRIVER_INCOMPLETE, "driver-incomplete", WARNING,                                           \
        "the driver lacks a function that gpushare needs; gpushare is off in this process",        \
        "see which library the program has loaded as the driver: perhaps it only stands in for "   \
        "it, or is too old")                                                                       \
    ROW(RECORD_INVALID, "record-invalid", WARNING,                                                 \
        "a file in the published directory is damaged or not gpushare's; it was skipped",          \
        "remove it with: gpushare gc")                                                             \
    ROW(STORE_UNAVAILABLE, "store-unavailable", WARNING,                                           \
        "the published directory cannot be used; other processes do not see this one's memory",    \
        "run: gpushare doctor")

/* Higher levels, and where a report has them. CUDA calls a free of open memory undefined, and only
 * some verdicts keep it from happening. What leaks from one place more than a handful of times
 * grows with a loop. */
#define GPS_LEAK_HANDFUL 8
#define GPS_RAISED_LEVELS(ROW)                                                                     \
    ROW(FREE_WHILE_OPEN, ERROR, "where the free is let through, as in an audit")                   \
    ROW(LEAK_OPEN, WARNING, "in an audit, where one place leaves more than 8 open")                \
    ROW(LEAK_EVENT, WARNING, "in an audit, where one place leaves more than 8 open")               \
    ROW(LEAK_EXPORT, WARNING, "in an audit, where one place leaves more than 8 of them")

/* Other hints, for regions that a rule gave to its importers: they know of no handle. */
#define GPS_RULE_HINTS(ROW)                                                                        \
    ROW(FREE_WHILE_OPEN, "let the importing programs free it first: their cudaFree closes it")     \
    ROW(EXIT_WHILE_OPEN, "let this program end last, set linger in the configuration, or give "    \
                         "the region backing = vmm and keep = users")                              \
    ROW(RESET_WITH_SHARED, "let the importing programs free it before the reset: their cudaFree "  \
                           "closes it")

/* Other hints, where a free and a close take any address of the memory (HIP). */
#define GPS_RANGE_HINTS(ROW)                                                                       \
    ROW(FREE_INTERIOR, "free the pointer that the allocation returned: by one inside the runtime " \
                       "frees the whole of it")                                                    \
    ROW(FREE_IMPORTED, "call cudaIpcCloseMemHandle for what cudaIpcOpenMemHandle returned; this "  \
                       "call closed it")                                                           \
    ROW(CLOSE_INTERIOR, "close the pointer that cudaIpcOpenMemHandle returned; this call closed "  \
                        "the whole of it")

enum gps_level { GPS_LEVEL_INFO = 0, GPS_LEVEL_WARNING = 1, GPS_LEVEL_ERROR = 2 };

#define GPS_FINDING_ENUM(id, text, level, sentence, hint) GPS_##id,
enum gps_finding { GPS_FINDINGS(GPS_FINDING_ENUM) GPS_FINDING_COUNT };
#undef GPS_FINDING_ENUM

#endif
