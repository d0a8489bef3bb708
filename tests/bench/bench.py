#!/usr/bin/env python3
"""The cost of gpushare: calls.c bare and preloaded in turn, pair by pair, as a table.

usage: bench.py BUILD_DIR [ROUNDS]   (make bench)

Every figure is the median over the rounds of the difference between a preloaded run and the bare run
just before it; machines drift, so only these differences and ratios mean something. Budgets are those of
the design for what gpushare may add to a call; two calls in a row have twice the budget.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

MODES = {
    "share": {"GPUSHARE_MODE": "share"},
    "audit": {"GPUSHARE_MODE": "audit"},
    "audit, no stacks": {"GPUSHARE_MODE": "audit", "GPUSHARE_STACK_DEPTH": "0"},
}
BUDGET = {  # nanoseconds
    "malloc+free 1 KiB": 300, "malloc+free 2 MiB": 300, "malloc+free 64 MiB": 300,
    "malloc+free 1 GiB": 300, "malloc+export+free 2 MiB": 100000, "get handle again": 50,
    "open+close 64 MiB": 10000, "open+close, open already": 150, "/bin/true": 25000,
}


def run_calls(build, extra):
    env = dict(os.environ, **extra)
    out = subprocess.run([f"{build}/bench/calls"], env=env, check=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, text=True).stdout
    return {name: float(value) for name, value in (line.split("\t") for line in out.splitlines())}


def start_up(library, count=100):
    env = dict(os.environ, LD_PRELOAD=library)
    times = []
    for _ in range(count):
        start = time.perf_counter_ns()
        os.waitpid(os.posix_spawn("/bin/true", ["true"], env), 0)
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times)


def main():
    build = os.path.realpath(sys.argv[1])
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    library = f"{build}/libgpushare.so"
    bare, added = {}, {mode: {} for mode in MODES}
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        os.chmod(directory, 0o700)
        for _ in range(rounds):
            for mode, extra in MODES.items():
                alone = run_calls(build, {})
                shim = run_calls(build, {"LD_PRELOAD": library, "GPUSHARE_DIR": directory, **extra})
                for name, value in alone.items():
                    bare.setdefault(name, []).append(value)
                    added[mode].setdefault(name, []).append(shim[name] - value)
        for _ in range(rounds):
            empty = start_up(f"{build}/bench/empty.so")
            bare.setdefault("/bin/true", []).append(empty)
            added["share"].setdefault("/bin/true", []).append(start_up(library) - empty)
    print(f"{'nanoseconds, medians of ' + str(rounds) + ' pairs':28}{'bare':>12}" +
          "".join(f"{'+ ' + mode:>20}" for mode in MODES) + f"{'budget':>10}")
    result = []
    for name, values in bare.items():
        base = statistics.median(values)
        more = {mode: statistics.median(added[mode][name]) for mode in MODES if name in added[mode]}
        print(f"{name:28}{base:12.0f}" + "".join(
            f"{more[mode]:>+12.0f} ({1 + more[mode] / base:.3f})" if mode in more else f"{'':20}"
            for mode in MODES) + f"{BUDGET[name]:>10}")
        result.append({"row": name, "bare": base, "added": more, "budget": BUDGET[name]})
    with open(f"{build}/bench/result.json", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
