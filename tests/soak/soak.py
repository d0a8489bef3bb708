#!/usr/bin/env python3
"""An adversary of gpushare's: processes (worker.c) that allocate, export, open, close, free, hand over, misuse
handles, fork, run out of things and are interrupted at random, while they and their keepers are stopped and
killed. Each call must answer as the bare driver's does, each byte must be its exporter's, and in the end
everything must be as it was.

usage: soak.py BUILD_DIR [--driver sim|gpu] [--runtime hip6|hip7] [--mode share|audit|bare] [--seconds N] [--seed N]
                         [--processes N] [--cache N] [--merge [SHARE]] [--memory SIZE] [--gentle] [--keep]
                         [--suspend] [--events DIR]
       soak.py BUILD_DIR --mode audit --hostile [--programs N] [--seconds N] [--seed N] [--processes N] [--keep]

The seed (also SEED=n) decides what each process does and what is done to it; the times are the machine's own.
--mode bare runs all of it without the library: that shows that the model itself is right, and must not fail.
SOAK_WITHOUT="few fork trouble rules misuse" leaves out what it names.
--runtime is a generation of AMD's runtime in place of CUDA's, where nothing is merged or kept by a keeper.
--cache N (also CACHE=N) sets open_cache.
--merge lets all workers, or that share of them (0 to 1), be replicas: programs of the differ's (differ/program.c), each
with a second thread, whose every line must be that of a bare run. They lose their directory now and then. From where
one lacks memory, which another took, it is not compared. A run in which they had nothing in common fails.
--suspend suspends and resumes workers, at most one keeper dies at a time while somebody sleeps, and nobody may end by a
SIGKILL that was not sent here. blocks = off: it judges handles by the driver's rules.
--memory SIZE of the simulated card (3GiB, with --merge 16GiB). SOAK_WITHOUT=hog leaves replicas all of it.
--events has the workers write event logs into a directory, for `gpushare timeline`.
--hostile runs random programs (hostile.py) under `gpushare audit`, which make themselves hard to watch; --processes at
once, N programs (1000) or as many as there is time for.
--gentle leaves out keepers' deaths, the full directory, and what stops processes.

Judged as it runs: the workers' journal (memory.c and misuse.c say what is expected), and that no call lasts longer
than 20 s. Judged at the end: device memory in use is what it was; the published directory holds nothing once
`gpushare gc` has removed what killed processes left; no keeper stays; no process ended otherwise than told; and no
finding is untrue: each one is of what workers do (ALLOWED), no more often than they did it. Prints a table; the
last line says it all.
"""
import collections
import contextlib
import json
import mmap
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import hostile
import trial
from patience import patient
from sleepers import Sleepers

TIMEOUT = patient(20)
THREADS, STATUS = 4, struct.Struct("QQ48s")
# Of the last ones: it had not come to its main yet.
GENTLE_ENDS = {0, 77, 78, -signal.SIGKILL, -signal.SIGTERM, -signal.SIGUSR1, -signal.SIGUSR2}
ENDS = (signal.SIGKILL, signal.SIGKILL, signal.SIGUSR1, signal.SIGUSR2)  # of a replica: in a handler, and after a jump out
PROGRAMS, STEPS = 4, 300  # of replicas
HERE = pathlib.Path(__file__).parent

# What may be found, and how often at most: a sum of counts of the workers', or None.
OPENS = "refused raced open_stale stale_opened open_junk"
ALLOWED = {
    "free-while-open": None, "exit-while-open": None, "export-shared-block": None, "leak-open": None,
    "leak-export": None, "unbalanced-open": None, "double-open": None, "event-destroyed-while-open": None,
    "share-timeout": None, "share-fallback": None, "share-mismatch": None,
    "double-free": "double_free", "double-close": "double_close", "free-interior": "free_interior",
    "free-imported": "free_imported double_free", "close-own": "close_own", "close-interior": "close_interior",
    "open-own-handle": "open_own open_stale refused", "open-stale": OPENS, "open-dead-owner": OPENS, "open-unknown": OPENS,
    "event-stale": "events_opened", "event-dead-owner": "events_opened", "event-never-recorded": "events_opened",
    "leak-event": "events_opened", "open-place-held": "already_mapped", "ipc-call-failed": OPENS,
    "fork-with-context": "fork_calls",
    "store-unavailable": "few_descriptors full removed", "export-not-capable": "few_descriptors full",
}
# AMD's runtime refuses an event whose exporter was killed, which may have published nothing in a full directory. The
# file with the handle stays, and is tried again and again.
OF_HIP = ("event-unknown",)
# What replicas do wrong on purpose, and what one leaves that ends in a handler.
OF_REPLICAS = ("export-type-missing", "unmap-mismatch", "vmm-handle-leak", "mapping-never-accessible", "use-unmapped",
               "map-over-mapping", "vmm-use-after-release", "export-imported")
DYING = ("open-stale", "open-dead-owner", "open-place-held", "ipc-call-failed")  # and as many as are killed
RULES = """
[region legacy-{n}]
size = 3MiB
role = auto
index = *
wait = 200ms
[region given-{n}]
program = giver
size = 5MiB
role = export
ready = free
handover = 500ms
index = *
[region given-{n}]
program = taker
size = 5MiB
role = import
wait = 100ms
index = *
"""
SUSPEND = """
[gpushare]
suspend = on
blocks = off
vmm_ipc = on
"""
BLOCK_RULES = """
[region computed]
program = replica
size = 14MiB
role = merge
quiet = 0
[region small]
program = replica
size = 2MiB..5MiB
role = merge
quiet = 0
created = on
[region any]
program = replica
size = 5MiB..9MiB
role = merge
quiet = 20ms
content = any
created = on
[region large]
program = replica
size = >=9MiB
role = merge
quiet = 10ms
[region vmm-{n}]
size = 6MiB
role = auto
backing = vmm
keep = users
index = *
wait = 200ms
"""


def count_names():
    text = (HERE / "worker.h").read_text()
    return re.findall(r"ROW\((\w+)\)", text[text.index("#define COUNTS"):text.index("enum count")])


def event_files():
    """AMD's runtime, to version 6, makes one for each shared event, and removes none."""
    return pathlib.Path("/dev/shm").glob("hip_event*")


class Control:
    """The file of that name: counts of all workers, also of those that were killed."""

    def __init__(self, path):
        self.names = count_names()
        path.write_bytes(bytes(8 * (1 + len(self.names))))
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0)

    def full(self, value):
        struct.pack_into("Q", self.map, 0, value)

    def counts(self):
        values = struct.unpack_from(f"{len(self.names)}Q", self.map, 8)
        return collections.Counter(dict(zip(self.names, values)))


class Soak:
    PAUSE, LAST = 0.1, signal.SIGTERM  # seconds between two troubles, and what ends workers

    def __init__(self, options):
        self.options = options
        self.build = options.build
        self.random = random.Random(options.seed)
        self.place = trial.make_place("soak")
        for name in ("adverts", "events", "ends", "logs", "status", "pub", "event-logs", "said"):
            (self.place / name).mkdir(mode=0o700)
        self.hip = options.runtime is not None
        suffix = f"_{options.runtime}" if self.hip else ""
        for name in ("giver", "taker"):
            shutil.copy(self.build / f"tests/soak-worker{suffix}", self.place / name)
        shutil.copy(self.build / "tests/differ-program", self.place / "replica")
        (self.place / "rules.conf").write_text(SUSPEND * options.suspend + BLOCK_RULES * (not self.hip) + RULES)
        self.control = Control(self.place / "control")
        self.environment = trial.clean_environment()
        self.environment |= {"GPUSHARE_DIR": f"{self.place}/pub", "GPUSHARE_KEEPER": f"{self.build}/gpushare",
                             "GPUSHARE_ASSERTIONS": f"{self.place}/assertions"}
        if options.driver == "gpu":
            self.environment["SOAK_DIRTY"] = "1"
        else:
            self.environment |= self.sanitizers() | {"LD_LIBRARY_PATH": f"{self.build}/sim/{options.runtime or ''}",
                                 "GPUSHARE_SIM_ROOT": f"@{self.place}",
                                 "GPUSHARE_SIM_MEMORY": self.options.memory, "GPUSHARE_SIM_MAPPED": "1"}
        self.events = os.path.abspath(options.events) if options.events else options.merge and self.place / "event-logs"
        self.mounted = self.mount()
        self.event_files = set(event_files())
        self.workers, self.stopped, self.went_on, self.failures = {}, {}, {}, []
        self.acts, self.filled, self.keeper = collections.Counter(), 0, None
        self.starts, self.expected = 0, {}
        self.sleepers = Sleepers(self, TIMEOUT)
        self.meter = trial.Meter(self.puppet_path(), self.environment)

    def sanitizers(self):
        """For workers and a library that are built with one; the reports of a process are a file. The thread
        sanitizer takes what it remembers of a parent's threads for threads of a forked child that nobody joined."""
        log = f"log_path={self.place}/sanitizer:exitcode=66"
        threads = f"log_path={self.place}/sanitizer:exitcode=0:history_size=7:die_after_fork=0:report_thread_leaks=0"
        return {"TSAN_OPTIONS": f"{threads}:suppressions={HERE}/thread.supp", "UBSAN_OPTIONS": log,
                "ASAN_OPTIONS": f"{log}:detect_leaks=0:verify_asan_link_order=0"}

    def mount(self):
        """A small file system for the published directory, so that it can be filled."""
        return self.options.mode != "bare" and trial.mount(self.place / "pub", "size=64m,mode=700")

    def puppet_path(self):
        return self.build / ("tests/apps/puppet" + (f"_{self.options.runtime}" if self.hip else ""))

    def fail(self, text):
        self.failures.append(text)
        print(f"FAILED: {text[:4000]}", flush=True)

    # --- workers ---

    def start(self):
        replica = self.options.merge and self.random.random() < self.options.merge
        name = "replica" if replica else self.random.choice(("giver", "taker"))
        seed = self.random.choice(list(self.expected)) if replica else self.random.randrange(1 << 30)
        words = self.replica(seed) if replica else [self.place / name, self.place, str(seed), self.options.mode]
        self.starts += 1
        said = self.place / "said" / str(self.starts)
        with open(self.place / "stderr", "ab") as errors, open(said, "wb") as output:
            worker = subprocess.Popen(words, env=self.preloaded(), stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        worker.seed, worker.replica, worker.said, worker.signalled = seed, replica, said, None
        self.workers[worker.pid] = worker

    def preloaded(self):
        """The environment of a worker, which has the library if the mode has."""
        if self.options.mode == "bare":
            return self.environment
        library = "libgpushare-hip.so" if self.hip else "libgpushare.so"
        events = {"GPUSHARE_EVENT_LOG": f"{self.events}/%p.jsonl"} if self.events else {}
        return self.environment | events | {
            "LD_PRELOAD": f"{self.build}/{library}", "GPUSHARE_MODE": self.options.mode,
            "GPUSHARE_CONFIG": f"{self.place}/rules.conf", "GPUSHARE_LOG": f"{self.place}/logs/%p",
            "GPUSHARE_LOG_FORMAT": "jsonl", "GPUSHARE_LOG_LEVEL": "info", "GPUSHARE_OPEN_CACHE": str(self.options.cache)}

    def gone(self, worker):
        """What a process that has ended leaves, and how it ended."""
        self.workers.pop(worker.pid, None)
        self.stopped.pop(worker.pid, None)
        self.sleepers.forget(worker.pid)
        if worker.returncode == -signal.SIGKILL and worker.signalled != signal.SIGKILL:
            self.fail(f"worker {worker.pid} (seed {worker.seed}) was killed, and not here")
        self.acts["killed" if worker.returncode == -signal.SIGKILL else "ended"] += 1
        self.acts["ends in handlers"] += worker.returncode in (77, 78)
        if worker.replica:
            self.judge_replica(worker)
        if worker.returncode not in GENTLE_ENDS and not (worker.replica and worker.returncode == 1 and self.lacking()):
            self.fail(f"worker {worker.pid} (seed {worker.seed}) ended with {worker.returncode}")
        worker.said.unlink()
        self.forget(worker.pid)

    def replica(self, seed):
        return [str(word) for word in (self.place / "replica", self.build / "tests/apps/kernels.ptx", seed, STEPS, 0)]

    def play_bare(self):
        """What replicas say of each program without the library."""
        first = self.random.randrange(1 << 20)
        bare = {seed: subprocess.Popen(self.replica(seed), env=self.environment, stdout=subprocess.PIPE, text=True)
                for seed in range(first, first + PROGRAMS)}
        self.expected = {seed: process.communicate()[0].splitlines() for seed, process in bare.items()}
        if broken := [seed for seed, process in bare.items() if process.returncode]:
            raise SystemExit(f"soak: the bare programs {broken} failed")

    def lacking(self):
        return self.acts["hogs"] or self.acts["directories removed"] or self.options.merge < 1

    def judge_replica(self, worker):
        said, expected = worker.said.read_text().splitlines(), self.expected[worker.seed]
        self.acts["lines of replicas"] += len(said)
        for i, line in enumerate(said):
            if i < len(expected) and line == expected[i]:
                continue
            if self.lacking() and (line.split()[2] == "2" or "cannot be used after a reset" in line):
                self.acts["lacked memory"] += 1
            else:
                self.fail(f"replica {worker.pid} of program {worker.seed}, line {i}: {line}\n"
                          f"  bare: {expected[i] if i < len(expected) else 'nothing'}")
            return
        if worker.returncode == 0 and len(said) != len(expected):
            self.fail(f"replica {worker.pid} of program {worker.seed} ended after {len(said)} lines of {len(expected)}")

    def forget(self, pid):
        for folder in ("adverts", "events"):
            for path in (self.place / folder).iterdir():
                if path.name.lstrip(".").split(".")[0] == str(pid):
                    path.unlink(missing_ok=True)
        (self.place / "status" / str(pid)).unlink(missing_ok=True)

    def forget_the_dead(self):
        """Also those that workers had started."""
        for path in (self.place / "status").iterdir():
            if not pathlib.Path("/proc", path.name).exists():
                self.forget(path.name)

    def end(self, worker, number):
        self.resume(worker.pid)
        if number != signal.SIGKILL:
            self.sleepers.wake(worker.pid, self.workers)
        worker.signalled = number
        worker.send_signal(number)
        try:
            worker.wait(timeout=TIMEOUT + 10)
        except subprocess.TimeoutExpired:
            self.fail(f"worker {worker.pid} (seed {worker.seed}) goes on after signal {number}: {self.places(worker.pid)}")
            worker.signalled = signal.SIGKILL
            worker.kill()
            worker.wait()
        self.gone(worker)

    def stop(self, worker):
        self.stopped[worker.pid] = time.monotonic() + self.random.choice((0.01, 0.1, 0.5, 1.5))
        worker.send_signal(signal.SIGSTOP)
        self.acts["stopped"] += 1

    def resume(self, pid):
        if self.stopped.pop(pid, None) is not None:
            trial.send([pid], signal.SIGCONT)  # it may be a keeper that was killed meanwhile
            self.went_on[pid] = time.monotonic()

    def resume_some(self):
        for pid, until in list(self.stopped.items()):
            if time.monotonic() > until:
                self.resume(pid)

    # --- hangs ---

    def places(self, pid):
        """What the threads of a process wait for in the kernel."""
        said = []
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
            try:
                said.append(f"{task.name} {(task / 'wchan').read_text()} {(task / 'syscall').read_text().split()[0]}")
            except (OSError, IndexError):
                continue
        stacks = shutil.which("gdb")
        if stacks:
            said.append(subprocess.run([stacks, "-p", str(pid), "-batch", "-ex", "thread apply all bt"], check=False,
                                       capture_output=True, text=True).stdout)
        return "; ".join(said)

    def look_for_hangs(self):
        for path in list((self.place / "status").iterdir()):
            try:
                rows = path.read_bytes()
            except OSError:
                continue
            for since, steps, call in STATUS.iter_unpack(rows[:THREADS * STATUS.size]):
                began = max(since / 1000, self.went_on.get(int(path.name), 0))
                if since and int(path.name) not in self.stopped and int(path.name) not in self.sleepers.all and time.monotonic() - began > TIMEOUT:
                    self.hangs(int(path.name), f"after {steps} steps in {call.split(bytes(1))[0].decode()}")
                    break

    def hangs(self, pid, text):
        worker = self.workers.get(pid)
        if worker and worker.poll() is not None or not pathlib.Path("/proc", str(pid)).exists():
            return  # it has died in that call
        self.fail(f"worker {pid} (seed {worker.seed if worker else 'of its parent'}) hangs {text}: {self.places(pid)}")
        if worker:
            self.end(worker, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)

    # --- keepers, and the directory ---

    def keepers(self):
        return trial.keepers(f"{self.place}/pub")

    def trouble_keeper(self):
        for pid in self.keepers():
            kind = self.random.random()
            try:
                if kind < 0.5 and self.sleepers.may_kill_keeper():
                    os.kill(pid, signal.SIGKILL)
                    self.acts["keepers killed"] += 1
                else:
                    os.kill(pid, signal.SIGSTOP)
                    self.stopped[pid] = time.monotonic() + self.random.choice((0.05, 0.5, 1.5))
                    self.acts["keepers stopped"] += 1
            except ProcessLookupError:
                self.stopped.pop(pid, None)
        if self.random.random() < 0.3 and (self.keeper is None or self.keeper.poll() is not None):
            self.keeper = subprocess.Popen([self.build / "gpushare", "keeper"], env=self.environment,
                                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL)

    def vanish(self):
        """Replicas go on with what they have merged; those that start later make another one."""
        self.acts["directories removed"] += 1
        for path in (self.place / "pub").iterdir():
            shutil.rmtree(path, ignore_errors=True)

    def hog(self):
        """Takes all of the card for a moment."""
        self.acts["hogs"] += 1
        hog, count = trial.Meter(self.puppet_path(), self.environment), 0
        for size in (256 << 20, 4 << 20):
            while hog.ask(f"malloc m{count} {size}")[0] == "0":
                count += 1
        time.sleep(self.random.uniform(0.01, 0.1))
        hog.process.kill()
        hog.close()

    def fill(self):
        if not self.mounted:
            return
        self.acts["directory full"] += 1
        self.filled += 1
        self.control.full(self.filled)
        path = self.place / "pub/filler"
        try:
            with open(path, "wb", buffering=0) as file:
                while True:
                    file.write(bytes(1 << 20))  # the last one is cut short
        except OSError:
            time.sleep(self.random.uniform(0.01, 0.3))
        path.unlink()
        self.filled += 1
        self.control.full(self.filled)

    # --- the run ---

    def disturb(self):
        worker = self.random.choice(list(self.workers.values()))
        kind = self.random.random()
        if kind < 0.35 and not self.options.gentle:
            if worker.pid not in self.stopped:
                self.stop(worker)
        elif kind < 0.75:
            ends = ENDS if worker.replica else ENDS[:1]
            self.end(worker, self.random.choice(ends) if self.random.random() < 0.7 else signal.SIGTERM)
        elif kind < 0.9 and not self.options.gentle and self.options.mode == "share":
            self.trouble_keeper()
        elif not self.options.gentle and self.options.merge == 1 and self.random.random() < 0.3:
            self.vanish()
        elif worker.replica and self.random.random() < 0.3 and "hog" not in os.environ.get("SOAK_WITHOUT", ""):
            self.hog()
        elif not self.options.gentle:
            self.fill()

    def run(self):
        if self.options.merge:
            self.play_bare()
        until = time.monotonic() + self.options.seconds
        pause = 0.3 if self.options.merge else self.PAUSE
        if self.options.driver == "gpu":
            pause = 1.0  # a start takes a second or two
        while time.monotonic() < until and len(self.failures) < 50:
            for worker in [one for one in self.workers.values() if one.poll() is not None]:
                self.gone(worker)
            while len(self.workers) < self.options.processes:
                self.start()
            time.sleep(self.random.uniform(0, 2 * pause))
            self.resume_some()
            if self.options.suspend:
                self.sleepers.look(self.workers)
            self.disturb()
            self.look_for_hangs()
            self.forget_the_dead()
        for pid in list(self.stopped):
            self.resume(pid)
        for worker in list(self.workers.values()):
            self.end(worker, self.LAST)

    # --- afterwards ---

    def judge_memory(self, before):
        slack = 0 if self.options.driver == "sim" else 64 << 20
        if not trial.eventually(lambda: self.meter.used() <= before + slack, 10, 0.1):
            self.fail(f"{(self.meter.used() - before) >> 10} KiB of device memory are still in use")

    def judge_keepers(self):
        for pid in self.keepers():  # also the stand-by of one that was killed: it would serve for good
            with contextlib.suppress(OSError):
                if b"--on-demand" not in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGTERM)
        if self.keeper:
            self.keeper.wait(TIMEOUT)
        if not trial.eventually(lambda: not self.keepers(), 10, 0.1):
            self.fail(f"keepers stay: {self.keepers()}")
            trial.send(self.keepers(), signal.SIGKILL)

    def judge_directory(self):
        directory = self.place / "pub"
        before = trial.files(directory)
        after = trial.files_after_gc(self.build, directory, self.environment, check=self.options.mode != "bare")
        before, after = ([name for name in names if not name.startswith(".room-")] for names in (before, after))
        if after:
            self.fail(f"in the directory after gc: {' '.join(after[:5])}")
        return len(before)

    def judge_assertions(self):
        """What the library under test said before it aborted (shim/util/assertion.h)."""
        for line in trial.lines_of(self.place / "assertions"):
            self.fail(line)

    def is_spoilt(self, line):
        """A block of which something small was exported before a suspension opens no more (docs/suspend.md)."""
        exporter = re.search(r"open: 400, though it is alive, kind 1: .*/(\d+)\.\d+$", line)
        return bool(exporter) and int(exporter[1]) in self.sleepers.ever

    def judge_journal(self):
        try:
            lines = [line for line in (self.place / "journal").read_text().splitlines() if not self.is_spoilt(line)]
        except OSError:
            lines = []
        for line in lines[:20]:
            self.fail(line)
        if len(lines) > 20:
            self.fail(f"and {len(lines) - 20} more in the journal")
        for path in sorted(self.place.glob("crash.*"))[:3]:
            self.fail(f"{path.name}:\n" + path.read_text(errors="replace"))
        for path in self.place.glob("sanitizer.*"):
            for report in path.read_text(errors="replace").split("=" * 18 + "\n"):
                self.judge_report(report)

    def judge_report(self, report):
        """Of two accesses of which one has no stack any more nothing can be said: they are counted. So is a process in
        which gcc 12's thread sanitizer takes a new thread for one that runs already, and ends."""
        if "[failed to restore the stack]" in report:
            self.acts["races without a stack"] += 1
        elif "CHECK failed: sanitizer_thread_registry.cpp" in report:
            self.acts["sanitizer failed"] += 1
        elif report.strip() and not re.fullmatch(r"ThreadSanitizer: reported \d+ warnings\s*", report):
            self.fail(report)  # the sum, at a process's end, is of those above

    def records(self, folder):
        """Of all logs there: the log's name, the line, and what it says."""
        for log in pathlib.Path(folder).iterdir():
            for line in log.read_text(errors="replace").splitlines():
                with contextlib.suppress(ValueError):  # the last one of a worker that was killed
                    yield log.name, line, json.loads(line)

    def findings(self):
        counts, first = collections.Counter(), {}
        for _, line, record in self.records(self.place / "logs"):
            if record["finding"]:
                counts[record["finding"]] += record["count"] or 1
                first.setdefault(record["finding"], line)
        return counts, first

    def judge_findings(self, counts):
        found, first = self.findings()
        for name, number in found.items():
            bound = None if self.hip and name in OF_HIP else ALLOWED.get(name, "")
            if self.options.merge and name in OF_REPLICAS:
                continue
            known = None if bound is None else sum(counts[word] for word in bound.split())
            known = known if known is None or name not in DYING else \
                known + self.acts["killed"]
            if known is not None and number > known:
                self.fail(f"untrue: {number} times {name}, which was done {known} times: {first[name][:600]}")
        return found

    def judge_merging(self):
        """Returns the bytes that one process had and another one did not need."""
        saved = sum(record.get("saved") or 0 for _, _, record in self.records(self.events))
        if not saved and self.options.mode == "share":
            self.fail("no two workers had a block in common")
        return saved

    def close(self):
        for worker in self.workers.values():
            worker.kill()
            worker.wait()
        trial.send(self.keepers(), signal.SIGKILL)
        self.meter.close()
        kept = self.failures and self.options.keep
        for path in set(event_files()) - self.event_files:
            path.unlink(missing_ok=True)
        if self.mounted and not kept:
            trial.unmount(self.place / "pub")
        if kept:
            print(f"logs, journal and directory are kept: {self.place}")
        else:
            shutil.rmtree(self.place)


def table(soak, counts, findings):
    rows = {**counts, **soak.acts}
    words = [f"{name} {rows[name]}" for name in rows if rows[name]]
    for at in range(0, len(words), 6):
        print("  ".join(f"{word:<24}" for word in words[at:at + 6]).rstrip())
    for refusal, count in soak.sleepers.refusals.most_common():
        print(f"{count:6} not suspended: {refusal}")
    print("findings: " + (", ".join(f"{count} {name}" for name, count in sorted(findings.items())) or "none"))


def arguments():
    parser = trial.options(__doc__, seconds=600)
    parser.add_argument("--driver", choices=["sim", "gpu"], default="sim")
    parser.add_argument("--runtime", choices=["hip6", "hip7"])
    parser.add_argument("--mode", choices=["share", "audit", "bare"], default="share")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--cache", type=int, default=int(os.environ.get("CACHE", "0")))
    parser.add_argument("--merge", type=float, nargs="?", const=1.0, default=0.0)
    parser.add_argument("--suspend", action="store_true")
    parser.add_argument("--memory")
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--gentle", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--events")
    options = parser.parse_args()
    if options.hostile and (options.mode, options.driver, options.runtime) != ("audit", "sim", None):
        parser.error("--hostile is for --mode audit, on the simulated driver")
    options.memory = options.memory or ("16GiB" if options.merge else "3GiB")
    return options


def main():
    options = arguments()
    if options.hostile:
        return hostile.main(options)
    soak = Soak(options)
    try:
        before = soak.meter.used()
        soak.run()
        soak.judge_keepers()
        soak.judge_memory(before)
        left = soak.judge_directory()
        soak.judge_journal()
        soak.judge_assertions()
        counts = soak.control.counts()
        many = collections.Counter(full=soak.filled * 1000, removed=soak.acts["directories removed"] * 1000,
                                   few_descriptors=soak.acts["lines of replicas"])
        findings = soak.judge_findings(counts + many)
        if soak.options.merge:
            soak.acts["MiB saved"] = soak.judge_merging() >> 20
        table(soak, counts, findings)
    finally:
        soak.close()
    steps = counts["steps"] + soak.acts["lines of replicas"]
    print(f"seed {soak.options.seed}: {steps} steps, {soak.acts['killed']} killed, {soak.acts['stopped']} stopped, "
          f"{soak.acts['ends in handlers']} exits from handlers, {soak.acts['keepers killed']} keepers killed, {left} files left "
          f"for gc, {len(soak.failures)} failures")
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
