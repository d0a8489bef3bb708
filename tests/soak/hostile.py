"""Random programs (hostile.c) that do known things wrong, and between them what makes it hard to report that: no
descriptors, another user, root or namespaces, a full disk, no files. Each runs under `gpushare audit --json`. See
soak.py --hostile.

What the report says is what the program did, as often as it did it, or the audit says that it could not see: by a line
on stderr, and by its status, 3 or that of a program that ended badly. Never does it say more.
"""
import collections
import concurrent.futures
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import time

import trial
from patience import patient

LIMIT = patient(60)  # seconds a program
ROWS, ROW = 64, struct.Struct("48sQQ")
BLIND = re.compile(r"gpushare: .*(lines? of the processes' logs|not watched|could not reach|is lost|no call was seen"
                   r"|nothing was watched)")
OF_THE_PLACE = {"store-unavailable", "record-invalid", "memory-call-failed"}  # no mistake of the program's
# What is wrong with a handle is told of less surely where directory and /dev/shm are gone, and of memory that was not
# published no leak is known: the report says so.
LESS_SURE = {"event-unknown": ["ipc-call-failed"], "open-unknown": ["ipc-call-failed"],
             "open-own-handle": ["open-unknown", "ipc-call-failed"]}
ENDS = {0, 3, 128 + signal.SIGKILL, 128 + signal.SIGABRT}


class Place:
    """Where one program after another runs: a small disk of its own, where it can be had, and an empty root."""

    def __init__(self, build):
        self.build = build
        self.path = trial.make_place("hostile")
        self.path.chmod(0o711)  # another user finds what it opens
        for name in ("disk", "jail"):
            (self.path / name).mkdir()
        self.mounted = trial.mount(self.path / "disk", "size=4m,mode=1777")
        self.environment = trial.on_card(build, self.path) | {
            "GPUSHARE_SIM_LINGER_MS": "100", "GPUSHARE_DIR": f"{self.path}/disk/pub",
            "XDG_CONFIG_HOME": f"{self.path}/none", "TMPDIR": f"{self.path}/disk"}

    def clean(self):
        for path in (self.path / "disk").iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        done = self.path / "done"
        done.write_bytes(bytes(ROWS * ROW.size))
        done.chmod(0o666)

    def counts(self):
        """By finding: what was surely done, and what may be told of at most."""
        done, most = collections.Counter(), collections.Counter()
        for name, sure, may in ROW.iter_unpack((self.path / "done").read_bytes()):
            if name := name.rstrip(bytes(1)).decode():
                done[name], most[name] = sure, sure + may
        return done, most

    def run(self, seed):
        self.clean()
        report = self.path / "report"
        report.write_text("")
        words = [self.build / "gpushare", "audit", f"--json={report}", "--error-exitcode=0", "--",
                 self.build / "tests/soak-hostile", self.path, str(seed)]
        with subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True) as audit:
            try:
                said = audit.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(audit.pid, signal.SIGKILL)
                raise SystemExit(f"hostile: seed {seed} is not done in {LIMIT} s") from None
        return Run(seed, audit.returncode, said, report.read_text(), *self.counts())

    def close(self):
        if self.mounted:
            trial.unmount(self.path / "disk")
        shutil.rmtree(self.path, ignore_errors=True)


class Run:
    """One program, and what its audit said."""

    def __init__(self, seed, status, said, report, done, most):
        self.seed, self.status, self.done, self.most = seed, status, done, most
        (self.stdout, self.said), self.found, self.failures = said, collections.Counter(), []
        self.blind = bool(BLIND.search(self.said))
        try:
            for finding in json.loads(report):
                self.found[finding["finding"]] += finding["count"]
        except ValueError:
            self.failures.append(f"the report is no JSON: {report[:200]!r}")
        self.judge()

    def judge(self):
        if self.status not in ENDS and self.status < 125:
            self.failures.append(f"status {self.status}")
        # Who is executed where it cannot reach the audit has stderr alone, and the audit names it.
        if self.stdout or (re.search(r'^\{"', self.said, re.M) and "could not reach the audit" not in self.said):
            self.failures.append("the program had a line of the log")
        if (self.status == 3) != self.blind and self.status in (0, 3):
            self.failures.append(f"status {self.status}, and it {'says' if self.blind else 'does not say'} what it missed")
        self.judge_counts(self.told_as_done())

    def told_as_done(self):
        """The findings, with those that are told less surely under the name of what was done."""
        told = collections.Counter(self.found)
        for name, others in LESS_SURE.items():
            for other in others:
                moved = max(0, min(self.done[name] - told[name], told[other] - self.done[other]))
                told[name], told[other] = told[name] + moved, told[other] - moved
        return told

    def judge_counts(self, told):
        unpublished = any(self.found[name] for name in OF_THE_PLACE)
        for name, count in told.items():
            if count > self.most[name] and name not in OF_THE_PLACE:
                self.failures.append(f"untrue: {count} times {name}, which was done {self.most[name]} times")
        for name, count in self.done.items():
            # Who is killed has not said how often it did the same again.
            seen = any(told[one] for one in [name] + LESS_SURE.get(name, [])) and "ended without its last report" in self.said
            if count > told[name] and not (self.blind or seen or (name == "leak-export" and unpublished)):
                self.failures.append(f"silent: {told[name]} times {name}, which was done {count} times")


class Sums:
    """Of all programs."""

    def __init__(self, options):
        self.options, self.until = options, time.monotonic() + options.seconds
        self.programs = self.blind = 0
        self.found, self.done, self.failed, self.said = collections.Counter(), collections.Counter(), [], set()

    def add(self, run):
        self.programs, self.blind = self.programs + 1, self.blind + run.blind
        self.found.update(run.found)
        self.done.update(run.done)
        if run.failures:
            self.failed.append(run.seed)
            print(f"seed {run.seed}: {'; '.join(run.failures)}" + f"\n{run.said}" * self.options.keep, flush=True)

    def run_some(self, number):
        """Every program of one place."""
        place = Place(self.options.build)
        first = self.options.seed
        try:
            for seed in range(first + number, first + self.options.programs, self.options.processes):
                if time.monotonic() > self.until:
                    break
                self.add(place.run(seed))
            self.said |= set(trial.lines_of(place.path / "assertions"))
        finally:
            place.close()

    def table(self):
        print("findings: " + ", ".join(f"{self.found[name]} {name} of {self.done[name]}"
                                       for name in sorted(self.found | self.done)))
        for line in sorted(self.said):
            print(f"FAILED: {line}")
        print(f"seed {self.options.seed}: {self.programs} hostile programs, {self.blind} audits say that they could not see, "
              f"{len(self.failed)} say what is untrue or are silent")


def main(options):
    sums = Sums(options)
    with concurrent.futures.ThreadPoolExecutor(options.processes) as pool:
        list(pool.map(sums.run_some, range(options.processes)))
    sums.table()
    return 1 if sums.failed or sums.said else 0
