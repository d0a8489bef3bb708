#!/usr/bin/env python3
"""What gpushare costs, against the budgets: a table, and BUILD_DIR/bench/result.json.

usage: bench.py BUILD_DIR [--driver sim|gpu] [--rounds N] [--seconds N] [--no-torch]   (make bench)

A figure of a row is the median over the rounds of the difference between a preloaded run and the bare run
just before it, in brackets the ratio of the medians; low and high are its quartiles. Machines drift, so
only such differences and ratios mean something. All of it takes about --seconds: what is measured once comes
first, three quarters of the rest are for the calls, the last one is for the starts of programs. Each row says
how many pairs it had: one at least, N at most.
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time

MODES = {
    "share": {"GPUSHARE_MODE": "share"},
    "share, no stacks": {"GPUSHARE_MODE": "share", "GPUSHARE_STACK_DEPTH": "0"},
    "audit": {"GPUSHARE_MODE": "audit"},
    "audit, no stacks": {"GPUSHARE_MODE": "audit", "GPUSHARE_STACK_DEPTH": "0"},
}
# These calls once more in a process that has such a rule, which takes none of its allocations.
RULE = "[region elsewhere]\nprogram = calls\nsize = 3TiB\nrole = merge\n"
RULED = {f"{row}, merge rule": row for row in ("kernel launch", "kernel launch, 4 streams", "memcpy 4 KiB")}
# And in one with a rule for whole frames, which takes none of its allocations, or the buffer that is copied to. Nearly all of
# its copies and waits are then inside a frame.
FRAMES = "[region elsewhere]\nprogram = calls\nsize = 3TiB\nrole = export\nframes = latest\n"
FRAMED = "[region film]\nprogram = calls\nsize = 2MiB\nrole = export\nframes = latest\nframe_waits = 1000\n"
WITH_FRAMES = {f"{row}, {rule}": row for row in ("kernel launch", "memcpy 4 KiB", "memset 4 KiB", "device synchronize")
               for rule in ("frames rule", "framed buffer")} | {f"{row}, framed buffer": row for row in ("memcpy 4 KiB elsewhere", "memset 4 KiB and wait",
                                                             *(f"kernel launch, {words} words" for words in (8, 64, 512)))}
# The same with open_cache, and with the exporter's memory on another card, where there is one.
CACHE = {"GPUSHARE_OPEN_CACHE": "64"}
CACHED = ["open+close 64 MiB"] + [f"open+copy+close {size}" for size in ("1 KiB", "2 MiB", "64 MiB", "1 GiB")]
# Nanoseconds on top. Two numbers: without and with stacks, which only mode = audit keeps of each call.
BUDGET = {
    "malloc+free 1 KiB": (300, 1000), "malloc+free 2 MiB": (300, 1000), "malloc+free 64 MiB": (300, 1000),
    "malloc+free 1 GiB": (300, 1000), "malloc+free, 16 deep": (300, 1000), "malloc+free, new path": (300, 15000),
    "first export": (50000, 50000), "free of an export": (50000, 50000), "get handle again": (50, 50),
    "open+close 64 MiB": (10000, 10000), "open+close 4 GiB": (10000, 10000),
    "first export of a process": (150000, 150000), "open+close, open already": (150, 150),
    **{f"{row}{where}{how}": (None, None) for row in CACHED for where in ("", ", 2 GPUs") for how in ("", ", open cache")
       if where or how or "copy" in row},
    "cuMemCreate+release": (2000, 3000), "map+access+unmap": (3000, 4000), "import+release": (2000, 3000),
    "pool alloc+free": (None, None),
    "device synchronize": (20, 20), "memcpy 4 KiB": (0, 0), "memset 4 KiB": (0, 0),
    "kernel launch": (0, 0), "kernel launch, merge rule": (10, 10), "kernel launch, 4 streams": (0, 0),
    "kernel launch, 4 streams, merge rule": (10, 10), "memcpy 4 KiB, merge rule": (None, None), "/bin/true": (25000, 25000), "import torch": (None, None),
}
MANY = 1000000
MAPPINGS = 100000
BESIDE = (0, 20, 150)


class Bench:
    def __init__(self, options):
        self.options = options
        self.build = pathlib.Path(options.build).resolve()
        self.library = f"{self.build}/libgpushare.so"
        self.directory = tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gpushare-bench-")
        self.environment = {**os.environ, "GPUSHARE_DIR": self.directory.name + "/d", "GPUSHARE_CONFIG": "/dev/null"}
        if options.driver == "sim":
            self.environment |= {"LD_LIBRARY_PATH": f"{self.build}/sim", "GPUSHARE_SIM_MEMORY": "64GiB",
                                 "GPUSHARE_SIM_ROOT": "@" + self.directory.name}
        else:
            cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda")
            self.environment["LD_LIBRARY_PATH"] = f"{cuda}/lib64:" + os.environ.get("LD_LIBRARY_PATH", "")
        self.rule = pathlib.Path(self.directory.name, "merge.conf")
        self.rule.write_text(RULE, encoding="utf-8")
        self.bare, self.added = {}, {mode: {} for mode in MODES}
        self.singles = []
        self.cards = machine(options)["cards"]

    def run(self, words, mode=None, **more):
        extra = {"LD_PRELOAD": self.library, **MODES[mode], **more} if mode else more
        done = subprocess.run([f"{self.build}/bench/{words[0]}", *words[1:]], env={**self.environment, **extra},
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"bench: {words} in mode {mode} ended with {done.returncode}: {done.stderr}")
        return [line.split("\t") for line in done.stdout.splitlines()]

    def keep(self, mode, row, bare, preloaded):
        self.bare.setdefault(row, []).append(bare)
        self.added[mode].setdefault(row, []).append(preloaded - bare)

    def rounds(self, most, until):
        """At least one, at most that many, and none that would end after `until` if it took as long as the last one."""
        for _ in range(most):
            start = time.monotonic()
            yield
            end = time.monotonic()
            if end + (end - start) > until:
                return

    def calls(self, until):
        for _ in self.rounds(self.options.rounds, until):
            for mode in MODES:
                alone, preloaded = (dict(self.run(["calls"], which)) for which in (None, mode))
                ruled = dict(self.run(["calls", "pick", *RULED.values()], mode, GPUSHARE_CONFIG=str(self.rule)))
                for name, row in RULED.items():
                    if row in ruled:
                        alone[name], preloaded[name] = alone[row], ruled[row]
                if mode == "share":
                    self.opens(alone, preloaded)
                for row, value in alone.items():
                    self.keep(mode, row, float(value), float(preloaded[row]))

    def opens(self, alone, preloaded):
        def pick(mode=None, **more):
            table = dict(self.run(["calls", "pick", *CACHED], mode, **more))
            return [(row, table[row]) for row in CACHED]
        for row, value in pick("share", **CACHE):
            alone[f"{row}, open cache"], preloaded[f"{row}, open cache"] = alone[row], value
        if self.cards < 2:
            return
        there = {"EXPORTER_DEVICE": "1"}
        for row, value in pick(**there):
            alone[f"{row}, 2 GPUs"] = alone[f"{row}, 2 GPUs, open cache"] = value
        for how, more in (("", {}), (", open cache", CACHE)):
            for row, value in pick("share", **there, **more):
                preloaded[f"{row}, 2 GPUs{how}"] = value

    def start_up(self, words, preload):
        environment = {**self.environment, "LD_PRELOAD": preload} if preload else self.environment
        start = time.perf_counter_ns()
        process = os.posix_spawnp(words[0], words, environment, file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
        status = os.waitpid(process, 0)[1]
        took = time.perf_counter_ns() - start
        if status:
            raise SystemExit(f"bench: {' '.join(words)} fails{' preloaded with ' + preload if preload else ''}")
        return took

    def start_both(self, words, bare, count):
        """Medians of `count` starts each: preloaded with `bare` or nothing, and with the library. One after the
        other, and each the first of every second pair: the machine is not the same from one second to the next."""
        times = {bare: [], self.library: []}
        for number in range(count):
            for preload in sorted(times, key=lambda which: which is bare, reverse=number % 2 == 0):
                times[preload].append(self.start_up(words, preload))
        return [statistics.median(each) for each in times.values()]

    def starts(self, until):
        """Over an empty preloaded library; PyTorch, where it is, over nothing."""
        for _ in self.rounds(self.options.rounds, until):
            self.keep("share", "/bin/true", *self.start_both(["/bin/true"], f"{self.build}/bench/empty.so", 100))
        torch = ["python3", "-c", "import torch"]
        if self.options.torch and subprocess.run(torch, stderr=subprocess.DEVNULL, env=self.environment).returncode == 0:
            for _ in self.rounds(min(self.options.rounds, 5), until):
                self.keep("share", "import torch", *self.start_both(torch, None, 3))

    def single(self, row, unit, value, budget=None):
        self.singles.append({"row": row, "unit": unit, "value": value, "budget": budget,
                             "met": None if budget is None else value <= budget})

    def live(self):
        """Many live allocations: in a real process, and in the library's tables alone."""
        table = {row: float(value) for row, value in self.run(["registry"])}
        name = f"{MANY:,} live, tables alone: "
        self.single(name + "look-up", "ns", table["look-up"], 300)
        self.single(name + "removal", "ns", table["removal"])
        self.single(name + "slowest insert", "ns", table["insert, slowest"], 5e6)
        self.single(name + "bytes each", "bytes", table["bytes each"], 128)
        name = f"{MAPPINGS:,} mappings, tables alone: "
        self.single(name + "map + unmap", "ns", table["map + unmap"], 1000)
        most = str(min(20, self.options.seconds / 12))  # each of the three takes twice that at most
        grown = {mode or "bare": [[float(x) for x in line] for line in self.run(["calls", "live", str(MANY), most], mode)]
                 for mode in (None, "share", "audit")}
        bare = grown["bare"][-1]
        for mode in ("share", "audit"):
            last = grown[mode][-1]
            name = f"{int(last[0]):,} live, mode = {mode}: "
            self.single(name + "malloc + free, more than bare", "ns", last[1] - bare[1], 300 if mode == "share" else 1000)
            self.single(name + "get a handle, more than bare", "ns", last[2] - bare[2], 300)
            self.single(name + "slowest cudaMalloc", "ns", last[3], 5e6 + bare[3])
            self.single(name + "bytes each, more than bare", "bytes", last[4] / last[0] - bare[4] / bare[0], 128)
        return grown

    def regions(self):
        """10,000 regions in a directory of their own."""
        environment = {**self.environment, "GPUSHARE_DIR": self.directory.name + "/many"}
        with subprocess.Popen([f"{self.build}/bench/store", environment["GPUSHARE_DIR"]], env=environment, text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as store:
            table = {}
            for line in store.stdout:
                if line == "ready\n":
                    break
                row, value = line.split("\t")
                table[row] = float(value)
            times = []
            for words in 5 * [["ls"]] + 5 * [["ls", "--json"]]:
                start = time.perf_counter_ns()
                subprocess.run([f"{self.build}/gpushare", *words], env=environment, check=True, stdout=subprocess.DEVNULL)
                times.append(time.perf_counter_ns() - start)
            store.stdin.close()
        self.single("10,000 regions: gpushare ls", "ns", statistics.median(times[:5]), 100e6)
        self.single("10,000 regions: gpushare ls --json", "ns", statistics.median(times[5:]), 100e6)
        for what in ("publish", "find"):
            few, many = table[f"{what}, 10 there"], table[f"{what}, 10000 there"]
            self.single(f"{what} a region, 10 there", "ns", few)
            self.single(f"{what} a region, 10,000 there", "ns", many, 1.5 * few)

    def beside(self):
        """The free of an export that nobody has open, beside other processes that have joined the directory."""
        row, others = "free of an export", []
        for count in BESIDE:
            while len(others) < count:
                others.append(subprocess.Popen([f"{self.build}/bench/calls", "exporter"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                               env={**self.environment, "LD_PRELOAD": self.library, **MODES["share"]}))
                others[-1].stdin.write(struct.pack("N", 2 << 20))
                others[-1].stdin.flush()
                others[-1].stdout.read(64)
            added = []
            for _ in range(self.options.rounds):
                took = {mode: float(dict(self.run(["calls", "pick", row], mode))[row]) for mode in random.sample((None, "share"), 2)}
                added.append(took["share"] - took[None])
            self.single(f"{row} beside {count} processes, more than bare", "ns", statistics.median(added), 20000)
        for other in others:
            other.communicate()

    def sweep(self):
        return {mode or "bare": [[float(x) for x in line] for line in self.run(["calls", "sweep"], mode)]
                for mode in (None, "share", "audit")}

    def rows(self):
        for row, values in self.bare.items():
            base, added = statistics.median(values), {}
            for mode in MODES:
                more = sorted(self.added[mode].get(row, []))
                if more:
                    budget = BUDGET[row][mode == "audit"]
                    low, middle, high = more[len(more) // 4], statistics.median(more), more[-1 - len(more) // 4]
                    # What is not hooked costs nothing, but the noise is there all the same.
                    met = None if budget is None else (low if budget == 0 else middle) <= budget
                    added[mode] = {"median": middle, "low": low, "high": high, "ratio": 1 + middle / base,
                                   "budget": budget, "met": met}
            yield {"row": row, "bare": base, "pairs": len(self.added["share"][row]), "added": added}


def machine(options):
    if options.driver == "sim":
        return {"gpu": "the simulated driver", "driver": "", "cards": 1}
    lines = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                           stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    name, driver = lines[0].split(", ")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return {"gpu": name, "driver": driver, "cards": len(visible.split(",")) if visible else len(lines)}


def word(met):
    return "" if met is None else "met" if met else "MISSED"


def show(result):
    print(f"{'nanoseconds, medians':42}{'pairs':>6}{'bare':>12}" +
          "".join(f"{'+ ' + mode:>20}" for mode in MODES) + "  budget (with stacks)")
    for row in result["rows"]:
        missed = [mode for mode, added in row["added"].items() if added["met"] is False]
        print(f"{row['row']:42}{row['pairs']:6}{row['bare']:12.0f}" + "".join(
            f"{row['added'][mode]['median']:>+12.0f} ({row['added'][mode]['ratio']:.3f})" if mode in row["added"]
            else f"{'':20}" for mode in MODES) + f"  {BUDGET[row['row']][0]} ({BUDGET[row['row']][1]})"
            + (f"  MISSED: {'; '.join(missed)}" if missed else ""))
    print()
    for one in result["single"]:
        print(f"{one['row']:68}{one['value']:>14,.1f} {one['unit']:6}"
              + (f"{one['budget']:>14,.0f}  {word(one['met'])}" if one["budget"] is not None else ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--driver", choices=["sim", "gpu"], default="sim")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--no-torch", dest="torch", action="store_false", help="leave out `import torch`")
    options = parser.parse_args()
    until = time.monotonic() + options.seconds
    bench = Bench(options)
    with bench.directory:
        result = {"when": datetime.date.today().isoformat(), "machine": machine(options),
                  "command": f"make bench ROUNDS={options.rounds}", "live": bench.live(), "sweep": bench.sweep()}
        bench.regions()
        if options.driver == "sim":  # a card has no room for so many
            bench.beside()
        bench.calls(until - (until - time.monotonic()) / 4)
        bench.starts(until)
        result["rows"], result["single"] = list(bench.rows()), bench.singles
        result["rounds"] = result["rows"][0]["pairs"]
    show(result)
    with open(f"{bench.build}/bench/result.json", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    figures = [added["met"] for row in result["rows"] for added in row["added"].values()]
    figures += [one["met"] for one in result["single"]]
    print(f"\n{figures.count(True)} of {figures.count(True) + figures.count(False)} budgets met")
    return 0


if __name__ == "__main__":
    sys.exit(main())
