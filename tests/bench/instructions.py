#!/usr/bin/env python3
"""How many instructions gpushare adds to a call, on the simulated driver, by callgrind: exact where the noise
of a clock hides the answer. What the kernel does for a call is not in it.

usage: instructions.py BUILD_DIR [ROW...]   (make bench-instructions; valgrind is needed)

Each figure is the difference of two runs of calls.c with different numbers of calls, divided by that
difference: start and end of the program cancel out. Also written to BUILD_DIR/bench/instructions.json.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from bench import MODES

FEW, MANY = 200, 2000
CHEAP = 20000  # instead of MANY where a call is cheap: what varies between two starts must not show


def collected(build, row, count, mode, environment):
    """Instructions of the whole program; what it starts is not counted."""
    extra = {"LD_PRELOAD": f"{build}/libgpushare.so", **MODES[mode]} if mode else {}
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"{build}/bench/calls", "only", row, str(count)],
        env={**environment, **extra}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    counts = re.findall(r"Collected : (\d+)", done.stderr)
    if done.returncode or not counts:
        raise SystemExit(f"instructions: {row}, mode {mode}: {done.returncode}\n{done.stderr[-2000:]}")
    return int(counts[-1])


def per_call(build, row, mode, environment):
    most = MANY if "malloc" in row or "4 GiB" in row or "64 MiB" in row or "export" in row else CHEAP
    few, many = (collected(build, row, count, mode, environment) for count in (FEW, most))
    return (many - few) / (most - FEW)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gpushare-bench-") as directory:
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "GPUSHARE_SIM_ROOT": "@" + directory,
                       "GPUSHARE_SIM_MEMORY": "64GiB", "GPUSHARE_DIR": directory + "/d", "GPUSHARE_CONFIG": "/dev/null"}
        rows = sys.argv[2:] or subprocess.run([f"{build}/bench/calls", "list"], env=environment, check=True, text=True,
                                              stdout=subprocess.PIPE).stdout.splitlines()
        print(f"{'instructions a call':28}{'bare':>12}" + "".join(f"{'+ ' + mode:>20}" for mode in MODES))
        result = []
        for row in rows:
            if row == "kernel launch":  # the simulator has none
                continue
            bare = per_call(build, row, None, environment)
            added = {mode: per_call(build, row, mode, environment) - bare for mode in MODES}
            print(f"{row:28}{bare:12.0f}" + "".join(f"{value:>+20.0f}" for value in added.values()), flush=True)
            result.append({"row": row, "bare": bare, "added": added})
    with open(f"{build}/bench/instructions.json", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
