#!/usr/bin/env python3
"""tests/built/hooked.py [CUDA_H]: whether every function of cuda.h has a row in shim/cuda/hooks.def or in shim/cuda/harmless.def,
and not in both; and whether what makes, maps, shares or ends memory by handles, pools or ranges of addresses, and is not
hooked, stands below with the reason.

These are found by the types of their parameters. A function that a newer cuda.h brings fails the test until it is
hooked or named. Prints each one that is missing, and each name here that is hooked, or not in the header.
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
        rows = re.findall(r"^(DRIVER\(\w+, *|USE\(\w+, *|LOOKUP\(|WRITE\(|WRITE_A?SYNC\(|GATED\(|LAUNCH\(|GRAPH\(|READ\()(\w+)", text.read(), re.M)
    names = {name for _, name in rows}
    names |= {name + "_ptds" for kind, name in rows if kind.startswith("WRITE_SYNC")}
    return names | {name + "_ptsz" for kind, name in rows if kind.startswith("WRITE_ASYNC")}


def harmless():
    with open("shim/cuda/harmless.def", encoding="utf-8") as text:
        rows = re.sub(r"^HARMLESS_V2\((\w+)\)$", r"HARMLESS(\1)\nHARMLESS(\1_v2)", text.read(), flags=re.M)
    rows = re.sub(r"^FAMILY\((\w+)\)$", r"HARMLESS(\1*)", rows, flags=re.M)
    return [re.findall(rf"^{kind}\(([\w*]+)\)$", rows, re.M) for kind in ("HARMLESS", "OLD")]


def family(name):
    return re.sub(r"_v\d+$", "", base(name))


def wrong_lists(functions, rows):
    """A row OLD is an ABI before a hooked one, and HARMLESS none: a resolver is asked for all of a family by one name.
    A name with an asterisk is all that begin so."""
    for names in harmless():
        yield from (f"{name}: harmless.def is not sorted there" for last, name in zip(names, names[1:]) if last >= name)
    plain, old = (set(names) for names in harmless())
    functions = {base(name) for name in functions}
    for row in [name for name in plain if name.endswith("*")]:
        plain.remove(row)
        yield from (f"{name}: it has a row beside {row}" for name in plain | old if name.startswith(row[:-1]))
        plain |= {name for name in functions if name.startswith(row[:-1])}
    known, families = {base(name) for name in rows}, {family(name) for name in rows}
    yield from (f"{name}: neither hooked nor harmless" for name in functions - known - plain - old)
    yield from (f"{name}: both hooked and harmless" for name in known & (plain | old))
    yield from (f"{name}: another version of it is hooked, so it is OLD" for name in plain if family(name) in families)
    yield from (f"{name}: no version of it is hooked, so it is HARMLESS" for name in old if family(name) not in families)


def concerns(parameters):
    return RANGE.search(parameters) or any(re.search(rf"\b{name}(_v\d+)?\b", parameters) for name in TYPES)


def base(name):
    return re.sub(r"_pt[ds][sz]$", "", name)


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    functions, rows = declared(header(sys.argv[1:])), hooked()
    left_out = {name for names in LEFT_OUT.values() for name in names.split()}
    found = {name for name, parameters in functions.items() if concerns(parameters)}
    wrong = [f"{name}: no row in hooks.def, and no reason here" for name in found - rows if base(name) not in left_out]
    wrong += [f"{name}: left out, and hooked" for name in left_out & rows]
    wrong += [f"{name}: left out, and no such function takes a handle, a pool or a range" for name in left_out - found]
    wrong += wrong_lists(functions, rows)
    print("\n".join(sorted(wrong)) if wrong else f"{len(functions)} functions; {len(found)} of them take memory, {len(found & rows)} of these are hooked")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
