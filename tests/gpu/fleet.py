"""The replicas that replicas.py starts: processes that serve, bare or preloaded, on one card; and its rows.

Owns the machine's side of it: the environment, the card's memory in use (NVML, which nvidia-smi reads; on the
simulator a program that asks), the published directory, and that every process is ended. What went wrong is an
exception `Failed`, with what the process said.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import queue
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MIB, GIB = 1 << 20, 1 << 30
NOISE = 16 * MIB # the card's own figure moves by so much


class Failed(Exception):
    pass


class Nvml:
    """The card's memory in use, in bytes."""

    class Memory(ctypes.Structure):
        _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]

    def __init__(self, card):
        self.library, self.device = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        if self.library.nvmlInit_v2() or self.library.nvmlDeviceGetHandleByIndex_v2(card, ctypes.byref(self.device)):
            raise OSError("NVML does not start")

    def used(self):
        memory = self.Memory()
        if self.library.nvmlDeviceGetMemoryInfo(self.device, ctypes.byref(memory)):
            raise Failed("NVML does not say how much memory is in use")
        return memory.used


class Fleet:
    """All that one step starts. Leaving the `with` ends it."""

    def __init__(self, build, driver, name):
        self.build, self.driver, self.name = pathlib.Path(build).resolve(), driver, name
        self.programs = self.build / ("gpu" if driver == "gpu" else "gpu-sim")
        self.library = self.build / "libgpushare.so"
        if not self.library.exists():
            sys.exit(f"{self.library} is not built") # the loader would go on without it
        self.results = pathlib.Path(os.environ.get("RESULTS", self.build / "gpu-results"))
        self.results.mkdir(exist_ok=True)
        for old in self.results.glob(f"replicas-{name}-*"):
            old.unlink()
        shm = os.environ.get("GPUSHARE_DIR", "/dev/shm")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="replicas-", dir=shm))
        self.scratch = None
        self.behind = [] # other libraries that are preloaded, behind gpushare's
        self.members = []
        self.card = int((os.environ.get("CUDA_VISIBLE_DEVICES") or "0").split(",")[0]) # as NVML counts
        self.nvml = None
        if driver == "gpu":
            try:
                self.nvml = Nvml(self.card)
            except OSError:
                pass # nvidia-smi, then

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            member.kill()
        for pid in self.keepers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.directory, ignore_errors=True)
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def room_for(self, size):
        """A folder for files: memory where there is enough of it, so that no disk is measured."""
        shm = shutil.disk_usage("/dev/shm").free > 2 * size
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="gpushare-weights-", dir="/dev/shm" if shm else None))
        return self.scratch

    def environment(self, config, log=None):
        words = {key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE_") or "_SIM_" in key}
        words["KERNELS"] = f"{self.build}/tests/apps/kernels.ptx"
        preloaded = [str(self.library)] * bool(config) + [str(library) for library in self.behind]
        if preloaded:
            words["LD_PRELOAD"] = ":".join(preloaded)
        if config:
            words |= {"GPUSHARE_CONFIG": str(config), "GPUSHARE_DIR": str(self.directory), "GPUSHARE_LOG": str(log),
                      "GPUSHARE_LOG_FORMAT": "jsonl"}
        return words

    def config(self, name, text):
        path = self.results / f"replicas-{self.name}-{name}.conf"
        path.write_text(text, encoding="utf-8")
        self.tool("check", path)
        return path

    def tool(self, *words):
        done = subprocess.run([f"{self.build}/gpushare", *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "GPUSHARE_DIR": str(self.directory)}, text=True, timeout=30)
        if done.returncode:
            raise Failed(f"gpushare {words[0]} ends with {done.returncode}: {done.stdout.strip()[-300:]}")
        return done.stdout

    def once(self, *words, timeout=60):
        """A bare program that ends by itself: what it prints."""
        done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=self.environment(None), timeout=timeout)
        if done.returncode:
            raise Failed(f"{pathlib.Path(words[0]).name} {words[1]} ends with {done.returncode}: {done.stdout[-300:]}")
        return done.stdout

    def start(self, name, words, config=None):
        member = Replica(self, name, words, config)
        self.members.append(member)
        return member

    def learn(self, name, words, seconds, said=""):
        """The file of the rules that `gpushare learn` writes about a server, to which this is said at first."""
        rules = self.results / f"replicas-{self.name}-{name}.conf"
        with open(rules.with_suffix(".out"), "w", encoding="utf-8") as output:
            learning = subprocess.Popen([f"{self.build}/gpushare", "learn", "--replicas=1", "--for", f"{seconds}s", "-o", rules, "--", *map(str, words)],
                                        stdin=subprocess.PIPE, stdout=output, stderr=subprocess.STDOUT, text=True,
                                        env={**self.environment(None), "GPUSHARE_DIR": str(self.directory)})
            with learning: # its input stays open so long
                learning.stdin.write(said)
                learning.stdin.flush()
                status = learning.wait(seconds + 40)
        if status:
            raise Failed(f"gpushare learn ends with {status}: {rules.with_suffix('.out').read_text(encoding='utf-8')[-300:]}")
        self.tool("check", rules)
        return rules

    def used(self):
        if self.nvml:
            return self.nvml.used()
        if self.driver == "gpu":
            return self.smi()
        return int(self.once(self.programs / "weights_shared", "used"))

    def smi(self):
        if self.driver != "gpu":
            return self.used()
        return int(self.once("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", self.card)) * MIB

    def stable_use(self, most, timeout=10):
        """The memory in use, once it is at most so much, or what it is at last: ended processes take a while."""
        until = time.monotonic() + timeout
        while (used := self.used()) > most and time.monotonic() < until:
            time.sleep(0.1)
        return used

    def at_rest(self, most, timeout):
        """The memory in use, once it is at most so much and has not changed for a second, or at last."""
        until, since = time.monotonic() + timeout, time.monotonic()
        used = last = self.stable_use(most, timeout)
        while time.monotonic() < min(until, since + 1):
            time.sleep(0.1)
            used = self.used()
            if used != last:
                last, since = used, time.monotonic()
        return used

    def context(self, words):
        """What a process costs that answers its first sum of next to no weights; the card as it is without it."""
        before = self.used()
        one = self.start("context", words).ready()
        one.ask("sum")
        cost = self.used() - before
        one.end()
        return max(0, cost), self.stable_use(before + NOISE, 5)

    def left(self, timeout=10):
        """What is in the published directory that means something, once nothing is, or at last."""
        until = time.monotonic() + timeout
        while True:
            files = [path for path in self.directory.rglob("*")
                     if not path.is_dir() and path.name not in ("lock", "keeper.lock", "pids", "exclusions-2", "secret")]
            if not files or time.monotonic() > until:
                return files
            time.sleep(0.1)

    def merged(self):
        """Bytes in blocks that the keeper holds: their names tell."""
        names = [path.name.split(".") for path in self.directory.glob("*/names/block.*")]
        return sum(int(name[2]) * MIB for name in names)

    def saved(self):
        """Bytes that merging saves, as `ls` tells."""
        return sum(one["saved"] for one in json.loads(self.tool("ls", "--json")) if one["state"] == "merged")

    def keepers(self):
        """Processes that keep this directory, by their words and environment."""
        found, mine = [], str(self.directory).encode()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes()
                if b"\0keeper\0" in words and mine in words + (process / "environ").read_bytes():
                    found.append(int(process.name))
            except OSError:
                continue
        return found


class Peak:
    """The most memory that was in use within the `with`."""

    def __init__(self, fleet):
        self.fleet, self.most, self.samples, self.ending = fleet, 0, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self):
        while not self.ending.wait(0.01):
            self.most = max(self.most, self.fleet.used())
            self.samples += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()


FILL = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
free, total, device, context, at = (ctypes.c_size_t() for _ in range(5))
codes = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0), cuda.cuCtxCreate_v2(ctypes.byref(context), 0, device),
         cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))]
codes.append(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(free.value - int(sys.argv[1]))))
print(codes, flush=True)
sys.stdin.read()
"""


class Filled:
    """Within the `with` another process has all of the card but so many bytes."""

    def __init__(self, fleet, but):
        self.process = subprocess.Popen([sys.executable, "-c", FILL, str(but)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=fleet.environment(None), text=True)

    def __enter__(self):
        codes = self.process.stdout.readline()
        if codes.strip() != str([0] * 5):
            sys.exit(f"the card could not be filled: {codes}")
        return self

    def __exit__(self, *_):
        self.process.communicate("")


class Replica:
    """A process that says "ready ...", and answers a line with a line."""

    def __init__(self, fleet, name, words, config):
        stem = fleet.results / f"replicas-{fleet.name}-{name}"
        self.name, self.log, self.output = name, pathlib.Path(f"{stem}.jsonl"), open(f"{stem}.out", "w", encoding="utf-8")
        self.began, self.load, self.whole = time.monotonic(), None, None
        self.lines, self.said = queue.Queue(), "nothing"
        self.process = subprocess.Popen([str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.output, env=fleet.environment(config, self.log), text=True, bufsize=1)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put((time.monotonic(), line.strip()))
            print(line, end="", file=self.output, flush=True)
        self.lines.put((time.monotonic(), None))

    def line(self, timeout):
        try:
            when, text = self.lines.get(timeout=timeout)
        except queue.Empty:
            raise Failed(f"{self.name} says nothing for {timeout} s") from None
        if text is None:
            raise Failed(f"{self.name} has ended with {self.process.wait()}; the last that it said: {self.said}")
        self.said = text
        return when, text

    def ready(self, timeout=60):
        """Waits until it serves: seconds that it loaded, and since it was started."""
        while True:
            when, text = self.line(timeout)
            if text.startswith("ready "):
                self.load, self.whole = float(text.split()[2]), when - self.began
                return self

    def ask(self, question, timeout=30):
        try:
            self.process.stdin.write(question + "\n")
        except OSError:
            raise Failed(f"{self.name} has gone") from None
        return self.line(timeout)[1].split(" ", 1)[1]

    def end(self, timeout=30):
        """As it ends by itself; its status."""
        try:
            self.process.stdin.write("end\n")
            self.process.stdin.close()
            return self.process.wait(timeout)
        except (OSError, subprocess.TimeoutExpired):
            self.kill()
            return "not at all"

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait()

    def reports(self):
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return [report for report in map(json.loads, text.splitlines()) if report["finding"]]

    def findings(self):
        """Names of what it has reported, counted."""
        names = [report["finding"] for report in self.reports()]
        return {name: names.count(name) for name in sorted(set(names))}


class Table:
    """Rows on standard output: ok, FAIL, miss or skip, a tab, what was shown, a tab, the figures. And figures of its own
    for the table of docs/replicas.md."""

    def __init__(self):
        self.figures = []

    def row(self, good, name, remark=""):
        print("ok" if good else "FAIL", name, remark, sep="\t", flush=True)

    def goal(self, good, name, remark=""):
        """A time and its goal: beyond it nothing is wrong."""
        print("ok" if good else "miss", name, remark, sep="\t", flush=True)

    def skip(self, name, reason):
        print("skip", name, reason, sep="\t", flush=True)

    def figure(self, program, measured, bare, having, at_once=False):
        """at_once: with `quiet = 0`."""
        self.figures.append({"program": program, "measured": measured, "bare": bare, "column": "quiet = 0" if at_once else "merged",
                             "figure": having})

    @contextlib.contextmanager
    def part(self, name):
        """What fails inside is a row, and what follows goes on."""
        try:
            yield
        except (Failed, OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            self.row(False, name, f"{type(error).__name__}: {error}".replace("\n", " ")[:300])


def seconds(times):
    """The median, and from when to when."""
    return f"{statistics.median(times):.2f} s ({min(times):.2f} to {max(times):.2f})"


def sums(members):
    return [member.ask("sum") for member in members]


def merge_rule(program, **keys):
    """Three lines, and what else is wanted."""
    return f"[region weights]\nprogram = {program}\nrole = merge\n" + "".join(f"{key} = {value}\n" for key, value in keys.items())


def gib(value):
    return f"{value / GIB:.2f} GiB" if abs(value) >= GIB // 4 else f"{value / MIB:.0f} MiB"


if __name__ == "__main__":
    sys.exit("fleet.py is a part of replicas.py")
