// finding_cases.hpp - what each program of misuse is to be told: the table behind finding_test.cpp.
#pragma once

#include <ostream>

namespace {

enum Who { MAIN, OTHER }; // the program's first process, or the one it started

struct Case {
    const char *run; // misuse's ID
    const char *id;  // of the finding
    const char *api; // the call under way; "" none
    Who who;
    const char *facts;  // p ptr, s size, r region, d device
    const char *priors; // in this order, others may be between; * by another process
    bool other;         // the other process is named
    const char *detail; // a part of it
    const char *sides;  // other true findings
};

inline std::ostream &operator<<(std::ostream &out, const Case &one) {
    return out << one.run;
}

// Where an exporter has ended as programs do, its record is gone: the driver's word remains. Each
// open of unbalanced-open beyond the first is a double-open, too.
const Case cases[] = {
    {"free-while-open", "free-while-open", "cudaFree", MAIN, "psrd", "allocated exported", true, "",
     ""},
    {"exit-while-open", "exit-while-open", "", OTHER, "psrd", "allocated exported", true, "", ""},
    {"double-free", "double-free", "cudaFree", MAIN, "psd", "allocated freed", false, "", ""},
    {"free-interior", "free-interior", "cudaFree", MAIN, "psd", "allocated", false, "4096", ""},
    {"free-imported", "free-imported", "cudaFree", OTHER, "psrd", "opened", true, "", ""},
    {"free-host", "free-host", "cudaFree", MAIN, "p", "", false, "", ""},
    {"use-after-free", "use-after-free", "cuMemcpyDtoH", MAIN, "psd", "allocated freed", false, "",
     ""},
    {"close-unopened", "close-unopened", "cudaIpcCloseMemHandle", OTHER, "p", "", false, "", ""},
    {"close-null", "close-unopened", "cudaIpcCloseMemHandle", MAIN, "", "", false,
     "the pointer is null", ""},
    {"null-output", "null-output", "cudaIpcOpenMemHandle", OTHER, "", "", false, "", ""},
    {"open-place-held", "open-place-held", "cudaIpcOpenMemHandle", OTHER, "r", "opened", true,
     "has freed since is open here", "export-shared-block export-shared-block free-while-open"},
    {"call-after-shutdown", "call-after-shutdown", "cudaIpcCloseMemHandle", OTHER, "psd", "opened",
     false, "", ""},
    {"ipc-call-failed", "ipc-call-failed", "cuIpcGetEventHandle", MAIN, "", "", false, "code is 1",
     ""},
    {"double-close", "double-close", "cudaIpcCloseMemHandle", OTHER, "psd", "opened closed", false,
     "", ""},
    {"close-interior", "close-interior", "cudaIpcCloseMemHandle", OTHER, "psrd", "opened", false,
     "4096", ""},
    {"close-own", "close-own", "cudaIpcCloseMemHandle", MAIN, "psd", "allocated", false, "", ""},
    {"use-after-close", "use-after-close", "cuMemsetD8", OTHER, "psd", "opened closed", false,
     "4096", ""},
    {"double-open", "double-open", "cudaIpcOpenMemHandle", OTHER, "psrd", "opened", true, "", ""},
    {"open-own-handle", "open-own-handle", "cudaIpcOpenMemHandle", MAIN, "srd",
     "allocated exported", false, "", ""},
    {"open-stale", "open-stale", "cudaIpcOpenMemHandle", OTHER, "srd",
     "allocated* exported* freed*", true, "", ""},
    {"open-stale-reused", "open-stale", "cudaIpcOpenMemHandle", OTHER, "psrd",
     "allocated* exported* freed*", true, "", ""},
    {"open-dead-owner", "open-dead-owner", "cudaIpcOpenMemHandle", MAIN, "srd",
     "allocated* exported*", true, "", ""},
    {"open-unknown-exited", "open-unknown", "cudaIpcOpenMemHandle", MAIN, "r", "", false,
     "has ended", "leak-export"},
    {"open-unknown", "open-unknown", "cudaIpcOpenMemHandle", OTHER, "r", "", false, "", ""},
    {"open-unknown-cut", "open-unknown", "cudaIpcOpenMemHandle", OTHER, "r", "", false,
     "bytes are those of a handle of misuse (pid", ""},
    {"open-unknown-mixed", "open-unknown", "cudaIpcOpenMemHandle", OTHER, "r", "", false,
     "those of another one of misuse (pid", ""},
    {"open-bad-flags", "open-bad-flags", "cudaIpcOpenMemHandle", OTHER, "srd",
     "allocated* exported*", true, "0", ""},
    {"open-second-context", "open-second-context", "cuIpcOpenMemHandle", OTHER, "srd", "opened",
     true, "", ""},
    {"open-no-context", "open-no-context", "cuIpcOpenMemHandle", OTHER, "", "", false, "", ""},
    {"open-peer-denied", "open-peer-denied", "cudaIpcOpenMemHandle", OTHER, "srd", "", true, "",
     ""},
    {"open-other-namespace", "open-other-namespace", "cudaIpcOpenMemHandle", OTHER, "srd", "", true,
     "pid namespace", ""},
    {"event-other-container", "event-other-container", "cudaIpcOpenEventHandle", OTHER, "", "",
     false, "/dev/shm", ""},
    {"export-not-capable", "export-not-capable", "cudaIpcGetMemHandle", MAIN, "p", "", false,
     "pool", ""},
    {"export-not-capable-managed", "export-not-capable", "cudaIpcGetMemHandle", MAIN, "p", "",
     false, "managed", ""},
    {"export-not-capable-host", "export-not-capable", "cudaIpcGetMemHandle", MAIN, "p", "", false,
     "host", ""},
    {"export-interior", "export-interior", "cudaIpcGetMemHandle", MAIN, "psd", "allocated", false,
     "1048576", ""},
    {"export-shared-block", "export-shared-block", "cudaIpcGetMemHandle", MAIN, "psd", "allocated",
     false, "", ""},
    {"event-not-interprocess", "event-not-interprocess", "cudaIpcGetEventHandle", MAIN, "p", "",
     false, "", ""},
    {"event-not-interprocess-timing", "event-not-interprocess", "cudaEventCreateWithFlags", MAIN,
     "", "", false, "", ""},
    {"event-unknown", "event-unknown", "cudaIpcOpenEventHandle", OTHER, "", "", false,
     "all bytes of the handle are 0", ""},
    {"event-unknown-memory", "event-unknown", "cudaIpcOpenEventHandle", OTHER, "", "", false,
     "it is a handle of memory, of misuse", ""},
    {"event-export-imported", "event-export-imported", "cudaIpcGetEventHandle", OTHER, "p",
     "opened", false, "", ""},
    {"event-double-destroy", "event-double-destroy", "cudaEventDestroy", OTHER, "p",
     "created destroyed", false, "", ""},
    {"event-destroyed-while-open", "event-destroyed-while-open", "cudaEventDestroy", MAIN, "p",
     "created", true, "", ""},
    {"event-open-own", "event-open-own", "cudaIpcOpenEventHandle", MAIN, "", "", false, "", ""},
    {"vmm-double-release", "vmm-double-release", "cuMemRelease", MAIN, "sd", "created released",
     false, "", ""},
    {"unmap-mismatch", "unmap-mismatch", "cuMemUnmap", MAIN, "psd", "created mapped", false,
     "0x400000", ""},
    {"unmap-mismatch-nothing", "unmap-mismatch", "cuMemUnmap", MAIN, "ps", "", false,
     "nothing is mapped", ""},
    {"vmm-granularity", "vmm-granularity", "cuMemCreate", MAIN, "", "", false,
     "the size is 0xf4240", ""},
    {"mapping-without-access", "mapping-without-access", "cuMemcpyDtoH", MAIN, "psd",
     "created mapped", false, "without access for any device", ""},
    {"mapping-never-accessible", "mapping-never-accessible", "", MAIN, "d", "created mapped", false,
     "1 mapping, 2 mib", ""},
    {"access-peer-missing", "access-peer-missing", "cuMemsetD8", MAIN, "psd", "created mapped",
     false, "without access for device 1", ""},
    {"export-type-missing", "export-type-missing", "cuMemExportToShareableHandle", MAIN, "sd",
     "created", false, "without any", ""},
    {"descriptor-refused", "descriptor-refused", "cuMemImportFromShareableHandle", OTHER, "", "",
     false, "is not open in this process", ""},
    {"descriptor-refused-gpu", "descriptor-refused", "cuMemImportFromShareableHandle", OTHER, "",
     "", false, "cuda_visible_devices", ""},
    {"export-not-capable-vmm", "export-not-capable", "cudaIpcGetMemHandle", MAIN, "psd",
     "created mapped", false, "vmm_ipc = on", ""},
    {"fabric-unusable", "fabric-unusable", "", MAIN, "sd", "refused", false,
     "the driver's code is 800", ""},
    {"address-free-mapped", "address-free-mapped", "cuMemAddressFree", MAIN, "psd", "mapped", false,
     "0x200000", ""},
    {"vmm-handle-leak", "vmm-handle-leak", "", MAIN, "d", "created", false, "1 handle, 2 mib", ""},
    {"export-descriptor-leak", "export-descriptor-leak", "", MAIN, "d", "created exported released",
     false, "1 descriptor, 2 mib", ""},
    {"import-descriptor-leak", "import-descriptor-leak", "", OTHER, "", "opened released", false,
     "1 descriptor, 2 mib", ""},
    {"pool-alloc-imported", "pool-alloc-imported", "cuMemAllocFromPoolAsync", OTHER, "", "opened",
     false, "", ""},
    {"pool-imported-twice", "pool-imported-twice", "cuMemFreeAsync", OTHER, "p", "opened freed",
     false, "", ""},
    {"pool-free-order", "pool-free-order", "cuMemFreeAsync", MAIN, "ps", "allocated exported", true,
     "", ""},
    {"pool-destroyed-in-use", "pool-destroyed-in-use", "cuMemPoolDestroy", MAIN, "psd",
     "created allocated", false, "1 of its pointers is alive", ""},
    {"leak-open", "leak-open", "", OTHER, "psrd", "opened", true, "", ""},
    {"unbalanced-open", "unbalanced-open", "", OTHER, "psrd", "opened", true, "", "double-open"},
    {"leak-export", "leak-export", "", MAIN, "psrd", "allocated exported", false, "", ""},
    {"reset-with-shared", "reset-with-shared", "cudaDeviceReset", OTHER, "psrd", "opened", true, "",
     ""},
    {"reset-with-shared-exporter", "reset-with-shared", "cudaDeviceReset", MAIN, "psrd",
     "allocated exported", true, "", ""},
    {"fork-with-context", "fork-with-context", "cudaMalloc", OTHER, "", "", false, "", ""},
};

} // namespace
