#!/usr/bin/env python3
"""Compares programs with and without rules: random programs (program.c) run bare and preloaded under a merge rule, in one
to three replicas, or alone under a rule that exports all that they have. Every code and every byte that they read must be
equal. No finding may be reported but of what they do wrong on purpose.

usage: differ.py BUILD_DIR [--driver sim|gpu] [--seconds N | --programs N] [--seed N] [--steps N] [--only SEED]

SEED=n is --only n: that program alone, any time again. The seed decides the program, its replicas and the rule. On the
simulator every eighth program gets a card that has 64 MiB more than it uses bare.
A difference is printed with the seed, and the program is reduced: steps are left out as long as it still differs.
Ends with a line of sums; 1 if one differs.
"""
import os
import random
import re
import shutil
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import trial
from patience import patient

MIB = 1 << 20
EXPORT = "role = export\nindex = *"
RULES = ["quiet = 0", "quiet = 0\nverify = off", "quiet = 30ms\ncontent = any", "quiet = 10ms"]
CONTEXT = 512 * MIB  # a context of the simulator's
MAPPED = 144 * MIB   # what a replica makes by cuMemCreate, and once more while it is cut; and what kernels compute
# What the programs do wrong on purpose (mapped.c), and is reported.
MISUSE = {"export-type-missing", "unmap-mismatch", "use-unmapped", "map-over-mapping", "vmm-use-after-release"}
TRIES = 3            # of a program that is being reduced: not each run of it differs
LIMIT = patient(120) # seconds a run


def program(seed):
    """The rule, and how many replicas."""
    rng = random.Random(seed)
    rule, replicas = rng.choice(RULES), rng.choice([1, 2, 2, 3])
    rule += rng.choice(["", "\ncreated = on", "\ncreated = on"])
    if rng.random() < 0.25:  # a name is one process's
        return EXPORT + rng.choice(["", "\nbacking = vmm"]), 1
    return rule, replicas


def sections(rule):
    """Of a configuration. Names are new ones: a region of the run before may not be gone yet."""
    start = "[region {}]\nprogram = differ-program\nsize = {}\n{}\n"
    if rule.startswith(EXPORT):
        return start.format(f"of-{time.monotonic_ns()}-{{n}}", ">=1", rule)
    return start.format("computed", "14MiB", "role = merge\nquiet = 0") + start.format("weights", ">=2MiB", f"role = merge\n{rule}")


class Stage:
    """Where programs run: a card, a directory, and the two environments."""

    def __init__(self, options):
        self.options, self.build = options, options.build
        self.place, self.environment = trial.make_place("differ"), trial.clean_environment()
        self.merged = self.small = 0
        if options.driver == "sim":
            self.environment["LD_LIBRARY_PATH"] = str(self.build / "sim")
            self.environment["GPUSHARE_SIM_LINGER_MS"] = "500"

    def on_card(self, name, memory):
        if self.options.driver != "sim":
            return self.environment
        return self.environment | {"GPUSHARE_SIM_ROOT": f"@differ-{os.getpid()}-{name}-{memory}", "GPUSHARE_SIM_MEMORY": str(memory)}

    def preloaded(self, rule, memory):
        config, log = self.place / "merge.conf", self.place / "log"
        config.write_text(sections(rule))
        for path in [log, self.place / "events"]:
            path.unlink(missing_ok=True)
        return self.on_card("merged", memory) | {
            "LD_PRELOAD": str(self.build / "libgpushare.so"), "GPUSHARE_CONFIG": str(config), "GPUSHARE_DIR": str(self.place / "dir"),
            "GPUSHARE_LOG": str(log), "GPUSHARE_EVENT_LOG": str(self.place / "events"), "GPUSHARE_KEEPER": str(self.build / "gpushare")}

    def start(self, environment, seed, replicas, left_out):
        words = [self.build / "tests/differ-program", self.build / "tests/apps/kernels.ptx", seed, self.options.steps, replicas]
        words += [f"-{step}" for step in left_out]
        return subprocess.Popen([str(word) for word in words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end(self):
        trial.files_after_gc(self.build, self.place / "dir", self.environment)
        shutil.rmtree(self.place, ignore_errors=True)


def answers(process):
    """What each replica said, in its own order."""
    try:
        text, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        process.kill()
        text = process.communicate()[0] + f"0 -1 124 0 did not end in {LIMIT} s\n"
    return sorted(text.splitlines(), key=lambda line: line.split(" ", 1)[0])


def peak(lines):
    """The most bytes that all replicas have allocated at once."""
    live, now, most = {}, 0, 0
    for line in lines:
        replica = line.split(" ", 1)[0]
        for what, index, size in re.findall(r"(allocate|free|reset)(?: (\d+))?(?: (\d+))?", line):
            key = replica, index
            for one in [one for one in live if one == key or what == "reset" and one[0] == replica]:
                now -= live.pop(one)
            if what == "allocate":
                live[key] = -(-int(size) // (2 * MIB)) * 2 * MIB
                now += live[key]
                most = max(most, now)
    return most


def difference(stage, seed, left_out=()):
    """None, or what differs, as text."""
    rule, replicas = program(seed)
    memory = 16 << 30
    processes = [stage.start(stage.preloaded(rule, memory), seed, replicas, left_out),
                 stage.start(stage.on_card("bare", memory), seed, replicas, left_out)]
    merged, bare = [answers(process) for process in processes]
    if seed % 8 == 7 and stage.options.driver == "sim" and merged == bare:
        stage.small += 1
        memory = peak(bare) + 64 * MIB + (CONTEXT + 8 * MIB) * (replicas + 1) + MAPPED * replicas
        merged = answers(stage.start(stage.preloaded(rule, memory), seed, replicas, left_out))
    log = stage.place / "log"
    events = stage.place / "events"
    if broken := [line for line in bare if line.split(" ")[1] == "-1"]:
        return f"    the bare program failed: {broken[0]}"
    stage.merged += events.exists() and '"merged"' in events.read_text()
    for one, other in zip(bare + ["nothing"] * len(merged), merged + ["nothing"] * len(bare)):
        if one != other:
            return f"    bare:   {one}\n    merged: {other}"
    reports = log.read_text() if log.exists() else ""
    if set(re.findall(r"GPUSHARE [A-Z]+: ([a-z-]+)", reports)) - MISUSE:
        return "    a report:\n" + "\n".join("    " + line for line in reports.splitlines()[:12])
    return None


def reduced(stage, seed):
    """The steps that can be left out while the program still differs: larger groups first."""
    left_out, group = [], stage.options.steps // 2
    while group:
        for first in range(0, stage.options.steps, group):
            tried = sorted(set(left_out) | set(range(first, min(first + group, stage.options.steps))))
            if tried != left_out and any(difference(stage, seed, tried) for _ in range(TRIES)):
                left_out = tried
        group //= 2
    return left_out


def show(stage, seed, text):
    rule, replicas = program(seed)
    print(f"seed {seed} differs: {replicas} replicas, {', '.join(rule.splitlines())}\n{text}", flush=True)
    if stage.options.no_reduction:
        return
    left_out = reduced(stage, seed)
    print(f"  without the steps {' '.join(map(str, left_out))} it still does; what is left, bare:")
    for line in answers(stage.start(stage.on_card("bare", 16 << 30), seed, 1, left_out)):
        print("    " + line)
    sys.stdout.flush()


def main():
    parser = trial.options(__doc__)
    parser.add_argument("--driver", choices=["sim", "gpu"], default="sim")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--programs", type=int)
    parser.add_argument("--seed", type=int, default=1, help="of the first program")
    parser.add_argument("--only", type=int, default=os.environ.get("SEED"), help="the program of this seed alone")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--no-reduction", action="store_true")
    options = parser.parse_args()
    stage, started, count, differing = Stage(options), time.monotonic(), 0, []
    try:
        seed = options.seed if options.only is None else int(options.only)
        while True:
            if text := difference(stage, seed):
                differing.append(seed)
                show(stage, seed, text)
            count, seed = count + 1, seed + 1
            if options.only is not None or (count >= options.programs if options.programs else time.monotonic() - started > options.seconds):
                break
    finally:
        stage.end()
    print(f"{count} programs from seed {seed - count} on in {time.monotonic() - started:.0f} s, {stage.merged} of them merged, "
          f"{stage.small} once more with 64 MiB to spare: {len(differing)} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
