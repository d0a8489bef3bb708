#!/usr/bin/env python3
"""tests/soak/suspend_kills.py [--driver sim|gpu] [--turns N] [--seed N] BUILD: kills the parties of a suspension at random moments.

Two replicas merge 32 MiB, a producer and a consumer share a region of the keeper's. In each turn one of them is suspended, and
resumed, while the tool, the keeper, its stand-by, both, the process itself or its exporter is killed by SIGKILL at a random moment
of that. Now and then the other replica sleeps, too, so that the block leaves the card and comes back with one of them.
Both keepers are killed where another process can give the next one what is shared: a merged block that somebody runs with. Or the keepers are
stopped for half a second. Now and then the consumer has memory of the producer's open by a token: both are refused then. On the
simulator another program takes all of the card now and then: a resume must be refused. Afterwards `resume` must bring back whoever lives, everybody's bytes must be right, and whoever has ended must have been killed here. At
the end nothing may be left: no file, no memory, no keeper. The exit status is 0 then.
"""
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "common"))
import trial
from patience import patient

CONFIG = """[gpushare]
suspend = on
vmm_ipc = on
log = {folder}/log.%p
[region weights]
program = replica
size = 32MiB
index = *
role = merge
quiet = 0
[region frames]
program = producer
size = 16MiB
role = export
backing = vmm
keep = users
[region frames]
program = consumer
size = 16MiB
role = import
backing = vmm
"""
SIZE, SEED = 32 << 20, 7
OWN = ["vreserve at 8388608", "vcreate h 4194304", "vmap at 0 4194304 h", "vaccess at 0 4194304 3", "fill at 0x44 64", "vrelease h"]
PATIENCE = patient(60)  # seconds, for what hangs


class Hangs(Exception):
    pass


class Puppet:
    """A program (tests/apps/puppet/) that is told what to do."""

    def __init__(self, world, name, steps, preload=True):
        self.name, self.killed = name, False
        executable = world.folder / "bin" / name
        if not executable.exists():
            executable.parent.mkdir(exist_ok=True)
            shutil.copy(world.build / "tests/apps/puppet", executable)
        environment = world.environment | ({"LD_PRELOAD": str(world.build / "libgpushare.so")} if preload else {})
        self.process = subprocess.Popen([executable], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=environment)
        for step in steps:
            if not self.ask(step).startswith("0"):
                raise Hangs(f"{name}: {step} failed")

    def send(self, line):
        self.process.stdin.write((line + "\n").encode())
        self.process.stdin.flush()

    def receive(self):
        line = trial.answer(self.process, PATIENCE)
        if line is None:
            raise Hangs(f"{self.name} {self.process.pid} does not answer")
        return line

    def ask(self, line):
        try:
            self.send(line)
        except BrokenPipeError:
            return ""
        return self.receive()

    def lives(self):
        return self.process.poll() is None

    def kill(self):
        self.killed = True
        self.process.kill()
        self.process.wait()

    def end(self):
        self.send("return")
        return self.process.wait(PATIENCE)


class World:
    def __init__(self, build, driver, memory="1GiB"):
        self.build, self.driver, self.handle, self.refused = build, driver, None, 0
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="suspend-kills."))
        self.shared = pathlib.Path(tempfile.mkdtemp(prefix="suspend-kills.", dir="/dev/shm"))
        (self.folder / "conf").write_text(CONFIG.format(folder=self.folder))
        self.environment = os.environ | {
            "GPUSHARE_CONFIG": str(self.folder / "conf"), "GPUSHARE_DIR": str(self.shared)}
        if driver == "sim":
            self.environment |= {"GPUSHARE_SIM_ROOT": f"@suspend-kills-{os.getpid()}", "LD_LIBRARY_PATH": str(build / "sim"),
                                 "GPUSHARE_SIM_MEMORY": memory, "GPUSHARE_SIM_BUS": "2000", "GPUSHARE_SIM_CHECKPOINT": "500"}
        self.puppets = {}

    def tool(self, *words):
        return subprocess.run([self.build / "gpushare", *words], env=self.environment, capture_output=True, text=True, check=False,
                              timeout=2 * PATIENCE)

    def keepers(self):
        return trial.keepers(self.shared)

    def start(self):
        """Whoever is missing starts. Who shares with somebody starts with it, for a region goes with its exporter."""
        for name, other in ("a", "b"), ("b", "a"):
            if name not in self.puppets:
                self.puppets[name] = Puppet(self, "replica", [
                    f"malloc w {SIZE}", f"upload w 0 {SIZE} {SEED} sync", "malloc own 8388608", f"fill own 0x{ord(name):02x} 8388608"])
        if "p" not in self.puppets or "c" not in self.puppets:
            for name in "c", "p":
                if name in self.puppets:
                    self.puppets.pop(name).end()
            self.share()

    def share(self):
        """Producer and consumer. Where the keeper is late, as beside its own death, the buffer is private: once more."""
        for _ in range(10):
            self.puppets["p"] = Puppet(self, "producer", ["malloc f 16777216", "fill f 0x33 16777216"])
            self.puppets["c"] = Puppet(self, "consumer", ["malloc f 16777216"])
            if self.puppets["c"].ask("read f 4096 2") == "0 3333":
                for step in OWN:
                    self.puppets["p"].ask(step)
                self.handle = self.puppets["p"].ask("get at").split()[1]
                return
            for name in "c", "p":
                self.puppets.pop(name).end()
        raise SystemExit("producer and consumer do not share")

    def check(self):
        """Everybody's bytes. What is wrong, as a list."""
        wrong = []
        for name, puppet in list(self.puppets.items()):
            questions = {"a": [(f"expect w 0 {SIZE} {SEED}", "0 same"), ("read own 4096 2", "0 6161")],
                         "b": [(f"expect w 0 {SIZE} {SEED}", "0 same"), ("read own 4096 2", "0 6262")],
                         "p": [("read f 4096 2", "0 3333")], "c": [("read f 4096 2", "0 3333")]}[name]
            for question, answer in questions:
                given = puppet.ask(question) if puppet.lives() else ""
                if given != answer and puppet.lives():
                    wrong.append(f"{puppet.name} {puppet.process.pid}: {question}: {given!r}, not {answer!r}")
            if not puppet.lives():
                if not puppet.killed:
                    wrong.append(f"{puppet.name} {puppet.process.pid} has ended: {puppet.process.returncode}")
                del self.puppets[name]
        return wrong

    def end(self):
        """What is left, as a list."""
        left = []
        for puppet in self.puppets.values():
            if puppet.end() != 0:
                left.append(f"{puppet.name} ended badly")
        self.tool("gc")
        trial.eventually(lambda: not self.keepers() and not self.files(), PATIENCE, 0.1)
        left += [f"a keeper: {pid}" for pid in self.keepers()] + self.files()
        trial.send(self.keepers(), signal.SIGKILL)
        shutil.rmtree(self.shared)
        shutil.rmtree(self.folder)
        return left

    def files(self):
        return [str(path) for part in ("procs", "regions", "names") for path in (self.shared / "default" / part).glob("*")]


def open_token(world):
    """While it is open neither is suspended. What went wrong, as a list."""
    c = world.puppets["c"]
    opened, read = c.ask(f"open q {world.handle}"), c.ask("read q 0 1")
    wrong = [] if read == "0 44" else [f"open of a token: {opened}, {read}"]
    for name in "c", "p":
        result = world.tool("suspend", str(world.puppets[name].process.pid))
        world.refused += 1
        if result.returncode != 1 or "by a token" not in result.stderr:
            wrong.append(f"suspend of {name}, whose token is open: {result.returncode} {result.stdout}{result.stderr}")
    return wrong + ([] if c.ask("close q") == "0" else ["a token was not closed"])


def fill_card(world, pid):
    """A resume is refused while another program has all memory. What went wrong, as a list."""
    hog, count = Puppet(world, "hog", []), 0
    for size in 64 << 20, 2 << 20:
        while hog.ask(f"malloc m{count} {size}").startswith("0"):
            count += 1
    result = world.tool("resume", pid)
    world.refused += 1
    hog.kill()
    refused = result.returncode == 1 and "stays suspended" in result.stderr
    return [] if refused else [f"resume of {pid} without room: {result.returncode} {result.stdout}{result.stderr}"]


def kill(world, party, target, tool):
    if party == "tool":
        tool.kill()
    elif party == "target":
        target.kill()
    elif party == "exporter":
        world.puppets["p"].kill()
    elif party == "both":
        trial.send(world.keepers(), signal.SIGSTOP)  # a stopped one makes no other
        trial.send(world.keepers(), signal.SIGKILL)
    elif party == "stopped":
        pids = world.keepers()
        trial.send(pids, signal.SIGSTOP)
        threading.Timer(0.5, trial.send, (pids, signal.SIGCONT)).start()
    elif party != "nobody":
        keepers = sorted(world.keepers())
        trial.send(keepers[:1] if party == "keeper" else keepers[-1:], signal.SIGKILL)


def turn(world, chance):
    """What went wrong, as a list."""
    world.start()
    name = chance.choice(list(world.puppets))
    if chance.random() < 0.3 and (wrong := open_token(world)):
        return wrong
    parties = ["tool", "tool", "keeper", "stand-by", "target", "nobody", "stopped"]
    # where both keepers were killed just now it is refused
    sleeper = world.puppets["ab".replace(name, "")] if name in "ab" and chance.random() < 0.5 else None
    both = [] if sleeper else ["both"]
    target, party = world.puppets[name], chance.choice(parties + {"c": ["exporter"], "p": []}.get(name, both))
    pid = str(target.process.pid)
    if sleeper and world.tool("suspend", str(sleeper.process.pid)).returncode != 0:
        sleeper = None  # as above
    verb = chance.choice(["suspend", "resume"])
    if verb == "resume":
        suspended = world.tool("suspend", pid).returncode == 0  # or refused, as where both keepers were killed
        if suspended and world.driver == "sim" and name in "ab" and chance.random() < 0.3 and (wrong := fill_card(world, pid)):
            return wrong
    started = time.monotonic()
    with subprocess.Popen([world.build / "gpushare", verb, pid], env=world.environment, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as tool:
        time.sleep(chance.uniform(0, 0.12 if world.driver == "sim" else 0.7))
        kill(world, party, target, tool)
        try:
            tool.wait(2 * PATIENCE)
        except subprocess.TimeoutExpired:
            tool.kill()
            return [f"{verb} hangs after the {party} was killed"]
    for one in chance.sample([target] + [sleeper] * bool(sleeper), 1 + bool(sleeper)):
        if not one.lives():
            continue
        result = world.tool("resume", "--wait", str(one.process.pid))
        if result.returncode != 0 and one.lives():
            return [f"resume of {one.name} after {verb}, {party} killed after {time.monotonic() - started:.3f} s: {result.stderr}"]
    return [f"{verb} of {target.name} {pid}, {party} killed: {one}" for one in world.check()]


def main():
    parser = trial.options(__doc__)
    parser.add_argument("--driver", choices=["sim", "gpu"], default="sim")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    chance, world, wrong = random.Random(options.seed), World(options.build, options.driver), []
    print(f"seed {options.seed}", flush=True)
    done = 0
    try:
        for done in range(1, options.turns + 1):
            wrong += turn(world, chance)
            if wrong:
                break
    except (Hangs, subprocess.TimeoutExpired) as hang:
        wrong.append(str(hang))
    if wrong:
        print(f"in turn {done}; logs are in {world.folder}")
        for puppet in world.puppets.values():
            puppet.kill()
    else:
        wrong += world.end()
    print("\n".join(wrong) or f"{done} turns, {world.refused} refused, nothing lost, nothing left")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
