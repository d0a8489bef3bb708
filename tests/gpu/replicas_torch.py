"""PyTorch with merged memory, and a program whose kernel writes into it. A part of replicas.py."""
import importlib.util
import os
import pathlib
import statistics
import sys
import time

from fleet import GIB, MIB, gib, merge_rule, seconds, sums

SERVER = pathlib.Path(__file__).parent / "programs" / "torch_server.py"
LAYERS = {"model": 24, "serve": 12}


def missing(fleet, table, name):
    if fleet.driver == "gpu" and importlib.util.find_spec("torch"):
        return False
    table.skip(name, "no card" if fleet.driver == "sim" else "no PyTorch")
    return True


class Models:
    """A state dict, and servers of it. They are started together, for each takes seconds, and load at a word."""

    def __init__(self, fleet, step):
        self.fleet, self.layers = fleet, LAYERS[step]
        self.file = fleet.room_for(2 * GIB) / "state"
        self.size = int(fleet.once(sys.executable, SERVER, "make", self.file, self.layers, timeout=60))

    def start(self, name, config=None):
        return self.fleet.start(name, [sys.executable, SERVER, "serve", self.file, self.layers], config)

    def group(self, name, config, count):
        return [self.start(f"{name}-{i}", config) for i in range(count)]


class Group:
    """Replicas that have loaded one after the other: the memory that they took, times and answers."""

    def __init__(self, models, members, threads=1, timeout=0.0, aim=0):
        self.members, fleet = members, models.fleet
        before = fleet.used()
        self.loads, self.answers = [], []
        for member in members:
            self.loads.append(float(member.ask(f"load {threads}")))
            self.answers.append(member.ask("forward"))
        self.in_use = fleet.at_rest(before + aim, timeout) - before
        self.answers += [member.ask("forward") for member in members]

    def load(self, first=0):
        return statistics.median(self.loads[first:])

    def end(self):
        return {member.end() for member in self.members}


def model(fleet, table, _):
    """A language model with an odd vocabulary: rules of three lines and learned ones, one thread and several."""
    if missing(fleet, table, "PyTorch: a model with an odd vocabulary"):
        return
    models = Models(fleet, "model")
    rules = {"quiet = 3s": "3s", "quiet = 0": 0}
    configs = {name: fleet.config(name.replace(" ", ""), merge_rule("python*", quiet=quiet)) for name, quiet in rules.items()}
    wanted = [(f"{name}{', 4 threads' if threads > 1 else ''}", configs[name], threads) for threads in (1, 4) for name in rules]
    bare = models.group("bare", None, 3)
    waiting = [models.group(f"merged-{number}", config, 3) for number, (_, config, _) in enumerate(wanted)]
    for member in bare + sum(waiting, []):
        member.ready(100)
    private = Group(models, bare)
    private.end()
    for (name, _, threads), members in zip(wanted, waiting):
        with table.part(f"PyTorch, {name}"):
            one_group(models, table, name, members, threads, private)


def learned_model(fleet, table):
    if missing(fleet, table, "PyTorch, a learned rule"):
        return
    models = Models(fleet, "model")
    rules = fleet.learn("torch", [sys.executable, SERVER, "serve", models.file, models.layers], 25, "load 1\nforward\n")
    bare, members = models.group("bare", None, 3), models.group("learned", rules, 3)
    for member in bare + members:
        member.ready(100)
    private = Group(models, bare)
    private.end()
    one_group(models, table, "learned", members, 1, private)


def one_group(models, table, name, members, threads, private):
    count, size = len(members), models.size
    beside = private.in_use // 3 - size # activations, workspaces, what the allocator rounds up
    aim = size + count * beside + int(0.06 * (count - 1) * size)
    group = Group(models, members, threads, 12, aim)
    further = (group.in_use - size - count * beside) / (count - 1)
    table.row(set(group.answers) == set(private.answers) and len(set(private.answers)) == 1,
              f"PyTorch, {name}: {count} replicas answer as bare ones do", group.answers[0])
    table.row(further <= 0.06 * size, f"PyTorch, {name}: each further replica takes at most 6% of the weights",
              f"{gib(further)}, {further / size:.1%} of {gib(size)}; {gib(group.in_use)} of {count} besides contexts, bare {gib(private.in_use)}")
    ratio = group.load(1) / private.load()
    if name in ("quiet = 0", "learned"):
        table.goal(ratio <= 1 / 3, f"PyTorch, {name}: a further one loads in a third of the bare time",
                   f"{group.load(1):.3f} s, bare {private.load():.3f} s ({ratio:.2f}); the first one {group.loads[0]:.3f} s")
    else:
        table.goal(threads > 1 or ratio <= 1.1, f"PyTorch, {name}: it loads within 1.1 of the bare time",
                   f"{group.load(1):.3f} s, bare {private.load():.3f} s by one thread ({ratio:.2f})")
    reported = [member.findings() for member in members]
    table.row(group.end() == {0} and not any(reported), f"PyTorch, {name}: they end well, and nothing is reported", f"{reported}")
    models.fleet.stable_use(0, 1)
    program = f"PyTorch, {gib(size)} of weights" + (", loaded by 4 threads in random order" if threads > 1 else "")
    program, at_once = program + (", a learned rule" if name == "learned" else ""), not name.startswith("quiet = 3s")
    table.figure(program, f"memory of {count} replicas, without contexts", gib(private.in_use), gib(group.in_use), at_once)
    table.figure(program, "of the weights, a further one takes", "100 %", f"{100 * further / size:.1f} %", at_once)
    table.figure(program, "a further one loads in", seconds(private.loads), seconds(group.loads[1:]), at_once)


# --- under load ---

class Work:
    """What a server says of its work, or that it died of it."""

    def __init__(self, text):
        words = text.split(" ", 5)
        self.requests, self.bad, self.graphs = map(int, words[:3])
        self.answers, self.worst, self.error = words[3], float(words[4]), words[5]

    def good(self, bare):
        return self.error == "none" and not self.bad and not self.graphs and self.answers == bare.answers

    def __str__(self):
        return f"{self.requests} requests, {self.bad} and {self.graphs} graphs differ, worst {self.worst:.0f} ms, error {self.error}"


def serve(fleet, table, size):
    """The broadest rule, on a server that does all that servers do."""
    with table.part("a kernel writes into merged memory"):
        kernel_write(fleet, table, min(size, 256 * MIB))
    if missing(fleet, table, "PyTorch under load, with the broadest rule"):
        return
    seconds = float(os.environ.get("SERVE_SECONDS") or 40)
    models = Models(fleet, "serve")
    config = fleet.config("broad", merge_rule("python*") if seconds >= 120 else merge_rule("python*", quiet="3s"))
    learned = fleet.config("learned", merge_rule("python*", quiet=0))
    bare = models.start("bare")
    servers = [models.start("broad-0", config), models.start("broad-1", config), models.start("learned", learned)]
    for one in [bare] + servers:
        one.ready(100).ask("load 1")
    for one in [bare] + servers:
        one.process.stdin.write(f"work {seconds if one is not bare else seconds / 2}\n")
    expected = Work(finish(bare, seconds))
    bare.end()
    table.row(expected.good(expected), "PyTorch under load: a bare one answers alike all the time", f"{expected}")
    for one, which in zip(servers, (config, config, learned)):
        with table.part(f"PyTorch under load, {one.name}"):
            judge(models, table, one, which, expected, seconds)
    table.row(fleet.merged() > models.size // 2, "PyTorch under load: it was merged meanwhile", gib(fleet.merged()))
    for one in servers:
        one.end()


def finish(member, seconds):
    return member.line(seconds + 60)[1].split(" ", 1)[1]


def judge(models, table, one, config, expected, seconds):
    seen = Work(finish(one, seconds))
    if "illegal" not in seen.error or one.name == "learned":
        table.row(seen.good(expected), f"PyTorch under load, {one.name}: it answers as a bare one does", f"{seen}; reported {one.findings()}")
        return
    details = [report["detail"] for report in one.reports() if report["finding"] == "merge-written"]
    one.kill()
    table.row(len(details) == 1 and details[0], f"PyTorch under load, {one.name}: it died of 700, and a report names the allocation", f"{details}")
    again = models.start(f"{one.name}-again", config).ready(100)
    again.ask("load 1")
    again.process.stdin.write(f"work {seconds}\n")
    seen = Work(finish(again, seconds))
    table.row(seen.good(expected), f"PyTorch under load, {one.name}: started again, it runs on", f"{seen}; reported {again.findings()}")


def kernel_write(fleet, table, size):
    """It dies once, others do not notice, and the next one does not die of it."""
    folder, tool = fleet.room_for(size), fleet.programs / "weights_static"
    fleet.once(tool, "make", folder / "weights", size, 1)
    config = fleet.config("kernel-write", merge_rule("weights_*", quiet="1s"))
    words = [tool, "serve", folder / "weights", "layers=3"]
    fleet.start("kernel-write-context", words).ready().end()
    other, writer = [fleet.start(name, words, config).ready() for name in ("beside", "writer")]
    right = other.ask("sum")
    wait_for_merge(fleet, size)
    code = writer.ask("kernel")
    named = [report["detail"] for report in writer.reports() if report["finding"] == "merge-written"]
    table.row(code == "700" and len(named) == 1 and "of [region weights]" in named[0],
              "a kernel writes into merged memory: 700, and merge-written names the allocation", f"code {code}; {named}")
    writer.kill()
    again = fleet.start("writer-again", words, config).ready()
    sums([again])
    time.sleep(3)
    codes = [again.ask("kernel"), again.ask("kernel")]
    table.row(codes == ["0", "0"] and again.ask("sum") != right and not again.findings(),
              "started again, it writes and runs on", f"codes {' '.join(codes)}, reported {again.findings()}")
    table.row(other.ask("sum") == right and not other.findings(), "the one beside it has its own bytes all the time")
    table.row({other.end(), again.end()} == {0}, "they end well")
    table.figure("a kernel writes into merged memory", "its process gets", "", "700 once; started again it runs on")
    fleet.stable_use(0, 0.5)


def wait_for_merge(fleet, size, timeout=15):
    until = time.monotonic() + timeout
    while fleet.merged() < size and time.monotonic() < until:
        time.sleep(0.1)
    fleet.stable_use(0, 1) # the second one's blocks are replaced
