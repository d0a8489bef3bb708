#!/usr/bin/env python3
"""tests/gpu/suspend.py [--driver sim|gpu] [--gib N] BUILD: a program of N GiB leaves the card and comes back, while another one that
knows nothing of gpushare takes and gives memory. Rows for check.sh: ok or FAIL, a tab, name, a tab, remark."""
import argparse
import pathlib
import sys
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "soak"))
from suspend_kills import Puppet, World

GIB = 1 << 30


def row(good, name, remark):
    print(f"{'ok' if good else 'FAIL'}\t{name}\t{remark}", flush=True)
    return good


class Neighbour:
    """Takes and gives memory until it is ended."""

    def __init__(self, world, size):
        self.puppet, self.size, self.over, self.turns = Puppet(world, "neighbour", [], preload=False), size, False, 0
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.over:
            for line in f"malloc n {self.size}", "fill n 0x01 4096", "free n":
                self.puppet.ask(line)
            self.turns += 1

    def end(self):
        self.over = True
        self.thread.join()
        self.puppet.end()


def timed(world, *words):
    started = time.monotonic()
    result = world.tool(*words)
    return result, time.monotonic() - started


def turns(world, program, gib, count):
    """Each time its bytes are looked at. The times out and back, or what went wrong."""
    pid, times = str(program.process.pid), []
    for turn in range(count):
        out, out_s = timed(world, "suspend", pid)
        back, back_s = timed(world, "resume", "--wait", pid)
        if out.returncode or back.returncode:
            return f"turn {turn}: {out.stderr}{back.stderr}"
        for at in range(0, gib * GIB, GIB // 2):
            if program.ask(f"read m {at + 4000} 2") != "0 5a5a":
                return f"turn {turn}: other bytes at {at}"
        times.append(f"{out_s:.1f}/{back_s:.1f}")
    return times


def take_all(world, program):
    """Without room it stays suspended, and comes back when there is some."""
    pid = str(program.process.pid)
    world.tool("suspend", pid)
    hog, count = Puppet(world, "hog", [], preload=False), 0
    for size in GIB, 64 << 20:
        while hog.ask(f"malloc h{count} {size}").startswith("0"):
            count += 1
    refused = world.tool("resume", pid)
    hog.end()
    back = world.tool("resume", "--wait", pid)
    good = refused.returncode == 1 and back.returncode == 0 and program.ask("read m 4000 2") == "0 5a5a"
    return row(good, "without room it is refused, and with room it comes back", refused.stderr.strip().replace("gpushare: resume: ", ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--driver", choices=["sim", "gpu"], default="gpu")
    parser.add_argument("--gib", type=int, default=8)
    options = parser.parse_args()
    world = World(options.build.resolve(), options.driver, memory=f"{2 * options.gib + 2}GiB")
    steps = [f"malloc m {options.gib * GIB}"] + [f"fill m 0x5a 4096 {at}" for at in range(0, options.gib * GIB, GIB // 2)]
    program = Puppet(world, "program", steps)
    world.puppets["program"] = program
    neighbour = Neighbour(world, GIB // 2)
    times = turns(world, program, options.gib, 5)
    neighbour.end()
    good = row(isinstance(times, list), f"{options.gib} GiB leave and come back beside one that takes and gives {neighbour.turns} times",
               f"out/back {' '.join(times)} s" if isinstance(times, list) else times)
    good = take_all(world, program) and good
    left = world.end()
    return 0 if row(not left, "nothing is left", " ".join(left)) and good else 1


if __name__ == "__main__":
    sys.exit(main())
