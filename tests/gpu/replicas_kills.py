"""Replicas and keeper are killed at random for a while; each replica changes its weights, puts them back and checks
a sum after each step. A part of replicas.py."""
import os
import queue
import random
import signal
import time

from fleet import MIB, NOISE, merge_rule

REPLICAS = 4


class Life:
    """A replica from its start to its end."""

    def __init__(self, run, slot, number):
        self.killed, self.said, self.steps = False, [], 0
        self.replica = run.fleet.start(f"{slot}-{number}", [run.tool, "stress", run.file, 8 * number + slot + 1, "layers=3"],
                                       run.configs[slot % len(run.configs)])

    def hear(self):
        try:
            while True:
                _, line = self.replica.lines.get_nowait()
                self.said.append(line or "")
        except queue.Empty:
            pass
        self.steps = max([self.steps] + [int(line.split()[1]) for line in self.said if line.startswith("steps ")])
        return self.said

    def kill(self):
        """False: it has ended before by itself."""
        alive = self.replica.process.poll() is None
        self.replica.kill()
        time.sleep(0.02) # what it said last
        self.hear()
        return alive

    def trouble(self):
        return [line for line in self.hear() if line and not line.startswith(("ready", "steps", "ended"))]


class Run:
    def __init__(self, fleet, size):
        self.fleet, self.tool = fleet, fleet.programs / "weights_shared"
        self.file = fleet.room_for(size) / "weights"
        fleet.once(self.tool, "make", self.file, size, 1)
        self.configs = [fleet.config(f"quiet-{quiet}", merge_rule("weights_*", quiet=quiet)) for quiet in ("200ms", "0")]
        self.before = fleet.used()
        self.lives = [Life(self, slot, 0) for slot in range(REPLICAS)]
        self.deaths, self.keepers, self.steps, self.trouble, self.merged = 0, 0, 0, [], 0

    def kill_keeper(self):
        """It or its stand-by: the other goes on."""
        found = self.fleet.keepers()
        if found:
            os.kill(random.choice(found), signal.SIGKILL)
            self.keepers += 1

    def collect(self, life):
        self.steps += life.steps
        self.trouble += life.trouble()
        self.fleet.members.remove(life.replica)
        if not life.trouble():
            for path in (life.replica.log, life.replica.log.with_suffix(".out")):
                path.unlink(missing_ok=True)

    def kill_replica(self, slot):
        life = self.lives[slot]
        if not life.kill():
            self.trouble.append(f"a replica ended by itself with {life.replica.process.returncode}")
        self.collect(life)
        self.deaths += 1
        self.lives[slot] = Life(self, slot, self.deaths)

    def turn(self, dice):
        time.sleep(dice.uniform(0.1, 1.5))
        self.merged = max(self.merged, self.fleet.merged())
        if dice.random() < 0.2:
            self.kill_keeper()
        else:
            self.kill_replica(dice.randrange(REPLICAS))

    def end(self):
        """The statuses of those that live to the end."""
        time.sleep(2) # the last ones begin
        status = [life.replica.end() for life in self.lives]
        for life in self.lives:
            time.sleep(0.05)
            life.hear()
            self.collect(life)
        return status


def kills(fleet, table, _):
    seconds = float(os.environ.get("KILL_SECONDS") or (30 if fleet.driver == "gpu" else 10))
    run = Run(fleet, (192 if fleet.driver == "gpu" else 12) * MIB)
    dice, until = random.Random(int(os.environ.get("SEED") or 1)), time.monotonic() + seconds
    while time.monotonic() < until and not run.trouble:
        run.turn(dice)
    status = run.end()
    table.row(not run.trouble and run.steps > 0, f"replicas and keeper are killed for {seconds:g} s: every sum is right after every step",
              f"{run.deaths} replicas and {run.keepers} keepers killed, {run.steps} steps" + "".join(f"; {what}" for what in run.trouble[:3]))
    table.row(run.merged > 0, "and there was something merged", f"{run.merged // MIB} MiB at most")
    table.row(set(status) == {0}, "those that were left end well", f"{status}")
    files, keepers = fleet.left(), fleet.keepers()
    table.row(not files and not keepers, "no file and no keeper is left",
              f"{len(files)} files, {len(keepers)} keepers" + "".join(f" {path.name}" for path in files[:3]))
    used = fleet.stable_use(run.before + NOISE) - run.before
    table.row(used <= NOISE, "and no memory", f"{used // MIB} MiB more than before")
    table.figure(f"killed at random in {seconds:g} s: {run.deaths} replicas, {run.keepers} keepers", "steps with a wrong sum", "",
                 f"{len(run.trouble)} of {run.steps}")
