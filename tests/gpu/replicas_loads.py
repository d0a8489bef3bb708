"""Where the time of a load goes, with learned rules, for docs/measured.md. A part of replicas.py.

bench/timed/libgpushare.so is the library with clocks in shim/merge/load.c (tests/bench/timed.c), which take part of the time
themselves: the times of whole loads are those of the library as it is."""
import os
import pathlib
import statistics
import subprocess
import sys

import replicas_torch
import replicas_transformers
from fleet import gib

# A function of load.c, its callees included; less those of the second.
LINES = {"waiting for what the stream has to do": ("load_wait_for_stream", ()),
         "blocks that begin and end where the copy does": ("load_fit_blocks", ()),
         "the first 16 KiB of each block, which are read and hashed": ("hash_first", ()),
         "a descriptor from the keeper": ("offer_get", ()),
         "all other bytes, until they are hashed": ("map_whole", ("map_shared",)),
         "importing, mapping, access; letting go of the block that was made": ("map_shared", ()),
         "bytes compared with those of a merged block": ("piece_compare", ()),
         "copies": ("flush", ())}


def clocks(library, path):
    """{function: ms} of one process."""
    names = {}
    for line in subprocess.run(["nm", library], capture_output=True, text=True, check=True).stdout.splitlines():
        if line.split()[-2] in "tT":
            names[int(line.split()[0], 16)] = line.split()[-1]
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    return {names.get(int(offset, 16)): int(ns) / 1e6 for offset, _, ns in rows}


def taken(times, line):
    function, less = line
    return times.get(function, 0) - sum(times.get(one, 0) for one in less)


def load_all(fleet, words, load, config, count, name):
    """The times of loads one after the other, the answers, and the processes' numbers."""
    members = [fleet.start(f"{name}-{i}", words, config) for i in range(count)]
    for one in members:
        one.ready(100)
    times = [float(one.ask(load, 60)) for one in members]
    answers, pids = {one.ask("forward") for one in members}, [one.process.pid for one in members]
    for one in members:
        one.end()
    fleet.stable_use(0, 1)
    return times, answers, pids


def one_program(fleet, table, title, words, load, size):
    rules = fleet.learn(title.split()[0], words, 25, f"{load}\nforward\n")
    bare, right, _ = load_all(fleet, words, load, None, 3, f"{title}-bare")
    times, answers, _ = load_all(fleet, words, load, rules, 4, title)
    fleet.library = fleet.build / "bench" / "timed" / "libgpushare.so"
    clocked, _, pids = load_all(fleet, words, load, rules, 2, f"{title}-timed")
    first, further = [clocks(fleet.library, fleet.scratch / str(pid)) for pid in pids]
    fleet.library = fleet.build / "libgpushare.so"
    ratio = statistics.median(times[1:]) / statistics.median(bare)
    table.row(answers == right, f"{title}, learned: answers are as bare", f"{answers}")
    table.row(bool(further.get("gps_load")), f"{title}, learned: where the time of a load goes",
              f"bare {statistics.median(bare):.3f} s, further {statistics.median(times[1:]):.3f} s ({ratio:.2f})")
    lines = [f"| {title}, {gib(size)}, ms | first | further |", "| --- | ---: | ---: |",
             f"| the load; bare {1e3 * statistics.median(bare):.0f} | {1e3 * times[0]:.0f} | {1e3 * statistics.median(times[1:]):.0f} |",
             f"| the program's own work, and its allocations | {1e3 * clocked[0] - first['gps_load']:.0f} | {1e3 * clocked[1] - further['gps_load']:.0f} |"]
    lines += [f"| {what} | {taken(first, line):.0f} | {taken(further, line):.0f} |" for what, line in LINES.items()]
    return "\n".join(lines) + "\n"


def append(page, text):
    with open(page, "a", encoding="utf-8") as file:
        file.write(text + "\n")


def loads(fleet, table, _):
    if fleet.driver != "gpu" or not (fleet.build / "bench" / "timed").exists():
        table.skip("where the time of a load goes", "no card" if fleet.driver == "sim" else "no library with clocks")
        return
    page = pathlib.Path(fleet.results / "replicas-loads.md")
    page.write_text("", encoding="utf-8")
    if not replicas_torch.missing(fleet, table, "PyTorch, where the time of a load goes"):
        models = replicas_torch.Models(fleet, "model")
        os.environ["TIMED_LOADS"] = str(fleet.scratch)
        words = [sys.executable, replicas_torch.SERVER, "serve", models.file, models.layers]
        append(page, one_program(fleet, table, "PyTorch", words, "load 1", models.size))
    if not replicas_transformers.missing(fleet, table, "transformers, where the time of a load goes"):
        llama = replicas_transformers.Llama(fleet, replicas_transformers.ODD)
        os.environ["TIMED_LOADS"] = str(fleet.scratch)
        words = [sys.executable, replicas_transformers.SERVER, "serve", llama.folder]
        append(page, one_program(fleet, table, "transformers", words, "load", llama.size))
