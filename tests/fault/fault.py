#!/usr/bin/env python3
"""Makes each system call of the library, and of the keeper, fail once, and looks at what the programs see.

usage: fault.py BUILD [--quick] [--only SYSCALL] [--scenario NAME] [--fault SCENARIO:ROLE:SYSCALL:N[+]:ERRNO]
                [--kill] [--jobs N] [--keep]

  --quick     each system call's first, middle and last call with one errno (a stage of tests/check); else each
              call with each errno of ERRORS, and all calls from the first on
  --only      just this system call
  --scenario  just this one of SCENARIOS
  --fault     just this run, as a failure names it; may be given again
  --kill      instead of an errno the process is killed there
  --keep      keeps logs and directory of a run that failed

A scenario is two or three puppets (tests/apps/puppet/) and a fixed list of commands with the answers of a bare
run (which is done first, and must give them). Those whose names begin with hip6 or hip7 are the same ones with that
generation of AMD's runtime, and libgpushare-hip.so. One of the processes runs under tests/fault/inject.c. First it
only records which calls the library makes; then there is one run for each of them. The answers must be those of
the bare run. Memory that a rule would share may be private, if stderr has a report of it; but who reads the
other's bytes once must read them until the end. No process may crash, hang (20 s) or end with another status;
afterwards no device memory may be in use, no keeper run, and no file be left but what `gpushare gc` removes.
"""
import collections
import concurrent.futures
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import trial
from patience import patient

TIMEOUT = patient(20)
SIZE = 4 << 20
ERRORS = {
    "openat": "EMFILE ENFILE EACCES ENOENT ENOSPC EROFS EINTR", "open": "EMFILE EACCES ENOENT",
    "read": "EIO EINTR", "write": "EIO ENOSPC EPIPE", "pread64": "EIO", "pwrite64": "ENOSPC EIO EDQUOT",
    "mmap": "ENOMEM", "mprotect": "ENOMEM", "mremap": "ENOMEM", "munmap": "ENOMEM",
    "madvise": "ENOMEM EINVAL", "dup": "EMFILE", "dup2": "EBUSY", "dup3": "EBUSY",
    "fcntl": "EAGAIN EBADF ENOLCK EMFILE EINTR", "flock": "ENOLCK EINTR", "ftruncate": "ENOSPC EIO EINTR",
    "fallocate": "ENOSPC EINTR", "fchmod": "EPERM EROFS", "fstat": "EIO", "newfstatat": "EACCES ENOENT EIO",
    "statx": "EACCES ENOENT", "faccessat": "EACCES", "faccessat2": "EACCES ENOENT", "access": "EACCES ENOENT",
    "rename": "ENOENT EROFS ENOSPC", "renameat": "ENOENT EROFS ENOSPC", "renameat2": "ENOENT EROFS ENOSPC EINVAL",
    "link": "EEXIST ENOSPC EMLINK", "linkat": "EEXIST ENOSPC EMLINK", "symlink": "EEXIST ENOSPC",
    "symlinkat": "EEXIST ENOSPC", "readlink": "ENOENT EACCES", "readlinkat": "ENOENT EACCES EIO",
    "unlink": "ENOENT EROFS EACCES", "unlinkat": "ENOENT EROFS EACCES", "mkdir": "EACCES ENOSPC EROFS",
    "mkdirat": "EACCES ENOSPC EROFS", "getdents64": "EIO ENOENT", "socket": "EMFILE EACCES",
    "socketpair": "EMFILE ENFILE", "connect": "ECONNREFUSED EAGAIN EINTR ENOENT", "bind": "EADDRINUSE ENOSPC",
    "listen": "EADDRINUSE", "accept4": "EMFILE ECONNABORTED EINTR", "sendmsg": "EPIPE ENOBUFS ETOOMANYREFS EINTR",
    "recvmsg": "ECONNRESET EMFILE EINTR EAGAIN", "sendto": "EPIPE ENOBUFS", "recvfrom": "ECONNRESET EINTR",
    "setsockopt": "ENOMEM", "getsockopt": "ENOBUFS", "pipe2": "EMFILE ENFILE", "eventfd2": "EMFILE",
    "timerfd_create": "EMFILE", "timerfd_settime": "EINVAL", "signalfd4": "EMFILE ENOMEM",
    "epoll_create1": "EMFILE", "epoll_ctl": "ENOMEM ENOSPC", "epoll_wait": "EINTR", "epoll_pwait": "EINTR",
    "inotify_init1": "EMFILE", "inotify_add_watch": "ENOSPC ENOENT", "inotify_rm_watch": "EINVAL",
    "poll": "EINTR ENOMEM", "ppoll": "EINTR ENOMEM", "clone": "EAGAIN ENOMEM", "clone3": "EAGAIN ENOMEM",
    "fork": "EAGAIN", "vfork": "EAGAIN", "execve": "ENOENT EACCES ENOMEM", "wait4": "ECHILD EINTR",
    "pidfd_open": "EMFILE ESRCH ENOSYS", "memfd_create": "EMFILE ENOMEM", "getrandom": "EAGAIN EINTR ENOSYS",
    "setsid": "EPERM", "prctl": "EINVAL", "sched_getaffinity": "EINVAL", "statfs": "EIO", "fstatfs": "EIO",
    "prlimit64": "EPERM", "lseek": "EIO", "readv": "EIO", "writev": "EIO", "getcwd": "ENOENT",
}
MUTE = ("newfstatat:1+", "fstat:1+")  # stderr cannot be known for what it is: nothing is written there
PASSING = ("EINTR", "EAGAIN")  # for ever they are no fault but an endless loop


class Wrong(Exception):
    """What a process did that it must not."""


class Killed(Exception):
    """By us. What the others see then is not played on, but nothing may be left."""


class Misplaced(Exception):
    """The call that was made to fail was the simulated driver's own: code 999, which it gives for nothing else."""


class Runtime:
    """CUDA's, or a generation of AMD's: its programs, our library for them, and in what its answers differ."""

    def __init__(self, generation=None):
        self.is_hip = generation is not None
        self.puppet = f"puppet_{generation}" if generation else "puppet"
        self.libraries = f"sim/{generation}" if generation else "sim"
        self.module = "libgpushare-hip.so" if generation else "libgpushare.so"
        self.stale = (17,) if generation else (1, 800)  # an open of memory that was freed


class Puppet:
    """One program, on pipes; told a command, it answers "<code> <values...>" within TIMEOUT."""

    def __init__(self, stage, name, words, environment):
        self.name, self.mortal = name, stage.lethal and name == stage.victim
        self.errors = open(stage.place / f"{name}.stderr", "wb")
        self.process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, bufsize=0)

    def tell(self, command):
        try:
            self.process.stdin.write(command.encode() + b"\n")
        except BrokenPipeError:
            pass
        line = trial.answer(self.process, TIMEOUT)
        if line is None:
            raise Wrong(f"{self.name}: {command}: hangs")
        if not line and self.mortal and self.wait() == 128 + signal.SIGKILL:
            raise Killed
        if not line:
            raise Wrong(f"{self.name}: {command}: ended with {self.wait()}")
        return line.split()

    def wait(self):
        try:
            return self.process.wait(TIMEOUT)
        except subprocess.TimeoutExpired:
            raise Wrong(f"{self.name}: its end hangs") from None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


class Stage:
    """Where one scenario plays: a directory, a configuration, and which of the processes suffers."""

    def __init__(self, lane, runtime, victim=None, fault=None, bare=False):
        self.lane, self.runtime, self.victim, self.fault, self.bare = lane, runtime, victim, fault, bare
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="run-", dir=lane.place))
        self.lethal = fault is not None and fault.endswith(":KILL")
        self.puppets, self.shared, self.steps = [], None, []

    def environment(self, config):
        path = self.place / f"{len(self.puppets)}.conf"
        path.write_text(config)
        return self.lane.environment | {"GPUSHARE_CONFIG": str(path), "GPUSHARE_DIR": f"{self.place}/pub",
                                        "GPUSHARE_KEEPER": f"{self.lane.build}/gpushare",
                                        "LD_LIBRARY_PATH": f"{self.lane.build}/{self.runtime.libraries}"}

    def under_injection(self, module):
        words = [self.lane.build / "tests/fault-inject", "-m", module, "-r", self.place / "record",
                 "-l", self.place / "hits"]
        return [*words, *(["-f", self.fault] if self.fault else []), "--"]

    def start(self, name, config=""):
        words, environment = [self.lane.build / "tests/apps" / self.runtime.puppet], self.environment(config)
        if not self.bare:
            suffers = name == self.victim
            environment["INJECT_PRELOAD" if suffers else "LD_PRELOAD"] = f"{self.lane.build}/{self.runtime.module}"
            if suffers:
                words = self.under_injection(self.runtime.module) + words
        self.puppets.append(Puppet(self, name, words, environment))
        return self.puppets[-1]

    def start_keeper(self):
        """`gpushare keeper` as the one that suffers; it is there when its socket is, or never."""
        if self.bare or self.victim != "keeper":
            return
        words = self.under_injection("gpushare") + [self.lane.build / "gpushare", "keeper", "--idle", "1s"]
        self.puppets.append(Puppet(self, "keeper", words, self.environment("")))
        socket, process = self.place / "pub/default/keeper", self.puppets[-1].process
        trial.eventually(lambda: socket.exists() or process.poll() is not None, 2, 0.005)

    # --- what is expected ---

    def does(self, puppet, command, code=0):
        """Tells and compares the code; returns the words after it."""
        words = puppet.tell(command)
        allowed = code if isinstance(code, tuple) else (code,)
        if int(words[0]) == 999 and self.fault:
            raise Misplaced
        if int(words[0]) not in allowed:
            raise Wrong(f"{puppet.name}: {command}: {words[0]} instead of {' or '.join(map(str, allowed))}")
        return words[1:]

    def reads(self, puppet, name, byte, offset=0):
        got = self.does(puppet, f"read {name} {offset} 16")[0]
        if got != f"{byte:02x}" * 16:
            raise Wrong(f"{puppet.name}: read {name} {offset}: {got} instead of {byte:02x}")

    def reads_shared(self, puppet, name, byte, offset=0):
        """The other's bytes, or always its own."""
        got = self.does(puppet, f"read {name} {offset} 16")[0] == f"{byte:02x}" * 16
        if self.shared is None:
            self.shared = got
        if self.shared != got:
            raise Wrong(f"{puppet.name}: read {name} {offset}: "
                        f"{'shared' if self.shared else 'private'} before, and now it is not")

    def opens_stale(self, puppet, name, handle, byte):
        """Refused; or, where its exporter could not say that it has gone, the bytes of then."""
        code = int(puppet.tell(f"open {name} {handle}")[0])
        if code == 0 and self.fault:
            self.reads(puppet, name, byte)
            self.does(puppet, f"close {name}")
        elif code not in self.runtime.stale:
            raise Wrong(f"{puppet.name}: open {name}, stale: {code} instead of "
                        f"{' or '.join(map(str, self.runtime.stale))}")

    def opens_token(self, puppet, name, handle, byte):
        """The driver cannot open one; so where gpushare cannot, it fails, and is reported."""
        code = int(puppet.tell(f"open {name} {handle}")[0])
        if code == 0:
            self.reads(puppet, name, byte)
        elif self.fault and self.fault.startswith(MUTE):
            pass
        elif not self.fault or b"GPUSHARE" not in (self.place / f"{puppet.name}.stderr").read_bytes():
            raise Wrong(f"{puppet.name}: open {name}, a token: {code}, and no report")
        return code == 0

    def ends(self, puppet, status=0):
        puppet.process.stdin.close()
        got = puppet.wait()
        if got != status and not (puppet.mortal and got == 128 + signal.SIGKILL):
            raise Wrong(f"{puppet.name}: ended with {got} instead of {status}")

    # --- afterwards ---

    def reported(self):
        return any(b"GPUSHARE" in path.read_bytes() for path in self.place.glob("*.stderr"))

    def judge(self):
        if self.shared is False and not self.bare and not self.reported():
            raise Wrong("private instead of shared, without a report")
        self.judge_memory()
        self.judge_processes()
        for puppet in self.puppets:
            if puppet.name == "keeper" and puppet.wait() not in (0, 1) and not puppet.mortal:
                raise Wrong(f"keeper: ended with {puppet.process.returncode}")
        if not self.bare:
            self.judge_directory()

    def judge_memory(self):
        if not trial.eventually(lambda: self.lane.used() <= self.lane.before, 10):
            raise Wrong(f"{(self.lane.used() - self.lane.before) >> 10} KiB of device memory are still in use")

    def keepers(self):
        injectors = [puppet.process.pid for puppet in self.puppets]
        return [pid for pid in trial.processes(f"{self.place}/pub") if pid not in injectors]

    def judge_processes(self):
        trial.send(self.keepers(), signal.SIGTERM)
        if not trial.eventually(lambda: not self.keepers(), 10):
            raise Wrong("a keeper stays after SIGTERM")

    def judge_directory(self):
        if left := trial.files_after_gc(self.lane.build, self.place / "pub", self.lane.environment):
            raise Wrong(f"files left after gc: {' '.join(left)}")

    def clear(self):
        for puppet in self.puppets:
            puppet.kill()
        trial.send(self.keepers(), signal.SIGKILL)

    def record(self):
        try:
            lines = (self.place / "record").read_text().splitlines()
        except OSError:
            return {}
        return {name: int(count) for name, count in map(str.split, lines)}

    def hits(self):
        try:
            return (self.place / "hits").read_text().splitlines()
        except OSError:
            return []


# --- scenarios ---

def handles(stage):
    """By the programs' own handles: a free while open, a stale handle, an event, an end while open."""
    a, b = stage.start("exporter"), stage.start("importer")
    stage.does(a, f"malloc m {SIZE}")
    stage.does(a, f"fill m 0x5a {SIZE}")
    handle = stage.does(a, "get m")[0]
    stage.does(b, f"open q {handle}")
    stage.reads(b, "q", 0x5a)
    if stage.runtime.is_hip:  # which takes it for a close
        stage.does(b, "free q")
        stage.does(b, f"open q {handle}")
    else:
        stage.does(b, "free q", 1)
    stage.does(a, "free m")
    stage.does(a, f"malloc n {SIZE}")
    stage.does(a, f"fill n 0x33 {SIZE}")
    stage.reads(b, "q", 0x5a)
    stage.does(b, "close q")
    stage.does(b, "close q", 1)
    stage.opens_stale(b, "s", handle, 0x5a)
    stage.does(a, "free n")
    stage.does(a, "free n", 1)
    stage.does(a, "evcreate e 6")
    event = stage.does(a, "evget e")[0]
    stage.does(b, f"evopen f {event}")
    stage.does(b, "evquery f")
    stage.does(a, "evdestroy e")
    stage.does(b, "evdestroy f")
    stage.does(a, f"malloc c {SIZE}")
    stage.does(a, f"fill c 0x21 {SIZE}")
    stage.does(b, f"open r {stage.does(a, 'get c')[0]}")
    child = stage.does(a, "fork malloc z 4096")
    if child[:2] != ["0", "3"] and not (a.mortal and child[0] == "137"):
        raise Wrong(f"exporter: fork: {' '.join(child)} instead of 0 3")
    stage.ends(a)
    stage.reads(b, "r", 0x21)
    stage.does(b, "close r")
    stage.ends(b)


def cached(stage):
    """open_cache: opened again and again, and let go of when the exporter frees."""
    config = "[gpushare]\nopen_cache = 4\n"
    a, b = stage.start("exporter", config), stage.start("importer", config)
    for name, byte in (("m", 0x5a), ("n", 0x33)):
        stage.does(a, f"malloc {name} {SIZE}")
        stage.does(a, f"fill {name} {byte} {SIZE}")
        handle = stage.does(a, f"get {name}")[0]
        for _ in range(3):
            stage.does(b, f"open q {handle}")
            stage.reads(b, "q", byte)
            stage.does(b, "close q")
        stage.does(b, "close q", 1)
        stage.does(a, f"free {name}")
        stage.opens_stale(b, "s", handle, byte)
    stage.ends(b)
    stage.ends(a)


RULE = "[region r]\nsize = 4MiB\nrole = {}\n"


def rule(stage):
    """By a rule, legacy memory: both see each other's writes, and the free waits."""
    a = stage.start("exporter", RULE.format("export"))
    b = stage.start("importer", RULE.format("import") + "wait = 300ms\n")
    stage.does(a, f"malloc m {SIZE}")
    stage.does(a, f"fill m 0x5a {SIZE}")
    stage.does(b, f"malloc q {SIZE}")
    stage.reads_shared(b, "q", 0x5a)
    stage.does(a, "fill m 0x77 16 64")
    stage.reads_shared(b, "q", 0x77, 64)
    stage.does(b, "fill q 0x99 16 128")
    stage.reads_shared(a, "m", 0x99, 128)
    stage.does(a, "free m")
    stage.does(a, "free m", 1)
    stage.does(a, f"malloc c {SIZE * 2}")
    stage.does(a, f"fill c 0x33 {SIZE * 2}")
    stage.reads_shared(b, "q", 0x5a)
    stage.does(b, "free q")
    stage.does(b, "free q", 1)
    stage.ends(a)
    stage.ends(b)


def vmm(stage):
    """Memory with a keeper: it outlives its creator, and a token opens it."""
    config = RULE.format("auto") + "backing = vmm\nkeep = users\nwait = 300ms\n"
    stage.start_keeper()
    a, b, c = stage.start("exporter", config), stage.start("importer", config), stage.start("third")
    stage.does(a, f"malloc m {SIZE}")
    stage.does(a, f"fill m 0x5a {SIZE}")
    stage.does(b, f"malloc q {SIZE}")
    stage.reads_shared(b, "q", 0x5a)
    token = stage.opens_token(c, "t", stage.does(a, "get m")[0], 0x5a)
    stage.does(a, "fill m 0x77 16 64")
    stage.reads_shared(b, "q", 0x77, 64)
    if token:
        stage.reads(c, "t", 0x77, 64)
    stage.does(a, "free m")
    stage.does(a, "free m", 1)
    stage.ends(a)
    stage.reads_shared(b, "q", 0x5a)
    if token:
        stage.reads(c, "t", 0x5a)
        stage.does(c, "close t")
        stage.does(c, "close t", 1)
    stage.does(b, "free q")
    stage.ends(b)
    stage.ends(c)


def handover(stage):
    """ready = free: the exporter frees and ends, and then the importer comes."""
    a = stage.start("exporter", RULE.format("export") + "ready = free\nhandover = 2s\n")
    stage.does(a, f"malloc m {SIZE}")
    stage.does(a, f"fill m 0x5a {SIZE}")
    stage.does(a, "free m")
    b = stage.start("importer", RULE.format("import") + "wait = 300ms\n")
    stage.does(b, f"malloc q {SIZE}")
    stage.reads_shared(b, "q", 0x5a)
    stage.ends(a)
    stage.reads_shared(b, "q", 0x5a)
    stage.does(b, "free q")
    stage.ends(b)


def merge(stage):
    """role = merge: whatever becomes of the sharing, each has the bytes that it uploaded."""
    config = RULE.format("merge") + "keep = users\nquiet = 0\n"
    a, b = stage.start("exporter", config), stage.start("importer", config)
    for puppet, seed in ((a, 7), (b, 7)):
        stage.does(puppet, f"malloc m {SIZE}")
        stage.does(puppet, f"upload m 0 {SIZE} {seed} sync")
        stage.does(puppet, f"expect m 0 {SIZE} {seed}")
    stage.does(b, f"upload m 0 {SIZE} 9 sync")
    stage.does(b, f"expect m 0 {SIZE} 9")
    stage.does(a, f"expect m 0 {SIZE} 7")
    stage.ends(a)
    stage.does(b, f"expect m 0 {SIZE} 9")
    stage.does(b, "free m")
    stage.ends(b)


CUDA, PAIR = Runtime(), ("exporter", "importer")
SCENARIOS = {"handles": (handles, PAIR, CUDA), "cached": (cached, PAIR, CUDA), "rule": (rule, PAIR, CUDA),
             "vmm": (vmm, (*PAIR, "third", "keeper"), CUDA), "handover": (handover, PAIR, CUDA),
             "merge": (merge, PAIR, CUDA)}
for generation in ("hip6", "hip7"):
    for scenario in (handles, rule, handover):
        SCENARIOS[f"{generation}-{scenario.__name__}"] = (scenario, PAIR, Runtime(generation))


class Lane:
    """A simulated card of its own, for runs one after the other."""

    def __init__(self, build, place, number):
        self.build, self.place = build, place / str(number)
        self.place.mkdir()
        self.environment = trial.on_card(build, self.place)
        self.meter = trial.Meter(build / "tests/apps/puppet", self.environment)
        self.before = self.used()

    def used(self):
        return self.meter.used()


class Run:
    """One play of a scenario, and what was wrong."""

    def __init__(self, scenario, victim, fault):
        self.scenario, self.victim, self.fault = scenario, victim, fault
        self.wrong, self.hits, self.record, self.place, self.shared = None, [], {}, None, None
        self.misplaced = False

    def name(self):
        return f"{self.scenario}:{self.victim}:{self.fault}"

    def perform(self, stage):
        try:
            SCENARIOS[self.scenario][0](stage)
        except Killed:
            stage.shared = None
            for puppet in stage.puppets:
                if puppet.name not in ("keeper", self.victim):
                    stage.ends(puppet)

    def play(self, lane, keep=False):
        stage = Stage(lane, SCENARIOS[self.scenario][2], self.victim, self.fault, bare=self.victim == "bare")
        try:
            self.perform(stage)
            stage.judge()
        except Misplaced:
            self.misplaced = True
        except Wrong as wrong:
            self.wrong = str(wrong)
        finally:
            stage.clear()
        self.record, self.hits, self.shared = stage.record(), stage.hits(), stage.shared
        if self.wrong and keep:
            self.place = stage.place
        else:
            shutil.rmtree(stage.place, ignore_errors=True)
        trial.eventually(lambda: lane.used() <= lane.before, 5)
        lane.before = lane.used()  # a run that leaves something is blamed once
        return self


class Crew:
    """Lanes side by side."""

    def __init__(self, build, place, jobs, keep):
        self.lanes, self.keep, self.jobs = queue.Queue(), keep, jobs
        for number in range(jobs):
            self.lanes.put(Lane(build, place, number))

    def play(self, runs):
        def one(run):
            lane = self.lanes.get()
            try:
                return run.play(lane, self.keep)
            finally:
                self.lanes.put(lane)
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            yield from pool.map(one, runs)

    def close(self):
        while not self.lanes.empty():
            self.lanes.get().meter.close()


def faults_of(call, count, options):
    if options.kill:
        errors = ["KILL"]
    else:
        errors = ERRORS.get(call, "").split()
    if options.quick:
        return [f"{call}:{n}:{error}" for error in errors[:1] for n in sorted({1, (count + 1) // 2, count})]
    ever = [f"{call}:1+:{error}" for error in errors if error not in PASSING + ("KILL",)]
    return [f"{call}:{n}:{error}" for n in range(1, count + 1) for error in errors] + ever


def chosen(options, build):
    """AMD's runtime is built where its headers are."""
    return {name: victims for name, (_, victims, runtime) in SCENARIOS.items()
            if options.scenario in (None, name) and (build / "tests/apps" / runtime.puppet).exists()}


def plan(options, build, crew):
    """Bare runs must be right and recording ones, too; then one run for each fault."""
    first = [Run(name, victim, None) for name, victims in chosen(options, build).items()
             for victim in ("bare", *victims)]
    runs = []
    for run in crew.play(first):
        if run.wrong:
            raise SystemExit(f"fault: {run.scenario}, {run.victim}, without a fault: {run.wrong}")
        for call, count in run.record.items():
            if options.only in (None, call):
                runs += [Run(run.scenario, run.victim, fault) for fault in faults_of(call, count, options)]
    return runs


def where(build, run):
    """Functions of the module that lead to the call, innermost first."""
    if not run.hits:
        return "not reached"
    module = build / ("gpushare" if run.victim == "keeper" else SCENARIOS[run.scenario][2].module)
    places = [hex(int(word, 16) - 1) for word in run.hits[0].split()[2:]]
    said = subprocess.run(["addr2line", "-f", "-s", "-e", module, *places], capture_output=True, text=True, check=False)
    return " < ".join(said.stdout.splitlines()[::2][:6])


def report(build, run):
    print(f"FAILED {run.name()}: {run.wrong}\n       in {where(build, run)}"
          + (f"\n       kept: {run.place}" if run.place else ""), flush=True)


def arguments():
    parser = trial.options(__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--only")
    parser.add_argument("--scenario", choices=SCENARIOS)
    parser.add_argument("--fault", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=2 * (os.cpu_count() or 1))
    return parser.parse_args()


def main():
    options = arguments()
    build, place = options.build, trial.make_place("fault")
    crew, counts, started = None, collections.Counter(), time.monotonic()
    try:
        crew = Crew(build, place, options.jobs, options.keep)
        runs = [Run(*fault.split(":", 2)) for fault in options.fault] or plan(options, build, crew)
        for run in crew.play(runs):
            counts["runs"] += 1
            counts["reached"] += bool(run.hits) and not run.misplaced
            counts["misplaced"] += run.misplaced
            counts["shared" if run.shared else "private"] += run.shared is not None
            if run.wrong:
                counts["failed"] += 1
                report(build, run)
    finally:
        if crew:
            crew.close()
        if not (options.keep and counts["failed"]):
            shutil.rmtree(place, ignore_errors=True)
    print(f"{counts['runs']} runs, {counts['reached']} with a call that failed, {counts['misplaced']} with one of "
          f"the driver's; shared in {counts['shared']}, private "
          f"in {counts['private']}; {counts['failed']} failures; {time.monotonic() - started:.0f} s")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
