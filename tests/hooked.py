#!/usr/bin/env python3
"""tests/hooked.py [CUDA_H]: whether every function of cuda.h that makes, maps, shares or ends memory by handles, pools or
ranges of addresses has a row in shim/cuda/hooks.def, or stands below with the reason why it has none.

They are found by the types of their parameters. A function that a newer cuda.h brings fails the test until it is
hooked or named here. Prints each one that is missing, and each name here that is hooked, or not in the header.
"""
import glob
import os
import re
import sys

# A parameter of one of these types, or an address and then a size: a range.
TYPES = """CUmemGenericAllocationHandle CUmemoryPool CUmemPoolPtrExportData CUarrayMapInfo CUmemAccessDesc
    CUexternalMemory CUDA_EXTERNAL_MEMORY_HANDLE_DESC CUmulticastObjectProp CUmemAllocationProp CUmemPoolProps""".split()
RANGE = re.compile(r"\bCUdeviceptr\s+\w+\s*,\s*size_t\s+\w+")

LEFT_OUT = {
    "a question, which the driver answers": """cuMemGetAllocationGranularity cuMulticastGetGranularity cuMemPoolGetAttribute cuMemPoolGetAccess cuDeviceGetMemPool cuDeviceGetDefaultMemPool
        cuMemGetDefaultMemPool cuMemGetMemPool""",
    "it changes nothing that is in the books": """cuMulticastAddDevice cuMemPoolTrimTo cuMemPoolSetAttribute
        cuMemPoolSetAccess""",
    "memory that was bound to an object of multicast is marked for good": "cuMulticastUnbind",
    "memory of cuMemAllocAsync is the driver's alone, whichever pool it comes from": "cuDeviceSetMemPool cuMemSetMemPool",
    "the memory of external memory is another system's": """cuExternalMemoryGetMappedBuffer
        cuExternalMemoryGetMappedMipmappedArray cuDestroyExternalMemory""",
    "it reads, or gives advice about memory that the driver moves": """cuTexRefSetAddress_v2
        cuTexRefSetAddress2D_v2 cuTexRefSetAddress2D_v3 cuStreamAttachMemAsync cuMemRangeGetAttribute cuMemRangeGetAttributes""",
}


def header(arguments):
    places = arguments or sorted(glob.glob("/usr/local/cuda/include/cuda.h")) + ["/opt/cuda/include/cuda.h",
                                                                                "/usr/lib/cuda/include/cuda.h", "/usr/include/cuda.h"]
    for place in places:
        if os.path.exists(place):
            with open(place, encoding="utf-8") as text:
                return re.sub(r"/\*.*?\*/", "", text.read(), flags=re.DOTALL)
    sys.exit("no cuda.h")


def declared(text):
    """{name in libcuda: parameters}; names are versioned by macros, and each thread's streams have a name of their own."""
    versions = dict(re.findall(r"^\s*#\s*define\s+(cu\w+)\s+(cu\w+_v\d+)\s*$", text, re.M))
    per_thread = dict(re.findall(r"^\s*#\s*define\s+(cu\w+)\s+__CUDA_API_(PT[DS][SZ]*)\(", text, re.M))
    found = {}
    for plain, parameters in re.findall(r"\bCUresult\s+CUDAAPI\s+(cu\w+)\s*\(([^;]*?)\)\s*;", text, re.DOTALL):
        name = versions.get(plain, plain)
        name = plain if name in found else name  # the first ABI, which the header has at its end
        found[name] = parameters
        if name in per_thread:
            found[name + "_" + per_thread[name].lower()] = parameters
    return found


def hooked():
    with open("shim/cuda/hooks.def", encoding="utf-8") as text:
        rows = re.findall(r"^(DRIVER\(\w+, *|WRITE\(|WRITE_A?SYNC\(|GATED\(|LAUNCH\(|READ\()(\w+)", text.read(), re.M)
    names = {name for _, name in rows}
    names |= {name + "_ptds" for kind, name in rows if kind.startswith("WRITE_SYNC")}
    return names | {name + "_ptsz" for kind, name in rows if kind.startswith("WRITE_ASYNC")}


def concerns(parameters):
    return RANGE.search(parameters) or any(re.search(rf"\b{name}(_v\d+)?\b", parameters) for name in TYPES)


def base(name):
    return re.sub(r"_pt[ds][sz]$", "", name)


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    functions, rows = declared(header(sys.argv[1:])), hooked()
    left_out = {name for names in LEFT_OUT.values() for name in names.split()}
    found = {name for name, parameters in functions.items() if concerns(parameters)}
    wrong = [f"{name}: no row in hooks.def, and no reason here" for name in found - rows if base(name) not in left_out]
    wrong += [f"{name}: left out, and hooked" for name in left_out & rows]
    wrong += [f"{name}: left out, and no such function takes a handle, a pool or a range" for name in left_out - found]
    print("\n".join(sorted(wrong)) if wrong else f"{len(found)} functions, {len(found & rows)} of them hooked")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
