"""What transformers loads: one segment, into which threads copy tensors in another order each time. A part of replicas.py."""
import importlib.util
import json
import pathlib
import statistics
import sys

from fleet import GIB, MIB, gib, merge_rule, seconds

SERVER = pathlib.Path(__file__).parent / "programs" / "transformers_server.py"
PAGE = 2 * MIB
EVEN, ODD, PADDED = 32768, 50257, 50304 # words of the vocabulary: all large tensors are multiples of 2 MiB, or two are not
IN_ORDER = ["env", "HF_DEACTIVATE_ASYNC_LOAD=1"]
ROUNDED = ["env", "PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:8"]
RULES = {"quiet = 0": 0, "quiet = 3s": "3s"}


def missing(fleet, table, name):
    if fleet.driver == "gpu" and all(importlib.util.find_spec(one) for one in ("torch", "transformers", "safetensors", "accelerate")):
        return False
    table.skip(name, "no card" if fleet.driver == "sim" else "no transformers, safetensors or accelerate")
    return True


class Llama:
    """A folder with a model, and servers of it. They are started together, and load at a word."""

    def __init__(self, fleet, vocabulary):
        self.fleet, self.folder = fleet, fleet.room_for(3 * GIB) / "model"
        self.size = int(fleet.once(sys.executable, SERVER, "make", self.folder, vocabulary, timeout=80).split()[-1])

    def group(self, name, config, count, before=()):
        return [self.fleet.start(f"{name}-{i}", [*before, sys.executable, SERVER, "serve", self.folder], config) for i in range(count)]


class Loaded:
    """Replicas that have loaded one after the other, and what all of them take besides contexts."""

    def __init__(self, llama, members, timeout):
        fleet, before = llama.fleet, llama.fleet.used()
        self.loads = [float(one.ask("load", 60)) for one in members]
        self.answers = {one.ask("forward") for one in members}
        self.in_use = fleet.at_rest(0, timeout) - before
        self.answers |= {one.ask("forward") for one in members}
        self.places = [one.ask("places") for one in members]


def allowed(places):
    """Of the weights' bytes, what each further replica could share: whole pages of tensors at a distance at which
    one that loaded before has them, too."""
    known, could = set(), []
    for one in places:
        tensors = list(enumerate(tuple(map(int, part.split(":"))) for part in one.split()))
        could.append(sum((size - -distance % PAGE) // PAGE * PAGE for number, (size, distance) in tensors
                         if size >= 2 * PAGE and (number, distance) in known))
        known |= {(number, distance) for number, (_, distance) in tensors}
    return could[1:]


def private(fleet, members):
    """What stays private in each of them, and why."""
    shown = [json.loads(fleet.tool("show", "--json", one.process.pid))[0]["private"] for one in members]
    return "; ".join(", ".join(f"{gib(part['bytes'])} {part['reason']}" for part in one) for one in shown)


def judge(llama, table, name, members, bare, share, timeout):
    """`share`: of what the tensors' distances allow, so much of each further replica must be merged."""
    group, count = Loaded(llama, members, timeout), len(members)
    beside = bare.in_use // len(bare.places) - llama.size # activations, workspaces, what the allocator rounds up
    merged = 1 - (group.in_use - llama.size - count * beside) / ((count - 1) * llama.size)
    could = statistics.mean(allowed(group.places)) / llama.size
    table.row(group.answers == bare.answers, f"{name}: {count} replicas answer as bare ones do", f"{group.answers}")
    enough = merged >= share * could
    table.row(enough, f"{name}: at least {share:.0%} of what can be is merged",
              f"{merged:.1%} of each further one's {gib(llama.size)}; distances allow {could:.1%}; {gib(group.in_use)} of {count} besides contexts"
              + ("" if enough else f"; private: {private(llama.fleet, members)}"))
    reported = [one.findings() for one in members]
    table.row({one.end() for one in members} == {0} and not any(reported), f"{name}: they end well, and nothing is reported", f"{reported}")
    llama.fleet.stable_use(0, 1)
    return group, merged


def loads_fast(table, name, group, bare):
    ratio = statistics.median(group.loads[1:]) / statistics.median(bare.loads)
    table.goal(ratio <= 0.4, f"{name}: a further one loads in at most 0.4 of the bare time",
               f"{seconds(group.loads[1:])}, bare {seconds(bare.loads)} ({ratio:.2f}); the first one {group.loads[0]:.2f} s")


def one_model(fleet, table, title, vocabulary, kinds):
    """kinds: name, words before the program, replicas, quiet, least share of what can be merged."""
    if missing(fleet, table, title):
        return
    llama = Llama(fleet, vocabulary)
    configs = {quiet: fleet.config(quiet.replace(" ", ""), merge_rule("python*", quiet=RULES[quiet])) for quiet in RULES}
    waiting = [llama.group("bare", None, 3)]
    waiting += [llama.group(f"merged-{number}", configs[quiet], count, before) for number, (_, before, count, quiet, _) in enumerate(kinds)]
    for member in sum(waiting, []):
        member.ready(80)
    bare = Loaded(llama, waiting[0], 1)
    for member in waiting[0]:
        member.end()
    for (what, _, _, quiet, share), members in zip(kinds, waiting[1:]):
        name = f"{title}, {what}{quiet}"
        with table.part(name):
            group, merged = judge(llama, table, name, members, bare, share, 4 if quiet == "quiet = 0" else 14)
            if quiet == "quiet = 0":
                loads_fast(table, name, group, bare)
            figures(table, f"{title}, {gib(llama.size)}" + (f", {what.strip(', ')}" if what else ""), group, bare, merged, quiet == "quiet = 0")


def figures(table, program, group, bare, merged, at_once):
    count = len(group.places)
    table.figure(program, f"memory of {count} replicas, without contexts", gib(bare.in_use // len(bare.places) * count), gib(group.in_use), at_once)
    table.figure(program, "of the weights, a further one takes", "100 %", f"{100 * (1 - merged):.1f} %", at_once)
    table.figure(program, "a further one loads in", seconds(bare.loads), seconds(group.loads[1:]), at_once)


def even(fleet, table, _):
    """A Llama whose large tensors are multiples of 2 MiB."""
    one_model(fleet, table, "transformers, a Llama", EVEN, [("", [], 4, "quiet = 3s", 0.95), ("", [], 4, "quiet = 0", 0.95)])


def odd(fleet, table, _):
    """One whose vocabulary is none, and what `gpushare learn` advises: the same with tensors in order, with sizes that the
    allocator rounds up, and with a vocabulary that is padded."""
    one_model(fleet, table, "transformers, a vocabulary of 50,257", ODD,
              [("", [], 3, "quiet = 0", 0.9), ("in order, ", IN_ORDER, 3, "quiet = 0", 0.95), ("rounded up, ", ROUNDED, 3, "quiet = 0", 0.9)])
    one_model(fleet, table, "transformers, a vocabulary of 50,304", PADDED, [("", [], 3, "quiet = 0", 0.9)])
