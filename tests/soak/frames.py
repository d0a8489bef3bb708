#!/usr/bin/env python3
"""Whole frames under an adversary: programs (frames.c) that draw, look, and do both in a ring, while they are stopped,
killed, jump out of handlers, fork, execute themselves, lose and reset their contexts; and while the card has no room,
the published directory is full or removed, and keepers die.

usage: frames.py BUILD_DIR [--mode share|bare] [--seconds N] [--seed N] [--processes N] [--memory SIZE] [--keep]

The seed (also SEED=n) decides what each process does and what is done to it; the times are the machine's own. --mode
bare shows that the model is right. SOAK_WITHOUT="full vanish hog keeper jump" leaves out what it names.

What holds: no frame is torn or goes back, no call that uses frames lasts longer than frames_timeout and what the
machine needs, none answers otherwise than the bare driver's, nobody crashes or hangs; and in the end no device memory,
no file (after `gpushare gc`) and no keeper is left. Where the library has said that a buffer is shared without frames,
nothing is known of what is read there. Prints a table; the last line says it all.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import soak
import trial
from soak import Soak

SIZES = (64 << 10, 128 << 10, 192 << 10, 256 << 10)  # latest and each, by the driver's handles and by descriptors
RING = (320 << 10, 384 << 10)
ROLES = ("camera", "camera", "ring-a", "ring-b")  # the others look
RULE = """
[region {name}]
program = {program}
size = {size}
role = {role}
index = *
{keys}
"""
ENDS = {0, 77, -signal.SIGKILL}
SOURCE = pathlib.Path(__file__).with_suffix(".c").read_text()


def rules():
    text = ""
    for i, size in enumerate(SIZES):
        mode = "frames = each\nframes_timeout = 300ms\n" if i & 1 else "frames = latest\n"
        keys = f"{mode}frame_slots = {2 + i % 3}\nbacking = {'vmm' if i & 2 else 'legacy'}"
        text += pair(f"film{i}", size, ("camera", "viewer"), keys)
    for i, size in enumerate(RING):
        keys = "frames = latest" if i else "frames = each\nframes_timeout = 300ms"
        text += pair(f"ring{i}", size, ("ring-a", "ring-b") if i == 0 else ("ring-b", "ring-a"), keys)
    return text


def pair(name, size, programs, keys):
    """What a program allocates next, having freed or lost its buffer, is the next one of them."""
    return "".join(RULE.format(name=f"{name}-{{n}}", program=program, size=size, role=role, keys=more)
                   for program, role, more in zip(programs, ("export", "import"), (keys, "wait = 100ms")))


class Frames(Soak):
    PAUSE, LAST = 0.15, signal.SIGKILL

    def __init__(self, options):
        super().__init__(options)
        for name in ("camera", "viewer", "ring-a", "ring-b"):
            shutil.copy(self.build / "tests/soak-frames", self.place / name)
        (self.place / "rules.conf").write_text(rules())
        self.names = re.findall(r"SUM\((\w+)\)", SOURCE[SOURCE.index("#define SUMS"):SOURCE.index("#define SUM(")])
        (self.place / "sums").write_bytes(bytes(8 * len(self.names)))
        self.environment["FILM_KERNELS"] = f"{self.build}/tests/apps/kernels.ptx"
        self.without = os.environ.get("SOAK_WITHOUT", "").split()

    def sums(self):
        data = (self.place / "sums").read_bytes()
        return {name: int.from_bytes(data[8 * i:8 * i + 8], "little") for i, name in enumerate(self.names)}

    # --- programs ---

    def start(self):
        running = [worker.role for worker in self.workers.values()]
        free = list(ROLES)
        for role in running:
            if role in free:
                free.remove(role)
        role = free[0] if free else "viewer"
        seed = self.random.randrange(1 << 30)
        drawn = [worker.size for worker in self.workers.values() if worker.role == "camera"]
        size = self.random.choice(drawn if role == "viewer" and drawn else SIZES)
        sizes = {"camera": (0, size), "viewer": (size, 0), "ring-a": RING[::-1], "ring-b": RING}[role]
        words = [role, seed, self.random.choice("ssccqfnu"), *sizes]
        with open(self.place / "stderr", "ab") as errors:
            worker = subprocess.Popen([self.place / role, self.place, *map(str, words)], env=self.preloaded(),
                                      stdin=subprocess.DEVNULL, stdout=errors, stderr=errors)
        worker.seed, worker.role, worker.size, worker.signalled = " ".join(map(str, words)), role, size, None
        worker.replica = False
        self.workers[worker.pid] = worker

    def gone(self, worker):
        self.workers.pop(worker.pid, None)
        self.stopped.pop(worker.pid, None)
        self.acts["killed" if worker.returncode == -signal.SIGKILL else "ended"] += 1
        self.acts["ends in handlers"] += worker.returncode == 77
        if worker.returncode not in ENDS or (worker.returncode == -signal.SIGKILL and worker.signalled != signal.SIGKILL):
            self.fail(f"program {worker.pid} ({worker.seed}) ended with {worker.returncode}")
        self.forget(worker.pid)

    # --- what is done to them ---

    def disturb(self):
        worker = self.random.choice(list(self.workers.values()))
        kind = self.random.random()
        if kind < 0.4:
            if worker.pid not in self.stopped:
                self.stop(worker)
        elif kind < 0.65:
            self.end(worker, signal.SIGKILL)
        elif self.options.mode == "bare" or kind < 0.75:
            return
        elif kind < 0.85:
            self.unless("keeper", self.trouble_keeper)
        elif kind < 0.9:
            self.unless("hog", self.hog)
        elif kind < 0.97:
            self.unless("full", self.fill)
        else:
            self.unless("vanish", self.vanish)

    def unless(self, name, act):
        if name not in self.without:
            act()

    # --- afterwards ---

    def lines(self, name):
        path = self.place / name
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def unframed(self):
        """The programs that were told that a buffer is shared without frames."""
        return {pid for pid, _, record in self.records(self.place / "logs") if record["finding"] == "share-fallback"}

    def judge_frames(self):
        """A line: who, as what, the number, the size of the buffer, and what is wrong."""
        unframed, drawn = self.unframed(), collections.defaultdict(list)
        for pid, _, number, size, way in self.lines("drawn"):
            drawn[size].append((int(number), pid, way))
        for pid, role, number, size, *what in self.lines("torn"):
            writers = [one for one in drawn[size] if one[0] <= int(number)]
            if self.options.mode != "bare" and (pid in unframed or (writers and max(writers)[1] in unframed)):
                self.acts["without frames"] += 1
            else:
                self.fail(f"torn: {role} {pid}, frame {number} of {max(writers)[1:] if writers else '?'}, "
                          f"{size} bytes: {' '.join(what)}")


def arguments():
    parser = trial.options(__doc__, seconds=600)
    parser.add_argument("--mode", choices=["share", "bare"], default="share")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--memory", default="1GiB")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    return argparse.Namespace(driver="sim", runtime=None, merge=0.0, suspend=False, events=None, gentle=False, cache=0,
                              **vars(options))


def main():
    frames = Frames(arguments())
    try:
        before = frames.meter.used()
        frames.run()
        frames.judge_keepers()
        frames.judge_memory(before)
        left = frames.judge_directory()
        sums = frames.sums()
        if not sums["fresh"] and frames.options.mode == "share":
            frames.fail("no frame was read")
        frames.judge_frames()
        frames.judge_journal()
        frames.judge_assertions()
        soak.table(frames, sums, frames.findings()[0])
    finally:
        frames.close()
    print(f"seed {frames.options.seed}: {sums['drawn']} frames drawn, {sums['fresh']} read in {sums['looked']} looks, "
          f"{frames.acts['killed']} killed, {frames.acts['stopped']} stopped, {sums['jumps']} jumps, {left} files left for "
          f"gc, {len(frames.failures)} failures")
    return 1 if frames.failures else 0


if __name__ == "__main__":
    sys.exit(main())
