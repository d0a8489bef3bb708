#!/usr/bin/env python3
"""How soon the weights of servers that are never idle are merged, and what that costs their requests.

usage: busy.py BUILD_DIR [--driver sim|gpu] [--seconds N] [--layers N]

Two servers (busy.c) run kernels of the given lengths, each on a stream of its own: first bare, then with a rule of
quiet = 2s. A line for each set of lengths: after how many seconds all weights were merged, counted from quiet on, or
how much of them was by the end and what the library says is in the way; then for each length by how much the slowest
kernel was late, bare and merged, how long launches were held in all, and at most. On a busy machine the simulated
driver is late by itself: there only the first figures mean something, and those of "bare" say how much.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

QUIET = 2
SETS = [(0.2,), (2,), (10,), (0.2, 2, 10), (10, 10), (10, 10, 10), (30, 30)]  # ms
RULE = f"[region weights]\nprogram = busy\nrole = merge\nquiet = {QUIET}s\n"


class Bench:
    def __init__(self, options, folder):
        self.options, self.build = options, pathlib.Path(options.build).resolve()
        config = pathlib.Path(folder, "busy.conf")
        config.write_text(RULE, encoding="utf-8")
        self.environment = os.environ | {"GPUSHARE_DIR": folder + "/d", "GPUSHARE_CONFIG": str(config)}
        if options.driver == "sim":
            self.environment |= {"LD_LIBRARY_PATH": f"{self.build}/sim", "GPUSHARE_SIM_ROOT": "@" + folder}

    def start(self, lengths, preload):
        words = [self.build / "bench/busy", self.build / "tests/apps/kernels.ptx", str(self.options.layers),
                 str(self.options.seconds * 1000), *(str(int(ms * 1e6)) for ms in lengths)]
        more = {"LD_PRELOAD": str(self.build / "libgpushare.so")} if preload else {}
        return subprocess.Popen(words, env=self.environment | more, stdout=subprocess.PIPE, text=True)

    def shown(self, process):
        """What show says of it: bytes that are its own, and what is in the way."""
        said = subprocess.run([self.build / "gpushare", "show", "--json", str(process.pid)], env=self.environment,
                              capture_output=True, text=True, check=False).stdout
        one = json.loads(said)[0] if said.strip() else {}
        return one.get("merged", {}).get("own"), one.get("unmerged")

    def watch(self, processes, begun):
        """Seconds until all is merged, or None; and what was seen last."""
        seen = []
        while any(process.poll() is None for process in processes):
            now = [self.shown(process) for process in processes if process.poll() is None]
            if len(now) < len(processes):
                break
            seen = now
            if all(own == 0 for own, _ in seen):
                return time.monotonic() - begun, seen
            time.sleep(0.1)
        return None, seen

    def run(self, lengths, preload):
        processes = [self.start(lengths, preload) for _ in range(2)]
        for process in processes:
            if process.stdout.readline() != "ready\n":
                sys.exit("busy.py: a server did not start")
        when, seen = self.watch(processes, time.monotonic()) if preload else (None, [])
        lines = [process.communicate()[0].splitlines() for process in processes]
        if any(process.returncode for process in processes) or any(one[-1] != "right" for one in lines):
            sys.exit(f"busy.py: wrong: {lines}")
        rows = [[int(word) for word in line.split("\t")] for one in lines for line in one[:-1]]
        return when, seen, rows


def worst(rows, length):
    """Of the kernels of a length: late at most, held in all, and at most; in ms."""
    mine = [row for row in rows if row[0] == int(length * 1e6)]
    return tuple(max(row[i] for row in mine) / 1000 for i in (2, 4, 5))


def told(when, seen):
    if when is not None:
        return f"all is merged {max(0, when - QUIET):.1f} s after quiet"
    left = ", ".join(f"{(own or 0) >> 20} MiB" for own, _ in seen)
    return f"not merged: {left}; {next((why for _, why in seen if why), 'nothing is in the way')}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--driver", choices=("sim", "gpu"), default="sim")
    parser.add_argument("--seconds", type=int, default=14)
    parser.add_argument("--layers", type=int, default=96)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gpushare-busy-") as folder:
        bench = Bench(options, folder)
        for lengths in SETS:
            bare = bench.run(lengths, False)[2]
            when, seen, rows = bench.run(lengths, True)
            print(f"kernels of {', '.join(f'{ms:g}' for ms in lengths)} ms: {told(when, seen)}")
            for ms in sorted(set(lengths)):
                late, held, longest = worst(rows, ms)
                print(f"    {ms:g} ms: the slowest is {late:.2f} ms late, bare {worst(bare, ms)[0]:.2f}; launches held for "
                      f"{held:.1f} ms in all, {longest:.2f} at most", flush=True)


if __name__ == "__main__":
    main()
