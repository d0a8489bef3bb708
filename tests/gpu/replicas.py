#!/usr/bin/env python3
"""One copy of what is equal: unmodified programs, side by side with and without gpushare.

usage: replicas.py BUILD_DIR gpu|sim STEP
steps: hole together changed latency ends read-only learn, those of replicas_torch.py (model serve), those of
replicas_transformers.py (transformers transformers-odd), busy, loads, steady, and kills

WEIGHTS_BYTES=n   of the weights (8 GiB; simulated 64 MiB); steps that need less take 1 or 1.6 GB at most
SERVE_SECONDS=n   how long a PyTorch server is under load (40; 300 for the full run)
KILL_SECONDS=n    how long replicas and keeper are killed (30; 600 for the full run; simulated 10)

A line a row on standard output: ok, FAIL, miss or skip, a tab, what was shown, a tab, the figures. What is measured
goes to BUILD_DIR/gpu-results/replicas-STEP.json, from which tests/bench/replicas_table.py makes the table of
docs/replicas.md; the output and the log of each process lie beside it. fleet.py has the processes.
"""
import json
import os
import statistics
import subprocess
import sys

from fleet import GIB, MIB, NOISE, Filled, Fleet, Peak, Table, gib, merge_rule, seconds, sums
from replicas_busy import busy, busy_torch
from replicas_kills import kills
from replicas_loads import loads
from replicas_steady import steady
from replicas_torch import learned_model, model, serve
from replicas_transformers import even, odd

LAYERS = 16
PROGRAM = "weights_*"


class Weights:
    """A file of them, and servers of it."""

    def __init__(self, fleet, size, *options, files=1):
        self.fleet, self.size, self.options = fleet, size, options
        self.folder = fleet.room_for(files * size)
        self.file = self.make("weights")
        fleet.once(self.tool("static"), "make", self.folder / "small", 4096 * LAYERS, 1)
        self.context, self.before = fleet.context(self.words(self.folder / "small", "shared"))

    def tool(self, runtime):
        return self.fleet.programs / f"weights_{runtime}"

    def make(self, name, *parts):
        path = self.folder / name
        self.fleet.once(self.tool("static"), "make", path, self.size, 1, *parts, timeout=80)
        return path

    def words(self, file, runtime, *more):
        return [self.tool(runtime), "serve", file, *self.options, *more]

    def start(self, name, config=None, runtime="shared", file=None, more=()):
        return self.fleet.start(name, self.words(file or self.file, runtime, *more), config)

    def used(self):
        return self.fleet.used() - self.before

    def stable_use(self, most, timeout=15):
        return self.fleet.at_rest(self.before + most, timeout) - self.before

    def limit(self, members, size=None):
        """A copy, contexts, and 2%."""
        return int(((self.size if size is None else size) + members * self.context) * 1.02)

    def end(self, members, others=0):
        """Their statuses, once the card is as it was, but for so much of others."""
        status = {member.end() for member in members}
        self.fleet.stable_use(self.before + others + NOISE)
        return status


def on_a_card(fleet, good):
    """Simulated and small, times mean nothing."""
    return fleet.driver == "sim" or good


# --- one allocation with a hole ---

def blocks_touched(size, extent, start, end):
    """Of an allocation that is cut as shim/merge/area.h says: the bytes in blocks that the range touches."""
    at, touched = 0, 0
    while at < extent:
        block = min(32 * MIB, 1 << (extent - at).bit_length() - 1)
        touched += block if at < end and at + block > start or at <= size < at + block else 0
        at += block
    return touched


def with_a_hole(fleet, size):
    """1.6 GB in one cudaMalloc: many tensors, gaps, a hole of 8 % and an odd end; and what of it is each one's own."""
    size = 1600000000 if fleet.driver == "gpu" else 3 * size
    extent = (size + 12345 + 2 * MIB - 1) // (2 * MIB) * (2 * MIB)
    return Weights(fleet, size, "layout=hole"), blocks_touched(size, extent, size // 100 * 46, size // 100 * 54)


def hole(fleet, table, size):
    weights, own = with_a_hole(fleet, size)
    for name, quiet in (("quiet = 1s", "1s"), ("quiet = 0", "0")):
        with table.part(f"one allocation with a hole, {name}"):
            four_with_a_hole(weights, table, name, fleet.config(name.replace(" ", ""), merge_rule(PROGRAM, quiet=quiet)), own)


def four_with_a_hole(weights, table, name, config, own, runtimes=("shared", "static")):
    members, ratios, bare_loads, private = [], [], [], 0
    right = None
    for number in range(4):
        before = weights.used()
        bare = weights.start(f"bare-{number}").ready()
        right = bare.ask("sum")
        private = private or weights.used() - before
        bare.end()
        runtime = runtimes[number % len(runtimes)]
        members.append(weights.start(f"{name.replace(' ', '')}-{number}", config, runtime).ready())
        ratios.append(members[-1].load / bare.load)
        bare_loads.append(bare.load)
    limit = weights.limit(4, weights.size + 3 * own)
    in_use = weights.stable_use(limit)
    loads = statistics.median(member.load for member in members)
    table.row(in_use <= limit, f"one allocation with a hole, four replicas, {name}: one copy + what differs + contexts + 2%",
              f"{gib(in_use)} of at most {gib(limit)}, in which {gib(own)} differ; without {gib(4 * private)}")
    table.row(set(sums(members)) == {right}, "their sums are those of a bare one", right)
    table.goal(on_a_card(weights.fleet, statistics.median(ratios) <= 1.1), "each loads within 1.1 of the bare time, by medians of pairs",
               f"{loads:.3f} s, bare {statistics.median(bare_loads):.3f} s, ratios {' '.join(f'{ratio:.2f}' for ratio in ratios)}")
    clean = [member.findings() for member in members]
    table.row(weights.end(members) == {0} and not any(clean), "they end well, and nothing is reported", f"{clean}")
    program = "one allocation of 1.6 GB, 8 % never uploaded" + (", a learned rule" if name == "learned" else "")
    table.figure(program, "memory of 4 replicas", gib(4 * private), gib(in_use), name != "quiet = 1s")
    table.figure(program, "a further one loads in", seconds(bare_loads), seconds([one.load for one in members[1:]]), name != "quiet = 1s")


# --- many that load at once ---

def together(fleet, table, size):
    """With a learned rule: followers, four at the same moment, and what is kept for the next one."""
    weights = Weights(fleet, size, f"layers={LAYERS}")
    config = fleet.config("learned", merge_rule(PROGRAM, quiet=0))
    loads, private, right = [], 0, None
    for number in range(3):
        bare = weights.start(f"bare-{number}").ready()
        right, private = bare.ask("sum"), weights.used()
        loads.append(bare.load)
        weights.end([bare])
    with table.part("followers"):
        followers(weights, table, config, loads, right)
    with table.part("four at once"):
        at_once(weights, table, right, private)
    with table.part("kept"):
        kept(weights, table, right)


def followers(weights, table, config, bare_loads, right):
    bare_load = statistics.median(bare_loads)
    first = weights.start("first", config, "static").ready()
    ones = [weights.start(f"follower-{i}", config).ready() for i in range(3)]
    load = statistics.median(one.load for one in ones)
    limit = weights.limit(4)
    in_use = weights.stable_use(limit)
    table.goal(on_a_card(weights.fleet, load <= bare_load / 4), "a follower is ready in a quarter of the bare time",
               f"{load:.3f} s of {bare_load:.3f} s ({load / bare_load:.3f}); the first one {first.load:.3f} s")
    table.goal(on_a_card(weights.fleet, first.load <= 1.1 * bare_load), "the first one loads within 1.1 of the bare time",
               f"{first.load / bare_load:.3f}")
    table.row(in_use <= limit and set(sums([first] + ones)) == {right}, "four of them have one copy, and the right sums",
              f"{gib(in_use)} of at most {gib(limit)}")
    table.row(weights.end([first] + ones) == {0}, "they end well")
    program = f"{gib(weights.size)} of weights"
    table.figure(program, "the first one is ready in", seconds(bare_loads), f"{first.load:.2f} s", True)
    table.figure(program, "a further one is ready in", seconds(bare_loads), seconds([one.load for one in ones]), True)


def at_once(weights, table, right, private):
    """On a card that has room for two."""
    limit = int((2 * weights.size + 4 * weights.context) * 1.02)
    config = weights.fleet.config("overcommit", merge_rule(PROGRAM, quiet=0, overcommit="on"))
    with Filled(weights.fleet, limit):
        filled = weights.used()
        with Peak(weights.fleet) as peak:
            ones = [weights.start(f"at-once-{i}", config) for i in range(4)]
            loads = [one.ready().load for one in ones]
            good = set(sums(ones)) == {right}
        most = peak.most - weights.before - filled
        in_use = weights.stable_use(weights.limit(4) + filled) - filled
        table.row(good, "four started at once on a card with room for two, overcommit = on, have the right sums",
                  f"at most {gib(most)} of {gib(limit)} in {peak.samples} samples, {gib(in_use)} after; loads {max(loads):.2f} s at most")
        table.row(in_use <= weights.limit(4), "and in the end one copy", gib(in_use))
        table.row(weights.end(ones, filled) == {0}, "they end well, too")
    program = f"{gib(weights.size)} of weights"
    table.figure(program, "at most, while 4 start at once, overcommit = on", gib(4 * private), gib(most), True)
    table.figure(program, "memory of 4 replicas", gib(4 * private), gib(in_use), True)


def kept(weights, table, right):
    config = weights.fleet.config("kept", merge_rule(PROGRAM, quiet=0, keep="6s", verify="off"))
    first = weights.start("kept-first", config).ready()
    weights.stable_use(weights.limit(1))
    first.ask("sum")
    first.end()
    alone = weights.stable_use(weights.limit(0) + NOISE, 4)
    again = weights.start("kept-again", config).ready()
    table.row(again.ask("sum") == right and on_a_card(weights.fleet, again.load < first.load / 2),
              "keep = 6s: one that starts again finds its weights loaded", f"{again.load:.3f} s, at first {first.load:.3f} s; "
              f"{gib(alone)} between")
    again.end()
    left = weights.stable_use(NOISE, 20)
    table.row(alone >= weights.size and left <= NOISE, "and after that time the card is as it was", f"{gib(left)} more than before")
    table.figure(f"{gib(weights.size)} of weights", "one that starts again within `keep` is ready in", f"{first.load:.2f} s",
                 f"{again.load:.2f} s", True)


# --- weights that kernels change ---

def changed(fleet, table, size):
    size = min(size, GIB)
    weights = Weights(fleet, size, f"layers={LAYERS}", files=2)
    for how in ("changed", "computed"):
        with table.part(f"weights {how} by kernels"):
            by_kernels(weights, table, how)
    with table.part("two fine-tunes"):
        fine_tunes(weights, table)


def by_kernels(weights, table, how):
    any_content = weights.fleet.config("any", merge_rule(PROGRAM, quiet="1s", content="any"))
    uploaded = weights.fleet.config("uploaded", merge_rule(PROGRAM, quiet="1s"))
    bare = weights.start(f"bare-{how}", more=[f"how={how}"]).ready()
    right = bare.ask("sum")
    weights.end([bare])
    ones = [weights.start(f"{how}-{i}", any_content, more=[f"how={how}"]).ready() for i in range(3)]
    limit = weights.limit(3)
    in_use = weights.stable_use(limit)
    table.row(in_use <= limit and set(sums(ones)) == {right}, f"weights {how} by kernels, content = any: three have one copy",
              f"{gib(in_use)} of at most {gib(limit)}")
    table.row(weights.end(ones) == {0}, "they end well")
    table.figure(f"{gib(weights.size)} of weights, {how} by kernels, `content = any`", "memory of 3 replicas",
                 gib(3 * (weights.size + weights.context)), gib(in_use))
    if how == "changed": # in place: where it was uploaded
        return
    ones = [weights.start(f"uploaded-{i}", uploaded, more=[f"how={how}"]).ready() for i in range(2)]
    in_use = weights.stable_use(weights.limit(2), 4)
    table.row(in_use >= 2 * weights.size and set(sums(ones)) == {right}, "with content = uploaded each has its own", gib(in_use))
    table.row(weights.end(ones) == {0}, "they end well")


def fine_tunes(weights, table):
    """One of sixteen layers differs all over, and one by 4 KiB in its middle."""
    layer = weights.size // LAYERS
    tuned = weights.make("tuned", 3 * layer, 4 * layer, 2, 25 * layer // 2, 25 * layer // 2 + 4096, 3)
    config = weights.fleet.config("tunes", merge_rule(PROGRAM, quiet=0))
    bare = [weights.start("bare-base").ready(), weights.start("bare-tuned", file=tuned).ready()]
    right = sums(bare)
    weights.end(bare)
    ones = [weights.start(f"{name}-{i}", config, file=file).ready() for i in range(2) for name, file in (("base", None), ("tuned", tuned))]
    limit = weights.limit(4, weights.size + 2 * layer)
    in_use = weights.stable_use(limit)
    table.row(in_use <= limit and sums(ones) == 2 * right and right[0] != right[1],
              "two of each of two fine-tunes: one copy, and the two layers that differ once more",
              f"{gib(in_use)} of at most {gib(limit)}")
    changes = [one.ask("copy") for one in ones[:2]]
    table.row(changes == ["0", "0"] and sums(ones[2:]) == right and sums(ones[:2]) != right,
              "a copy into merged weights is seen by nobody else", f"codes {' '.join(changes)}")
    table.row(weights.end(ones) == {0}, "they end well")
    table.figure(f"two fine-tunes of {gib(weights.size)}, two of each", "memory of 4 replicas",
                 gib(4 * (weights.size + weights.context)), gib(in_use), True)


# --- what the program notices ---

def latency(fleet, table, size):
    """Small requests while everything is merged, and the cost of a launch."""
    count, pause = (10000, 1100) if fleet.driver == "gpu" else (1500, 3000)
    weights = Weights(fleet, size, f"layers={LAYERS}")
    config = fleet.config("quiet", merge_rule(PROGRAM, quiet="1s"))
    bare = weights.start("bare").ready()
    alone = answer_of(bare, count, pause)
    weights.end([bare])
    first = weights.start("first", config).ready()
    offers = answer_of(first, count, pause)
    offered = fleet.merged()
    second = weights.start("second", config).ready()
    swaps = answer_of(second, count, pause)
    in_use = weights.used()
    table.row(offered >= weights.size and in_use <= weights.limit(2), "all was merged meanwhile",
              f"{gib(offered)} in blocks, {gib(in_use)} in use of two with {gib(weights.size)} each")
    for what, seen in (("made shared", offers), ("replaced", swaps)):
        table.row(seen["bad"] == 0, f"{count} requests while {gib(weights.size)} are {what} are answered", f"{seen['bad']:.0f} are wrong")
        table.goal(on_a_card(fleet, seen["worst"] <= alone["worst"] + 5000),
                   f"{count} requests while {gib(weights.size)} are {what}: the slowest takes at most 5 ms more than bare",
                   ", ".join(f"{key} {seen[key]:.0f} us (bare {alone[key]:.0f})" for key in ("median", "p999", "worst")))
        program = f"{count:,} small requests while {gib(weights.size)} are {what}"
        table.figure(program, "half of them take at most", f"{alone['median']:.0f} us", f"{seen['median']:.0f} us")
        table.figure(program, "the slowest takes", f"{alone['worst'] / 1e3:.2f} ms", f"{seen['worst'] / 1e3:.2f} ms")
    table.row(weights.end([first, second]) == {0}, "they end well")
    with table.part("the cost of a launch"):
        launches(weights, table, config)


def answer_of(member, count, pause):
    words = member.ask(f"requests {count} {pause}", timeout=80).split()
    return {"bad": int(words[2]), **{key: float(words[words.index(key) + 1]) for key in ("median", "p999", "worst")}}


def launches(weights, table, config):
    """Of two servers in turn."""
    size = min(weights.size, 64 * MIB)
    small = weights.folder / "launches"
    weights.fleet.once(weights.tool("static"), "make", small, size, 1)
    count, pairs = (20000, 25) if weights.fleet.driver == "gpu" else (400, 3)
    bare, merging = [weights.start(f"launches-{i}", which, file=small).ready() for i, which in enumerate((None, config))]
    weights.stable_use(0, 3) # it merges
    more, base = [], []
    for _ in range(pairs):
        both = [float(one.ask(f"launches {count}").split()[0]) for one in (bare, merging)]
        more.append(both[1] - both[0])
        base.append(both[0])
    more.sort()
    middle = statistics.median(more)
    table.goal(on_a_card(weights.fleet, middle <= 10), "a launch beside a merge rule costs at most 10 ns more",
               f"{middle:+.1f} ns ({more[pairs // 4]:+.1f} to {more[-1 - pairs // 4]:+.1f}) on {statistics.median(base):.0f} ns, {pairs} pairs")
    table.row(weights.end([bare, merging]) == {0}, "they end well")


def ends(fleet, table, _):
    """What copies and fills answer of which one end lies a byte behind the allocation; the page's table, too."""
    program, export = fleet.programs / "ends", "[region ends-{n}]\nprogram = ends\nrole = export\nindex = *\n"
    bare = [row.split("\t") for row in fleet.once(program, "bare").splitlines()]
    for kind, config in (("merged", merge_rule("ends", quiet="0")), ("exported", export), ("exported VMM", export + "backing = vmm\n")):
        environment = fleet.environment(fleet.config(f"ends-{kind.replace(' ', '-')}", config), fleet.results / "replicas-ends.log")
        found = subprocess.run([program], env=environment, stdout=subprocess.PIPE, text=True, timeout=60, check=False).stdout
        ruled = [row.split("\t") for row in found.splitlines()]
        other = [f"{row[:2]}: {row[2:]}, bare {expected[2:]}" for row, expected in zip(ruled, bare) if row != expected]
        table.row(bool(bare) and len(ruled) == len(bare) and not other, f"copies past the end of {kind} memory are refused as bare",
                  f"{len(bare)} asked" if not other else "; ".join(other))
        if kind == "merged":
            merged = ruled
    lines = ["| function | the end | bare | merged |", "| --- | --- | ---: | ---: |"]
    lines += [f"| `{row[0]}` | {row[1]} | {expected[3]} | {row[3]} |" for row, expected in zip(merged, bare)]
    (fleet.results / "replicas-ends.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


# --- named regions that may only be read ---

def read_only_rule(role, program, layer):
    return f"""[region frames-{{n}}]
program = {program}
size = {layer // MIB}MiB
index = *
role = {role}
backing = vmm
wait = 60s
access = ro
keep = users
"""


def read_only(fleet, table, size):
    """Followers that write: by copies, by a kernel; and the token where nobody is preloaded."""
    size = min(size, GIB)
    weights = Weights(fleet, size, f"layers={LAYERS}")
    config = fleet.config("read-only", "".join(
        read_only_rule(role, program, size // LAYERS) for role, program in (("export", "weights_static"), ("import", "weights_shared"))))
    leader = weights.start("leader", config, "static").ready()
    reader, writer, kernel = [weights.start(name, config, more=["how=attach"]).ready() for name in ("reader", "writer", "kernel")]
    expected = leader.ask("sum")
    table.row(reader.ask("sum") == expected, "importers of a read-only region read it")
    codes = [writer.ask("copy"), writer.ask("set")]
    table.row(codes == ["1", "1"], "a copy and a memset into it are refused (1)", f"codes {codes[0]} and {codes[1]}")
    table.row("write-read-only" in writer.findings(), "and reported", f"{writer.findings()}")
    table.row(sums([leader, reader, writer]) == [expected] * 3, "everybody's bytes are as they were")
    code = kernel.ask("kernel")
    table.row(code == "700", "a kernel that writes into it loses its own context (700)", f"code {code}; reported: {kernel.findings()}")
    table.figure("a kernel writes into a read-only region", "its process gets", "", f"{code}; the others go on")
    table.row(sums([leader, reader]) == [expected] * 2, "the others' bytes are as they were after that, too")
    with table.part("a token without the shim"):
        foreign(fleet, table, leader, config)
    table.row({one.end() for one in (reader, writer, leader)} == {0}, "leader and importers end well")


def foreign(fleet, table, leader, config):
    code, handle = leader.ask("handle").split()
    bare = fleet.once(fleet.programs / "vmm_probe", "open", handle).splitlines()[-1].split("|")[1].strip()
    table.row(code == "0" and bare not in ("0", ""), "a token in a process without the shim: the driver's own error", f"code {bare}")
    done = subprocess.run([str(fleet.programs / "vmm_probe"), "open", handle], stdout=subprocess.PIPE, text=True, timeout=30,
                          env=fleet.environment(config, fleet.results / f"replicas-{fleet.name}-opener.jsonl"))
    table.row(done.stdout.splitlines()[-1:] and done.stdout.split("|")[-1].strip() == "0", "and in a preloaded one it opens",
              done.stdout.split("|")[-1].strip())
    table.figure("a token", "opened without gpushare", "", f"error {bare}")


# --- rules that were learned ---

def learn(fleet, table, size):
    """From one run each of the servers with a hole and of PyTorch."""
    if "\n  learn " not in fleet.tool("help"):
        table.skip("rules of `gpushare learn` are right for all other runs", "there is no such verb")
        return
    weights, own = with_a_hole(fleet, size)
    with table.part("rules that were learned, one allocation with a hole"):
        rules = fleet.learn("hole", weights.words(weights.file, "shared"), 8)
        four_with_a_hole(weights, table, "learned", rules, own, ("shared",))
    with table.part("rules that were learned, PyTorch"):
        learned_model(fleet, table)


STEPS = {"hole": hole, "model": model, "together": together, "changed": changed, "serve": serve, "latency": latency, "kills": kills,
         "ends": ends, "read-only": read_only, "learn": learn, "transformers": even, "transformers-odd": odd, "busy": busy, "busy-torch": busy_torch, "loads": loads, "steady": steady}


def main():
    build, driver, step = sys.argv[1:4]
    size = int(os.environ.get("WEIGHTS_BYTES") or (8 * GIB if driver == "gpu" else 64 * MIB))
    table = Table()
    with Fleet(build, driver, step) as fleet:
        with table.part(f"step {step}"):
            STEPS[step](fleet, table, size)
        path = fleet.results / f"replicas-{step}.json"
        path.write_text(json.dumps({"weights": size, "driver": driver, "figures": table.figures}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
