#!/usr/bin/env python3
"""How many instructions gpushare adds to a call, on the simulated driver, by callgrind: exact where the noise
of a clock hides the answer. What the kernel does for a call is not in it.

usage: instructions.py BUILD_DIR [ROW...]   (make bench-instructions; valgrind is needed)

Each figure is the difference of two runs of calls.c with different numbers of calls, divided by that
difference: start and end of the program cancel out. Of a launch, and with a buffer with frames, only what the library itself executes. Also written to BUILD_DIR/bench/instructions.json.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from bench import CACHE, FRAMED, FRAMES, MODES, RULE, RULED, WITH_FRAMES

FEW, MANY = 200, 2000
CACHED = {f"{row}, open cache": row for row in ("memcpy 4 KiB", "open+close 64 MiB")}
CHEAP = 20000  # instead of MANY where a call is cheap: what varies between two starts must not show


def run(build, row, count, mode, environment, *options):
    """What callgrind says of the whole program; what it starts is not counted. Bare has as many variables: the
    simulated runtime looks through them in each call."""
    extra = {"LD_PRELOAD": f"{build}/{'libgpushare.so' if mode else 'bench/empty.so'}", **MODES[mode or "share"]}
    done = subprocess.run(["valgrind", "--tool=callgrind", *options, f"{build}/bench/calls", "only", row, str(count)],
                          env={**environment, **extra}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    counts = re.findall(r"Collected : (\d+)", done.stderr)
    if done.returncode or not counts:
        raise SystemExit(f"instructions: {row}, mode {mode}: {done.returncode}\n{done.stderr[-2000:]}")
    return int(counts[-1])


def collected(build, row, count, mode, environment):
    return run(build, row, count, mode, environment, "--callgrind-out-file=/dev/null")


def ours(build, row, count, mode, environment):
    """Only what the library executes itself."""
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gpushare-bench-") as folder:
        path = pathlib.Path(folder, "out")
        run(build, row, count, mode, environment, f"--callgrind-out-file={path}", "--compress-strings=no", "--compress-pos=no")
        total, mine, inclusive = 0, False, False
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("ob="):
                mine = line.rstrip().endswith("libgpushare.so")
            elif line[:1].isdigit() and mine and not inclusive:
                total += int(line.split()[1])
            inclusive = line.startswith("calls=")
        return total


def is_noisy(row):
    """The simulator hands launches to threads, which do not always wait for each other as long, and copies frames."""
    return "launch" in row or "framed buffer" in row


def per_call(build, row, noisy, mode, environment):
    most = MANY if noisy or any(word in row for word in ("malloc", "4 GiB", "64 MiB", "export")) else CHEAP
    count = ours if noisy and mode else collected
    few, many = (count(build, row, calls, mode, environment) for calls in (FEW, most))
    return (many - few) / (most - FEW)


def added_by(build, row, noisy, mode, bare, environment):
    """To a call whose bare cost varies: what the library executes."""
    cost = per_call(build, row, noisy, mode, environment)
    return cost if noisy else cost - bare


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gpushare-bench-") as directory:
        environment = {**os.environ, "LD_LIBRARY_PATH": f"{build}/sim", "GPUSHARE_SIM_ROOT": "@" + directory,
                       "GPUSHARE_SIM_MEMORY": "64GiB", "GPUSHARE_DIR": directory + "/d", "GPUSHARE_CONFIG": "/dev/null"}
        rules = {}
        for name, text in ("merge", RULE), ("frames rule", FRAMES), ("framed buffer", FRAMED):
            rules[name] = pathlib.Path(directory, name.split()[0] + ".conf")
            rules[name].write_text(text, encoding="utf-8")
        rows = sys.argv[2:] or subprocess.run([f"{build}/bench/calls", "list"], env=environment, check=True, text=True,
                                              stdout=subprocess.PIPE).stdout.splitlines() + list(RULED) + list(WITH_FRAMES) + list(CACHED)
        print(f"{'instructions a call':28}{'bare':>12}" + "".join(f"{'+ ' + mode:>20}" for mode in MODES))
        result = []
        for row in rows:
            rule = "merge" if row in RULED else row.split(", ")[-1] if row in WITH_FRAMES else None
            more = {"GPUSHARE_CONFIG": str(rules[rule])} if rule else CACHE if row in CACHED else {}
            call, mine = {**RULED, **WITH_FRAMES, **CACHED}.get(row, row), {**environment, **more}
            noisy = is_noisy(row)
            bare = per_call(build, call, noisy, None, mine)
            added = {mode: added_by(build, call, noisy, mode, bare, mine) for mode in MODES}
            print(f"{row:28}{bare:12.0f}" + "".join(f"{value:>+20.0f}" for value in added.values()), flush=True)
            result.append({"row": row, "bare": bare, "added": added})
    with open(f"{build}/bench/instructions.json", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
