#!/usr/bin/env python3
"""One copy of the weights for N replicas: unmodified programs, side by side with and without gpushare.

usage: replicas.py BUILD_DIR gpu|sim STEP      copies, other, read-only or torch

WEIGHTS_BYTES=n   of the weights (8 GiB; simulated 64 MiB), a sixteenth a layer

A line a row on standard output: ok, FAIL or skip, a tab, what was shown, a tab, the figures. What is measured
goes to BUILD_DIR/gpu-results/replicas-STEP.json, from which tests/bench/replicas_table.py makes the table of
docs/replicas.md; the output and the log of each process lie beside it. fleet.py has the processes.
"""
import contextlib
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

from fleet import GIB, MIB, Failed, Fleet, Peak, gib

LAYERS = 16
SETTLED = 16 * MIB # the card's own figure moves by so much
TORCH = pathlib.Path(__file__).parent / "programs" / "torch_weights.py"


class Table:
    def __init__(self):
        self.figures = []

    def row(self, good, name, remark=""):
        print("ok" if good else "FAIL", name, remark, sep="\t", flush=True)

    def figure(self, what, without, having):
        self.figures.append({"what": what, "without": without, "with": having})

    @contextlib.contextmanager
    def part(self, name):
        """What fails inside is a row, and what follows goes on."""
        try:
            yield
        except (Failed, OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            self.row(False, name, f"{type(error).__name__}: {error}".replace("\n", " ")[:300])


def rule(name, layer, role="auto", program="weights_*", **more):
    keys = {"program": program, "size": f"{layer // MIB}MiB", "index": "*", "role": role, "backing": "vmm", "wait": "60s", **more}
    return f"[region {name}-{{n}}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())


def sums(members):
    return [member.ask("sum") for member in members]


def names_of(fleet):
    return sorted(region["name"] for region in json.loads(fleet.tool("ls", "--json")))


def times(members):
    return (statistics.median(member.load for member in members), statistics.median(member.whole for member in members))


class Copies:
    """Four replicas of one program; then its leader is killed, everybody ends, and the weights are dropped."""

    def __init__(self, fleet, table, size):
        self.fleet, self.table, self.size = fleet, table, size
        self.file = fleet.room_for(size) / "weights"
        self.tool = fleet.programs / "weights_static"
        fleet.once(self.tool, "make", self.file, size, 1, timeout=100)
        self.before = fleet.used()
        self.context, self.reference, self.private, self.alone = 0, None, None, None
        text = rule("weights", size // LAYERS, upload="once", keep="forever")
        self.shared = fleet.config("shared", text)
        self.trusting = fleet.config("verify-off", text + "verify = off\n")

    def start(self, name, config=None, runtime="shared"):
        return self.fleet.start(name, [self.fleet.programs / f"weights_{runtime}", "serve", self.file, LAYERS], config)

    def measure_context(self):
        """What a process costs that has next to no weights."""
        small = self.file.with_name("small")
        self.fleet.once(self.tool, "make", small, LAYERS * 4096, 1)
        one = self.fleet.start("context", [self.tool, "serve", small, LAYERS]).ready()
        one.ask("sum")
        self.context = self.fleet.used() - self.before
        one.end()
        self.fleet.settled(self.before + SETTLED)

    def without(self):
        alone = self.start("private-0").ready()
        four = [alone] + [self.start(f"private-{i}").ready() for i in (1, 2, 3)]
        answers = sums(four)
        self.reference, self.private = answers[0], self.fleet.used() - self.before
        self.alone = load, whole = times(four)
        for one in four:
            one.end()
        self.table.row(len(set(answers)) == 1, f"{gib(self.size)} of weights, four replicas without gpushare",
                       f"{gib(self.private)} in use, of which contexts 4 x {gib(self.context)}; load {load:.2f} s, ready after {whole:.2f} s")
        self.fleet.settled(self.before + SETTLED)

    def fast(self, load, leader):
        """At most a quarter of the leader's; simulated and small, times mean nothing."""
        return self.fleet.driver == "sim" or load <= leader.load / 4

    def timed(self, what, load, whole):
        without = "{:.2f} s; {:.2f} s".format(*self.alone) if self.alone else ""
        self.table.figure(f"{what}: it loads; is ready after", without, f"{load:.2f} s; {whole:.2f} s")

    def together(self):
        leader = self.start("leader", self.shared, "static").ready()
        followers = [self.start(f"follower-{i}", self.shared).ready() for i in (1, 2, 3)]
        good = all(answer == self.reference for answer in sums([leader] + followers))
        in_use, smi = self.fleet.used() - self.before, self.fleet.smi()
        limit = (self.size + 4 * self.context) * 1.02
        load, whole = times(followers)
        row = self.table.row
        row(good, "four replicas with one copy answer as the private ones do", f"sum {self.reference}")
        row(in_use <= limit, "their memory: at most weights + contexts + 2%",
            f"{gib(in_use)} of at most {gib(limit)}; without {gib(self.private or 0)} (nvidia-smi: {gib(smi)} in all)")
        row(self.fast(load, leader), "a follower loads in at most a quarter of the leader's time, verified",
            f"{load:.3f} s of {leader.load:.3f} s ({load / leader.load:.3f}); ready after {whole:.2f} s of {leader.whole:.2f} s")
        self.table.figure(f"memory in use, four replicas with {gib(self.size)} of weights", gib(self.private or 0), gib(in_use))
        self.timed("the first replica", leader.load, leader.whole)
        self.timed("another one, its bytes verified", load, whole)
        return leader, followers

    def trust(self):
        """What verification costs."""
        one = self.start("verify-off", self.trusting).ready()
        good = one.ask("sum") == self.reference
        one.end()
        self.table.row(good, "a follower with verify = off", f"load {one.load:.3f} s, ready after {one.whole:.2f} s")
        self.timed("another one, verify = off", one.load, one.whole)

    def kill(self, leader, followers):
        limit = (self.size + 5 * self.context) * 1.02
        with Peak(self.fleet) as peak:
            leader.kill()
            row = self.table.row
            row(all(answer == self.reference for answer in sums(followers)), "the leader is killed with SIGKILL: the followers go on")
            late = self.start("late", self.shared).ready()
            row(late.ask("sum") == self.reference and self.fast(late.load, leader), "a new replica attaches without loading",
                f"load {late.load:.3f} s, ready after {late.whole:.2f} s")
        most = peak.most - self.before
        row(most <= limit, "all that time there is one copy", f"at most {gib(most)} in use, in {peak.samples} samples")
        self.timed("one that starts after the first was killed", late.load, late.whole)
        return followers + [late]

    def leave(self, members):
        """All end; the weights stay without anybody, are found by one more replica, and are dropped."""
        status = [member.end() for member in members]
        limit = self.size * 1.02 + SETTLED
        in_use = self.fleet.settled(self.before + limit) - self.before
        row = self.table.row
        row(set(status) == {0} and self.size <= in_use <= limit, "all have ended: the weights stay, without any context",
            f"{gib(in_use)} in use, {len(self.fleet.keepers())} keeper")
        again = self.start("again", self.shared).ready()
        row(again.ask("sum") == self.reference, "a replica of nobody's weights", f"load {again.load:.3f} s, ready after {again.whole:.2f} s")
        self.table.figure("memory while no replica runs, keep = forever", "", gib(in_use))
        names = names_of(self.fleet)
        for name in names:
            self.fleet.tool("drop", name)
        row(len(names) == LAYERS and again.ask("sum") == self.reference, "dropped while one uses them: it goes on", f"{len(names)} names")
        again.end()

    def empty(self):
        in_use = self.fleet.settled(self.before + SETTLED) - self.before
        self.table.row(in_use <= SETTLED, "dropped, and the last user gone: the card is as it was", f"{gib(in_use)} more than before")
        files = self.fleet.left()
        keepers = self.fleet.keepers()
        self.table.row(not files and not keepers, "nothing is left in the published directory, and the keeper has ended",
                       f"{len(files)} files, {len(keepers)} keepers" + "".join(f" {path.name}" for path in files[:3]))
        self.table.figure("memory after drop and the last end, more than before", "", gib(in_use))


def copies(fleet, table, size):
    run = Copies(fleet, table, size)
    with table.part("what a context costs"):
        run.measure_context()
    with table.part("four replicas without gpushare"):
        run.without()
    with table.part("four replicas with one copy"):
        leader, members = run.together()
        with table.part("a follower with verify = off"):
            run.trust()
        with table.part("the leader is killed"):
            members = run.kill(leader, members)
        with table.part("all have ended"):
            run.leave(members)
    for member in fleet.members:
        member.kill()
    with table.part("the card is as it was"):
        run.empty()


def other(fleet, table, size):
    """One replica's file differs in one byte: it answers from its own weights, and says so."""
    size = min(size, GIB)
    folder = fleet.room_for(2 * size)
    tool, same, changed = fleet.programs / "weights_static", folder / "weights", folder / "changed"
    fleet.once(tool, "make", same, size, 1)
    shutil.copyfile(same, changed)
    at = size // LAYERS * 7 + size // LAYERS // 2 + 1
    with open(changed, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))
    config = fleet.config("shared", rule("weights", size // LAYERS, upload="once", keep="users"))

    def start(name, path, how="map", config=None):
        return fleet.start(name, [tool, "serve", path, LAYERS, how], config).ready()

    bare = [start("private", same), start("private-changed", changed)]
    expected = sums(bare)
    for one in bare:
        one.end()
    leader = start("leader", same, config=config)
    stranger = start("changed", changed, config=config)
    reader = start("reader", same, "read", config)
    answers = sums([leader, stranger, reader])
    table.row(answers[1] == expected[1], "a replica with other weights (one byte of a layer) answers rightly",
              f"load {stranger.load:.3f} s; {fleet.used() // MIB} MiB in use")
    table.row("share-mismatch" in stranger.findings(), "and it is reported", f"{stranger.findings()}")
    table.row(answers[0] == answers[2] == expected[0] and not leader.findings() and not reader.findings(),
              "the others are as they were, one of them read its file by chunks", f"load {reader.load:.3f} s; leader {leader.load:.3f} s")
    table.row({one.end() for one in (stranger, leader, reader)} == {0}, "they end well")


def read_only(fleet, table, size):
    """Followers that write: by copies, by a kernel; and the token where nobody is preloaded."""
    size = min(size, GIB)
    file = fleet.room_for(size) / "weights"
    fleet.once(fleet.programs / "weights_static", "make", file, size, 1)
    layer = size // LAYERS
    config = fleet.config("read-only", "".join(
        rule("frames", layer, role, program, access="ro", keep="users")
        for role, program in (("export", "weights_static"), ("import", "weights_shared"))))
    leader = fleet.start("leader", [fleet.programs / "weights_static", "serve", file, LAYERS], config).ready()
    words = [fleet.programs / "weights_shared", "serve", file, LAYERS, "attach"]
    reader, writer, kernel = [fleet.start(name, words, config).ready() for name in ("reader", "writer", "kernel")]
    expected = leader.ask("sum")
    table.row(reader.ask("sum") == expected, "importers of a read-only region read it")
    codes = [writer.ask("copy"), writer.ask("set")]
    table.row(codes == ["1", "1"], "a copy and a memset into it are refused (1)", f"codes {codes[0]} and {codes[1]}")
    table.row("write-read-only" in writer.findings(), "and reported", f"{writer.findings()}")
    table.row(sums([leader, reader, writer]) == [expected] * 3, "everybody's bytes are as they were")
    code = kernel.ask("kernel")
    if code == "-1":
        print("skip", "a kernel that writes into it", "no kernels here", sep="\t")
    else:
        table.row(code == "700", "a kernel that writes into it loses its own context (700)", f"code {code}; reported: {kernel.findings()}")
        table.figure("a kernel writes into a read-only region", "", f"its process gets {code}; the others go on")
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
    table.figure("a token opened without the shim", "", f"error {bare}")


def torch(fleet, table, _):
    """A PyTorch server: load_state_dict, then forward passes."""
    if fleet.driver == "sim" or importlib.util.find_spec("torch") is None:
        print("skip", "PyTorch with one copy of a state dict", "no PyTorch, or no card", sep="\t")
        return
    size = LAYERS * 64 * MIB
    folder = fleet.room_for(2 * size)
    python = [sys.executable, TORCH]
    fleet.once(*python, "make", folder / "a", LAYERS, 1, folder / "b", LAYERS, 2, timeout=80)
    config = fleet.config("shared", rule("torch", 0, program="python3*", size=">=10MiB", index=f"0..{LAYERS - 1}",
                                         upload="once", keep="users"))

    def start(name, which, config=None):
        return fleet.start(name, [*python, "serve", folder / which, LAYERS], config)

    before = fleet.used()
    bare = [start("private-a", "a"), start("private-b", "b")]
    expected = [one.ready().ask("forward") for one in bare]
    private = fleet.used() - before
    context = private // 2 - size
    for one in bare:
        one.end()
    fleet.settled(before + SETTLED)
    leader = start("leader", "a", config).ready()
    followers = [start("follower-1", "a", config), start("follower-2", "a", config)]
    answers = [leader.ask("forward")] + [one.ready().ask("forward") for one in followers]
    in_use, limit = fleet.used() - before, (size + 3 * context) * 1.02
    stranger = start("other-weights", "b", config).ready()
    answers.append(stranger.ask("forward"))
    load, whole = times(followers)
    table.row(answers[:3] == [expected[0]] * 3, "PyTorch: three replicas answer as the private one does", answers[0][:60])
    table.row(in_use <= limit, f"PyTorch: memory of three, {gib(size)} of weights, at most one copy + contexts + 2%",
              f"{gib(in_use)} of at most {gib(limit)}; two private ones {gib(private)}")
    table.row(answers[3] == expected[1] and expected[1] != expected[0], "PyTorch: a replica with another state dict answers rightly",
              f"load {stranger.load:.2f} s")
    table.row("share-mismatch" in stranger.findings(), "PyTorch: and it is reported", f"{stranger.findings()}")
    reported = [one.findings() for one in [leader] + followers]
    table.row(not any(reported), "PyTorch: of the others nothing is reported", f"{reported}")
    table.row({one.end() for one in [leader, stranger] + followers} == {0}, "PyTorch: they end well",
              f"load_state_dict and to the card: {leader.load:.2f} s, followers {load:.2f} s, private {bare[0].load:.2f} s")
    each = private // 2 # a replica without gpushare
    table.figure("PyTorch: memory in use, three replicas", f"{gib(3 * each)} (3 x {gib(each)})", gib(in_use))
    table.figure("PyTorch: load of the leader; of a follower", f"{bare[0].load:.2f} s", f"{leader.load:.2f} s; {load:.2f} s")


STEPS = {"copies": copies, "other": other, "read-only": read_only, "torch": torch}


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
