#!/usr/bin/env python3
"""Whether memory that a rule gives answers as cudaMalloc's: tests/gpu/programs/kinds.c bare and under a rule of each
kind, row by row. What differs, and why, stands in EXCEPTIONS alone; docs/limits.md has its sentences.

usage: kinds.py BUILD sim|gpu     rows as fleet.py prints them; the exit status is 1 if one fails
       kinds.py --write, --check  the sentences in docs/limits.md: write them; are they those?
"""
import os
import pathlib
import re
import sys
import textwrap
import time

from fleet import MIB, Failed, Fleet, Table

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/limits.md"
BEGIN, END = "<!-- differs: of tests/gpu/kinds.py -->\n", "<!-- end -->\n"
SIZES = (4096, 5 * MIB + 4096)  # both are rounded up for others to map
KINDS = {  # name: what its rule says
    "export, legacy": "role = export\n",
    "import, legacy": "role = import\nwait = 20s\nmissing = fail\n",
    "export, vmm": "role = export\nbacking = vmm\n",
    "import, vmm": "role = import\nwait = 20s\nmissing = fail\n",
    "merge, private": "role = merge\nquiet = 1h\n",
    "merge, merged": "role = merge\nquiet = 1s\n",
    "merge, quiet = 0": "role = merge\nquiet = 0\n",
}
# Which kinds, which rows, where, and why. "two": with two cards; "linked": that reach each other; "apart": that do not.
EXCEPTIONS = [
    ("merge|.*vmm", r"card 1, .*: (cuMemsetD|.*DEVICE_POINTER|.*cuMemGetAddressRange)", "two",
     "Memory that a merge rule took, or with `backing = vmm`, is mapped for each GPU on which the program has a context, if that reaches it; each "
     "costs some 30 us a block more. So kernels, fills and questions of another GPU reach it also where the program did not enable peer access, "
     "which bare is refused."),
    ("import, legacy", r"card 1, .* on: (cuMemsetD|.*DEVICE_POINTER|.*cuMemGetAddressRange)", "linked",
     "Memory that a rule imports with the legacy backing is reached by kernels and fills of its own GPU alone, also with peer access: the driver "
     "maps an opened handle for that one. Copies reach it from each. `backing = vmm` in the exporter's rule maps it for all."),
    ("merge|.*vmm", r"card 1, .*: (cuMemcpy(Async)?\(|cuMemcpy[HD]to|.*ACCESS_FLAGS)", "apart",
     "Where no GPU reaches another, copies of memory that a merge rule took, or with `backing = vmm`, answer 1 while another GPU is current, and "
     "`ACCESS_FLAGS` is 0: no access can be given. Those of plain memory go on."),
    (".*vmm", "SYNC_MEMOPS", "",
     "`SYNC_MEMOPS` of memory with `backing = vmm` cannot be set or taken back (801), as of all memory of `cuMemCreate`; `P2P_TOKENS` set it."),
    ("merge", "IS_LEGACY_CUDA_IPC_CAPABLE|cuIpcGetMemHandle", "",
     "Memory that a merge rule took has no IPC handle: `cudaIpcGetMemHandle` answers 1, and `IS_LEGACY_CUDA_IPC_CAPABLE` is 0, for its blocks come "
     "from several processes."),
    ("import", "IS_GPU_DIRECT_RDMA_CAPABLE", "",
     "Imported memory is not said to be capable of GPUDirect RDMA (`IS_GPU_DIRECT_RDMA_CAPABLE`): the driver says it only in the process that "
     "made the memory."),
    ("import|merge|.*vmm", "IS_HW_DECOMPRESS_CAPABLE", "",
     "Memory of a rule is not said to be decompressible by hardware (`IS_HW_DECOMPRESS_CAPABLE`), but where it is exported with the legacy backing: "
     "the driver says it of what `cudaMalloc` made, in the process that called it."),
]


def rules(kind):
    return "".join(f"[region kinds-{i}]\nprogram = kinds\nsize = {size}\n{KINDS[kind]}" for i, size in enumerate(SIZES))


def start(fleet, kind):
    name = re.sub(r"\W+", "-", kind)
    return fleet.start(name, [fleet.programs / "kinds", *SIZES], fleet.config(name, rules(kind)) if kind != "bare" else None).ready()


def told(member):
    parts = [part.strip() for part in member.ask("tell", 120).split(";") if part.strip()]
    for before, part in zip([""] + parts, parts):
        if "=" not in part:
            raise Failed(f"it says what is no row: {part!r}, after {before!r}")
    return dict(part.rsplit("=", 1) for part in parts)


def wait_until_merged(fleet, kind):
    until = time.monotonic() + 20
    while kind == "merge, merged" and fleet.merged() < 2 * MIB:
        if time.monotonic() > until:
            raise Failed("nothing is merged")
        time.sleep(0.1)


def exceptions(driver, bare):
    """Those that hold here; and those of them that must be seen."""
    two = any("card 1, " in row for row in bare)
    apart = two and not bare["card 1: cuCtxEnablePeerAccess"].startswith("0")
    here = [one for one in EXCEPTIONS if {"": True, "two": two, "linked": two and not apart, "apart": apart}[one[2]]]
    return here, [one for one in here if driver == "sim"]


def compare(table, kind, bare, seen, allowed):
    """Which exceptions were there; None: something differs without."""
    fits = {row: [one for one in allowed if re.match(one[0], kind) and re.search(one[1], row)]
            for row, value in seen.items() if value != bare.get(row)}
    wrong = [f"{row} = {seen[row]}, bare {bare.get(row)}" for row, found in fits.items() if not found]
    good = not wrong and seen.keys() == bare.keys()
    table.row(good, f"{kind}: answers as cudaMalloc's memory",
              f"{len(seen)} rows, {len(fits)} differ with a reason" if not wrong else f"{len(wrong)} differ: " + "; ".join(wrong[:12]))
    return [found[0] for found in fits.values()] if good else None


def ask_all(fleet, table, driver):
    """Whether all is well. What a kind imports its exporter has, the kind before it."""
    one = start(fleet, "bare")
    bare = told(one)
    allowed, expected = exceptions(driver, bare)
    good, seen, running = one.end() == 0, [], []
    for kind in KINDS:
        running.append(start(fleet, kind))
        wait_until_merged(fleet, kind)
        found = compare(table, kind, bare, told(running[-1]), allowed)
        good &= found is not None
        seen += found or []
        if not kind.startswith("export"):
            good &= not any([member.end() for member in reversed(running)])
            running = []
    table.row(good, "all of it, and they end well")
    unseen = [one[1] for one in expected if one not in seen]
    table.row(not unseen, "each exception is one", "; ".join(unseen))
    return good and not unseen


def run(build, driver):
    good, table = False, Table()
    if driver == "sim":
        words = {"LD_LIBRARY_PATH": f"{build}/sim", "GPUSHARE_SIM_ROOT": f"@kinds-{os.getpid()}", "GPUSHARE_SIM_DEVICES": "2"}
        os.environ.update({key: os.environ.get(key, value) for key, value in words.items()})
    with Fleet(build, driver, "kinds") as fleet, table.part("kinds"):
        good = ask_all(fleet, table, driver)
    return not good


# --- the page ---

def sentences():
    return BEGIN + "".join(textwrap.fill(f"- {why}", 120, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) + "\n"
                           for why in dict.fromkeys(why for *_, why in EXCEPTIONS)) + END


def page(check):
    text = PAGE.read_text(encoding="utf-8")
    begin, end = text.index(BEGIN), text.index(END) + len(END)
    if text[begin:end] == sentences():
        return 0
    if check:
        print(f"{PAGE.name} has other sentences than tests/gpu/kinds.py: make docs")
        return 1
    PAGE.write_text(text[:begin] + sentences() + text[end:], encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(page(sys.argv[1] == "--check") if sys.argv[1].startswith("--") else run(*sys.argv[1:3]))
