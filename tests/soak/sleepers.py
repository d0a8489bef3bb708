"""Workers of soak.py that are suspended and resumed, by tools that are killed now and then."""
import collections
import re
import signal
import subprocess
import time

# Of what the tool says of a process that was not suspended.
REFUSED = re.compile(r"cannot be suspended: |was not suspended|has ended|suspends or resumes|no process has the pid|"
                     r"does not run with suspend = on|has not answered in time|"
                     r"cannot tell")
LATE = "has not answered in time"


class Sleepers:
    """All are named by their pid. `at` is when its next tool starts; None: one is at work."""

    def __init__(self, soak, timeout):
        self.soak, self.timeout, self.random = soak, timeout, soak.random
        self.all, self.refusals, self.keeper_killed, self.ever = {}, collections.Counter(), 0, set()

    def tool(self, *words):
        return subprocess.Popen([self.soak.build / "gpushare", *words], env=self.soak.environment, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def begin(self, pid, verb, at=0.0, first=None):
        self.all[pid] = {"verb": verb, "at": at, "tool": None, "begun": 0.0, "kill": None, "first": first}

    def start(self, pid):
        one = self.all[pid]
        words = ("--timeout=2s",) if one["verb"] == "suspend" else ("--wait", "--timeout=10s")
        one |= {"at": None, "tool": self.tool(one["verb"], *words, str(pid)), "begun": time.monotonic(),
                "kill": time.monotonic() + self.random.uniform(0, 0.1) if self.random.random() < 0.15 else None}

    def look(self, workers):
        """Goes on with all, and begins with one more."""
        self.go_on(workers)
        awake = [pid for pid in workers if pid not in self.all and pid not in self.soak.stopped]
        if awake and self.random.random() < 0.5:
            self.begin(self.random.choice(awake), "suspend")

    def go_on(self, workers):
        now = time.monotonic()
        for pid, one in list(self.all.items()):
            if one["tool"] is None:
                if now >= one["at"]:
                    self.start(pid)
            elif one["tool"].poll() is not None:
                self.ended(pid, one, workers)
            elif one["kill"] and now > one["kill"]:
                one["tool"].kill()
                self.soak.acts["tools killed"] += 1
            elif now - one["begun"] > 3 * self.timeout:
                one["tool"].kill()
                self.soak.fail(f"{one['verb']} of {pid} lasts more than {3 * self.timeout} s")

    def ended(self, pid, one, workers):
        said, code = one["tool"].communicate()[0], one["tool"].returncode
        lives = pid in workers and workers[pid].poll() is None
        if "can only be ended" in said:
            self.soak.fail(f"lost: {said}")
        if code == -signal.SIGKILL and lives:
            self.begin(pid, "resume")
        elif one["verb"] == "suspend" and code == 0:
            self.soak.acts["suspended"] += 1
            self.ever.add(pid)
            self.begin(pid, "resume", time.monotonic() + self.random.choice((0, 0.05, 0.5, 1.5)))
        elif one["verb"] == "resume" and code == 1 and lives and LATE in said and not self.is_over(one):
            self.soak.acts["late"] += 1  # it, or the keeper, was stopped
            self.begin(pid, "resume", first=one["first"] or one["begun"])
        else:
            self.forget(pid)
            self.judge(one["verb"], code, said, lives)

    def is_over(self, one):
        return one["first"] and time.monotonic() - one["first"] > 6 * self.timeout

    def judge(self, verb, code, said, lives):
        if verb == "suspend":
            self.soak.acts["refused to sleep"] += 1
            reason = re.sub(r"^.*?(cannot be|was not) suspended\S* |^gpushare: \w+: ", "", said.strip())
            self.refusals[re.sub(r"(region|block|replica|giver|taker) \S+", r"\1", reason)[:70]] += 1
            if not REFUSED.search(said):
                self.soak.fail(f"suspend: {code}: {said}")
        elif code == 0:
            self.soak.acts["resumed"] += 1
        elif lives:
            self.soak.fail(f"resume: {code}: {said}")

    def forget(self, pid):
        """It is awake, or gone."""
        one = self.all.pop(pid, None)
        if one and one["tool"] and one["tool"].poll() is None:
            one["tool"].kill()
            one["tool"].communicate()
        self.soak.went_on[pid] = time.monotonic()

    def wake(self, pid, workers):
        """Before it is told to end. The others go on meanwhile: one may have the room of the card, one that is stopped a block."""
        until = time.monotonic() + 6 * self.timeout
        while pid in self.all and time.monotonic() < until:
            self.soak.resume_some()
            self.go_on(workers)
            time.sleep(0.02)
        if pid in self.all:
            self.soak.fail(f"{pid} is not to be woken")
            self.forget(pid)

    def may_kill_keeper(self):
        """What sleepers alone have is gone with keeper and stand-by: not both within the time that a new one takes."""
        now = time.monotonic()
        if not self.all or now - self.keeper_killed > 2:
            self.keeper_killed = now
            return True
        return False
