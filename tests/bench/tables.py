#!/usr/bin/env python3
"""Turns results of bench.py into the tables of docs/measured.md, on standard output.

usage: tables.py RESULT.json [INSTRUCTIONS.json]     (make bench-docs)
"""
import collections
import datetime
import json
import pathlib
import sys

HEAD = """\
# What gpushare saves and costs, measured

On {when}: {where}, by `{command}`, {rounds} pairs. This page is made by `make bench-docs`.

![memory and loading time of replicas, bare and merged](savings.svg)

N replicas with merged weights take little more memory than one replica, and with `quiet = 0` a further replica is ready
in a fraction of the time. The figures of this picture are in [replicas.md](replicas.md#what-it-costs-measured).

![what calls cost compared with bare ones](overhead.svg)

Calls that allocate and free take as long as bare ones: the dots lie at 1. The whiskers are quartiles of the difference
and show the driver's own noise. The first export and the free of an export take much longer than bare, because they write
a record.

## Calls

Each figure is the median, in nanoseconds, of the differences between a preloaded run and the bare run just before it; the
ratio to bare is in brackets. Long calls vary by themselves, so the smaller lines have the quartiles of the differences.
Bold figures are over the budget. Calls that are not hooked (kernel launch, memcpy, memset) have the budget 0, which is met
if the lower quartile is not above 0.{note}

"""

# What each call is to cost on top of bare CUDA. `before`: the instructions until 2026-11-22, counted as they are now.
# `calls`: the library's own system calls by strace, before and now.
Aim = collections.namedtuple("Aim", "what aim row before calls rest")
AIMS = (
    Aim("cudaMalloc + cudaFree", "300 ns, 600 instructions", "malloc+free 2 MiB", 1344, "0; 0",
        "200 find the runtime that a call site reaches, and note its name for reports. 150 are the hooks of the driver, 310 the table of "
        "allocations and the history of freed addresses, 110 two locks, 80 ask the driver for the current context, with which an "
        "allocation ends. All of it tells what an address is at its free, export or report."),
    Aim("cudaIpcGetMemHandle again", "15 ns", "get handle again", 405, "0; 0",
        "100 are the runtime's name, as above; 130 find out that the memory was not freed before, is no token's, and has a region. "
        "No lock is taken."),
    Aim("open + close of what is open", "60 ns", "open+close, open already", 1243, "0; 0",
        "200 are the runtime's names, 80 the hash of the handle, 80 the current context, 260 three look-ups, 170 their locks. The first "
        "look-up decides whether an intent is published; the other two count, before a close and after an open, because another "
        "thread's last close can come at any time."),
    Aim("open + close", "3 us", "open+close 64 MiB", 6150, "17; 17",
        "System calls take 4 of the 5 us. Three times signals are blocked and unblocked: the driver's calls have the program's own mask. "
        "Three slots are written (intent, open, closed), each after a check that the descriptor is still the library's, and not a file "
        "of the program's. The record is opened, checked for type and owner, read and closed."),
    Aim("first export, and its free", "5 us each", "first export", 12281, "11 + 22; 8 + 17",
        "The file system: on tmpfs a new file takes 1.8 us, its first page 0.9 us, its rename 2.0 us, and the removal of the oldest "
        "tombstone 1.5 us. Without the rename a reader could see half a record. The free writes the record once (1.4 us), looks through "
        "procs/ for importers (1.3 us), and moves the record to the freed ones, once it has made sure that it still is the region's (4 system calls, 1,900 instructions). The instructions are of both."),
    Aim("first export of a process", "150 us", None, None, "58; 48",
        "Not met on H200 machines: 269 us before, and 195 in the run above. On two cores with the simulator (300 processes with each "
        "library, in random order, 2026-11-29) 130 more than bare before and 106 now. With a tracer that adds 0.9 us to a call: new "
        "files 12 and 6 us, renames 10 and 6, first bytes 8 and 4, the mapping that holds the lock 8, the checks of the directories 15, "
        "first touches of 10 pages 25 (16 pages before), one look through the loaded objects 10, in memory of their size (two before, "
        "each in a fresh mapping of 2 MiB). The file is made, written and locked so that the lock outlives a program that closes every "
        "descriptor (22 calls)."),
    Aim("/bin/true", "15 us", None, None, "2; 2",
        "Not met on the machine above: 21 us. On two cores with the simulator 26 us before and 2 now, over an empty library, which takes "
        "40 over none (2026-11-29; 1,500 starts of an empty C program each, in random order, medians of the differences). A first touch "
        "of a page costs 1 us, of one that is relocated 3: there are 6, the empty library has 5, before there were 16. 770 relocations "
        "(1,322 before) in four pages. The constructor looks at descriptor 2, so that reports never go to a file that took its number, "
        "and asks for the process's number, by which a forked child is told."),
)


def nanoseconds(value):
    return f"{value:,.0f}"


def figure(added, spread):
    if added is None:
        return ""
    text = f"{added['median']:+,.0f} ({added['ratio']:.3f})"
    if added["met"] is False:
        text = f"**{text}**"
    return text + (f"<br><sub>{added['low']:+,.0f} to {added['high']:+,.0f}</sub>" if spread else "")


def budget(row):
    all_budgets = [added["budget"] for added in row["added"].values() if added["budget"] is not None]
    if not all_budgets:
        return ""
    low, high = min(all_budgets), max(all_budgets)
    return nanoseconds(low) if low == high else f"{nanoseconds(low)}; {nanoseconds(high)} with stacks"


def calls(result):
    modes = list(result["rows"][0]["added"])
    lines = ["| call | bare | " + " | ".join(f"`{mode.split(',')[0]}`{mode[len(mode.split(',')[0]):]}" for mode in modes) + " | budget |",
             "| --- | ---: |" + " ---: |" * len(modes) + " ---: |"]
    for row in result["rows"]:
        lines.append(f"| {row['row']} | {nanoseconds(row['bare'])} | " +
                     " | ".join(figure(row["added"].get(mode), row["bare"] > 1000) for mode in modes) + f" | {budget(row)} |")
    return "\n".join(lines)


def human(value, unit):
    if unit == "ns" and abs(value) >= 1e6:
        return f"{value / 1e6:.1f} ms"
    if unit == "ns" and abs(value) >= 1e4:
        return f"{value / 1e3:.1f} us"
    return f"{value:,.0f} {unit}"


def singles(result):
    lines = ["| what | measured | budget | |", "| --- | ---: | ---: | --- |"]
    for one in result["single"]:
        limit = "" if one["budget"] is None else human(one["budget"], one["unit"])
        met = {None: "", True: "met", False: "**missed**"}[one["met"]]
        lines.append(f"| {one['row']} | {human(one['value'], one['unit'])} | {limit} | {met} |")
    return "\n".join(lines)


def instructions(rows):
    modes = list(rows[0]["added"])
    lines = ["| call | bare | " + " | ".join(modes) + " |", "| --- | ---: |" + " ---: |" * len(modes)]
    for row in rows:
        lines.append(f"| {row['row']} | {row['bare']:,.0f} | " + " | ".join(f"{row['added'][mode]:+,.0f}" for mode in modes) + " |")
    return "\n".join(lines)


def aims(rows):
    now = {row["row"]: row["added"]["share"] for row in rows}
    lines = ["| call | to reach | instructions before | now | system calls before; now | where the rest goes, and why no less |",
             "| --- | --- | ---: | ---: | --- | --- |"]
    for aim in AIMS:
        before = f"{aim.before:,}" if aim.before else ""
        after = f"{now[aim.row]:,.0f}" if aim.row in now else ""
        lines.append(f"| {aim.what} | {aim.aim} | {before} | {after} | {aim.calls} | {aim.rest} |")
    return "\n".join(lines)


LOADS = """
## Where the time of a load goes

Milliseconds of a first and of a further replica with rules of `gpushare learn`, whose files lie in memory and are mapped
(`torch.load` with `mmap`, safetensors). An H200, 16 processors, 2026-11-30, by a library with clocks in `shim/merge/load.c`
(`REPLICAS_ONLY=loads tests/gpu/check.sh BUILD replicas` makes such a table).

| | PyTorch, 1.51 GiB: first | further | transformers, 2.30 GiB: first | further |
| --- | ---: | ---: | ---: | ---: |
| the load; bare 320 (310 to 350) and 8,320 (6,610 to 8,560) | 342 | 145 | 7,480 | 6,570 |
| the program's own work, and its allocations | 68 | 49 | 5,984 | 6,049 |
| blocks that begin and end where the copy does | 6 | 2 | 20 | 27 |
| the first 16 KiB of each block: read, hashed, looked for in the list | 2 | 2 | 7 | 8 |
| a descriptor from the keeper | | 12 | | 57 |
| all other bytes, until threads have read and hashed them | | 58 | | 136 |
| importing the shared block | | 7 | | 51 |
| mapping it, access, letting go of the block that was made | | 15 | | 76 |
| bytes compared with those of a merged block | | | | 13 |
| copies that are made | 267 | 0 | 1,462 | 143 |

A further replica of PyTorch's takes 0.45 to 0.49 of the bare time, and not 0.33: a third of what is left is PyTorch's own, and
the hash reads 28 GB/s, more than the copy does. Of transformers' load six seconds are its own, with gpushare and without; so a
further one takes 0.79 of bare, though its uploads take a third of what they took. 0.5 is not to be had there.
"""


# Why a budget is missed in the run above.
MISSES = """
**Why budgets are missed.** This virtual machine's driver varies by microseconds from run to run, as the quartiles show, so whether a
median of allocations, frees, opens and launches lies above its budget is chance there; the instructions below are exact (a launch
beside a merge rule: 80 to 85). The first export of a process and `/bin/true` are explained below. The tables keep 133 bytes an
allocation, 5 more than wanted: 56 of them are the links of uthash. `gpushare ls` of 10,000 regions took 13 us
a region in this run, of eight system calls; three of these asked whether the output is a terminal, which is asked once now.
"""

LONG_CALLS = """
## Long system calls

The table has the system calls of the library that took over 100 us in programs with CUDA's threads, on a machine with
two H200s, 2026-11-22, by `tests/gpu/check.sh BUILD calls`. A tracer measured the times. It handles one stop after the
other, so times are too long where several threads and processes make calls at once. Calls in which a thread of the
library only waits are left out.

| program | calls | longest |
| --- | --- | ---: |
| a writer by rule | none | |
| eight processes that open one another's handles | read 1, close 1, openat 1 | 18.0 ms (openat) |
| a replica of which 64 MiB are merged and written for 3 s | madvise 609 (it reads the source's pages in), mprotect 2, membarrier 21 | 1.6 ms |
| the same, calls that wait for nothing themselves | rt_sigprocmask 434, fstat 81, openat 77, close 66, newfstatat 47, readlinkat 42, pwrite64 37, and others | 12.9 ms (recvmsg) |
"""


def main():
    result = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    machine = result["machine"]
    where = machine["gpu"] if not machine["driver"] else \
        f"{machine['cards']} {machine['gpu']}{'s' if machine['cards'] > 1 else ''}, driver {machine['driver']}"
    note = "\n" + result["note"] if "note" in result else "" # what does not come from this one run
    print(HEAD.format(when=result["when"], where=where, command=result["command"], rounds=result["rounds"], note=note), end="")
    print(calls(result))
    print(MISSES, end="")
    print("\n![opening and closing against the region's size](open-close.svg)\n\n"
          "What gpushare adds to opening (lines) and closing (dashes) is the same for every size; the driver's own time grows.\n"
          "Between 32 and 256 MiB the driver takes a step, in each run at another size. Each point is the\n"
          "median of one run, with quartiles where they were taken.")
    print("\n## Many at once\n\n" + singles(result))
    print("\n![malloc and free against the number of live allocations](live.svg)\n\n"
          "The cost does not grow with the number of live allocations. Each point is the median of one run.")
    if len(sys.argv) > 2:
        counted = pathlib.Path(sys.argv[2])
        rows = json.loads(counted.read_text(encoding="utf-8"))
        day = datetime.date.fromtimestamp(counted.stat().st_mtime)
        print("\n## Instructions\n\nWhat a call executes outside the kernel, on the simulated driver, by `make bench-instructions`, "
              f"{day}.\n")
        print(instructions(rows))
        print("\n### Row by row\n\nWhat the calls are to cost on top of bare CUDA, and where the instructions and system calls in "
              "mode `share` go.\n")
        print(aims(rows))
    print(LOADS, end="")
    print(LONG_CALLS, end="")


if __name__ == "__main__":
    main()
