#!/usr/bin/env python3
"""What compute-sanitizer says of programs that misuse CUDA, beside what an audit says, and what each of them costs.

usage: sanitizer.py BUILD gpu|sim
A line a row: ok, FAIL or skip, a tab, what was shown, a tab, the figures. RESULTS/sanitizer.md has the tables, and the
folder RESULTS/sanitizer what was printed.

SANITIZER_SECONDS=n    after so long nothing more is started under compute-sanitizer (450)
SANITIZER_IDS="id ..."  only these misuses
COMPUTE_SANITIZER=FILE instead of the one in CUDA_HOME/bin or PATH
"""
import collections
import concurrent.futures
import datetime
import importlib.util
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
OPTIONS = "--tool memcheck --leak-check full --report-api-errors explicit".split()
NOT_RUN = "not run"
AT_ONCE, ROUNDS = 8, 3
PATIENCE, LONG_PATIENCE = 24, 100 # seconds: for a misuse, for a program that is timed
RULED = ("share-", "write-", "merge-") # these need a rule, which an audit does not follow
KNOWN = {"open-unknown-exited": "open-dead-owner"} # an audit keeps what the dead owner has left
# Of what compute-sanitizer prints, the lines that report nothing.
FRAME = re.compile(r"COMPUTE-SANITIZER|(ERROR|LEAK) SUMMARY|Target application returned|Error: process didn't terminate")
CODE = re.compile(r'Program hit \w+ \(error (\d+)\) due to "([^"]*)" on CUDA API call to (\w+)')
LEAK = re.compile(r"Leaked ([\d,]+) bytes")

Said = collections.namedtuple("Said", "kind text") # kind: silent, code, leak, words, none
Line = collections.namedtuple("Line", "id sanitizer named found")


def run(words, log, patience, **variables):
    """Its exit status, None if it was not done in time, and what it printed. Children end with it."""
    with open(log, "w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen([str(word) for word in words], env={**os.environ, **variables}, cwd=log.parent, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            status = process.wait(patience)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        return status, output.read()


def sanitizer_of(driver):
    """compute-sanitizer, or None."""
    places = [os.environ.get("COMPUTE_SANITIZER", ""), os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin/compute-sanitizer")]
    found = next((place for place in places if os.access(place, os.X_OK)), None) or shutil.which("compute-sanitizer")
    return found if driver == "gpu" else None


def once(items):
    return list(dict.fromkeys(items))


def said(status, output):
    """What compute-sanitizer reports in this output."""
    told = [line for line in re.findall(r"^=+ (\S.*)$", output, re.M) if not FRAME.search(line)]
    failed = [line for line in told if line.startswith("Error: ")]
    if failed or "COMPUTE-SANITIZER" not in output:
        return Said("none", "it fails: " + (failed or output.strip().splitlines() or [""])[-1])
    codes = once(f"{text} ({code}) from {call}" for code, text, call in (match.groups() for match in map(CODE.search, told) if match))
    leaked = sum(int(match[1].replace(",", "")) for match in map(LEAK.search, told) if match)
    words = once(re.sub(r"0x[0-9a-f]+", "an address", line).rstrip(".") for line in told if not CODE.search(line) and not LEAK.search(line))
    kind = "words" if words else "code" if codes else "leak" if leaked else "silent"
    text = "<br>".join(words + codes + [f"{leaked:,} bytes leaked"] * (leaked > 0)) or "silent"
    if status is None:
        text += f"<br>not done after {PATIENCE} s"
    elif status:
        text += f"<br>the program ends with {status}"
    return Said(kind, text)


def place(finding):
    """The innermost place of a finding that has a line, as the tool's table of contents names it."""
    stacks = [finding["stack"], *(event["stack"] for event in finding["prior"])]
    frames = [frame for stack in stacks for frame in stack if frame["line"]]
    return f"{frames[0]['function']} at {os.path.basename(frames[0]['file'])}:{frames[0]['line']}" if frames else ""


class Misuses:
    """Each misuse bare, audited and sanitized."""

    def __init__(self, build, sanitizer, logs, until):
        self.build, self.sanitizer, self.logs, self.until = build, sanitizer, logs, until
        self.program = build / "tests/apps/misuse"

    def ids(self):
        listed = subprocess.run([self.program, "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        only = os.environ.get("SANITIZER_IDS", "").split() or listed
        return [one for one in listed if one in only and not one.startswith(RULED)]

    def audited(self, misuse):
        report = self.logs / f"{misuse}.json"
        with tempfile.TemporaryDirectory() as place_of_records:
            run([self.build / "gpushare", "audit", f"--json={report}", "--", self.program, misuse], self.logs / f"{misuse}.audit", PATIENCE,
                GPUSHARE_CONFIG="/dev/null", GPUSHARE_DIR=f"{place_of_records}/dir")
        return json.loads(report.read_text(encoding="utf-8")) if report.exists() else []

    def sanitized(self, misuse):
        if not self.sanitizer or time.monotonic() > self.until:
            return Said("none", NOT_RUN)
        return said(*run([self.sanitizer, *OPTIONS, "--target-processes", "all", self.program, misuse], self.logs / f"{misuse}.sanitizer", PATIENCE))

    def one(self, misuse):
        """A line of the table, or the name of what this machine cannot make."""
        status, _ = run([self.program, misuse], self.logs / f"{misuse}.bare", PATIENCE)
        if status != 0:
            return misuse if status == SKIPPED else f"{misuse} (ends with {status})"
        findings = self.audited(misuse)
        found = once(f"`{one['finding']}` {place(one)}".strip() for one in findings)
        return Line(misuse, self.sanitized(misuse), any(KNOWN.get(misuse, misuse).startswith(one["finding"]) for one in findings), found)

    def all(self):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            lines = list(pool.map(self.one, self.ids()))
        # Beside seven others one may fail to find its programs.
        made = [line for line in lines if isinstance(line, Line)]
        made = [line._replace(sanitizer=self.sanitized(line.id)) if line.sanitizer.kind == "none" else line for line in made]
        return made, [line for line in lines if isinstance(line, str)]


class Times:
    """Three programs bare, audited and sanitized, by turns and in random order."""

    def __init__(self, build, driver, sanitizer, logs, until):
        self.logs, self.until = logs, until
        self.modes = {"bare": [], "gpushare audit": [build / "gpushare", "audit", "--"]}
        if sanitizer:
            self.modes["compute-sanitizer"] = [sanitizer, *OPTIONS, "--target-processes", "all"]
        programs, scripts = build / ("gpu" if driver == "gpu" else "gpu-sim"), ROOT / "tests/gpu/programs"
        self.programs = {"simple_ipc, 4 children": [programs / "simple_ipc_shared", "4"]}
        for module, name, script in (("torch", "PyTorch, 60 training steps by its own clock", "torch_train.py"), ("numba", "numba", "numba_share.py"), ("cupy", "CuPy", "cupy_share.py")):
            if len(self.programs) < 3 and driver == "gpu" and importlib.util.find_spec(module):
                self.programs[name] = ["python3", scripts / script]
        self.took = collections.defaultdict(list)
        self.wrong = {} # (program, mode): why it has no time, or no more

    def measure(self):
        for _ in range(ROUNDS):
            turns = [(program, mode) for program in self.programs for mode in self.modes]
            random.shuffle(turns)
            for turn in turns:
                left = self.until - time.monotonic()
                if left > 1 and turn not in self.wrong:
                    self.measure_one(turn, min(left, LONG_PATIENCE))

    def measure_one(self, turn, patience):
        program, mode = turn
        began = time.monotonic()
        status, output = run([*self.modes[mode], *self.programs[program]], self.logs / f"{program.split()[0].strip(',')}.{mode.split()[-1]}", patience)
        own = re.search(r"^steps: ([\d.]+) s$", output, re.M)  # what it is about; the tools start and end slowly
        if own or status == 0:
            self.took[turn].append(float(own[1]) if own else time.monotonic() - began)
        elif status is not None or patience == LONG_PATIENCE:
            lines = output.strip().splitlines() or [""]
            self.wrong[turn] = f"not done after {LONG_PATIENCE} s" if status is None else f"ends with {status}: {lines[-1][:100]}"

    def word(self, program):
        ours = [(program, mode) for mode in ("bare", "gpushare audit")]
        return "FAIL" if any(turn in self.wrong for turn in ours) else "ok" if all(self.took[turn] for turn in ours) else "skip"

    def cell(self, program, mode):
        took, wrong = self.took[program, mode], self.wrong.get((program, mode))
        if mode not in self.modes or not (took or wrong):
            return NOT_RUN
        if not took:
            return wrong
        bare = self.took[program, "bare"]
        times = f", {statistics.median(took) / statistics.median(bare):.1f} times bare" if bare and mode != "bare" else ""
        return f"{statistics.median(took):.2f} s{times}" + (f" ({len(took)} of {ROUNDS} runs)" if len(took) < ROUNDS else "")


def asked(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def machine(driver, sanitizer):
    card = "the simulated driver" if driver == "sim" else asked("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader").splitlines()[0]
    version = re.search(r"[Vv]ersion ([\d.]+)", asked(sanitizer, "--version")) if sanitizer else None
    return card.replace(", ", ", driver ") + (f", compute-sanitizer {version[1]}" if version else "")


def counted(lines):
    kinds = collections.Counter(line.sanitizer.kind for line in lines)
    words = {"silent": "silent", "code": "the driver's error code", "leak": "leaked bytes alone", "words": "words of its own", "none": NOT_RUN}
    return ", ".join(f"{kinds[kind]} {text}" for kind, text in words.items() if kinds[kind])


def page(driver, sanitizer, lines, skipped, times):
    modes = ("bare", "gpushare audit", "compute-sanitizer")
    yield f"On {datetime.date.today()}: {machine(driver, sanitizer)}, with the options"
    yield f"`{' '.join(OPTIONS)}`."
    yield f"Of {len(lines)} mistakes the audit names {sum(line.named for line in lines)}. compute-sanitizer: {counted(lines)}."
    if skipped:
        yield f"This machine cannot make these: {', '.join(skipped)}."
    yield from ("", "| program | " + " | ".join(modes) + " |", "| --- | --- | --- | --- |")
    yield from ("| ".join(["", program + " ", *(times.cell(program, mode) + " " for mode in modes)]) + "|" for program in times.programs)
    yield from ("", f"Medians of {ROUNDS} runs in random order.", "", "| mistake | compute-sanitizer | gpushare audit |", "| --- | --- | --- |")
    yield from (f"| {line.id} | {line.sanitizer.text} | {'<br>'.join(line.found) or 'silent'} |".replace("__", r"\_\_") for line in lines)


def main():
    build, driver = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    until = time.monotonic() + float(os.environ.get("SANITIZER_SECONDS", "450"))
    results = pathlib.Path(os.environ.get("RESULTS", build / "gpu-results")).resolve()
    logs = results / "sanitizer"
    shutil.rmtree(logs, ignore_errors=True)
    logs.mkdir(parents=True)
    sanitizer = sanitizer_of(driver)
    if not sanitizer:
        print("skip", "compute-sanitizer", "the simulator has none" if driver == "sim" else "it is not in CUDA_HOME/bin, nor in PATH", sep="\t", flush=True)
    lines, skipped = Misuses(build, sanitizer, logs, until).all()
    unnamed = [line.id for line in lines if not line.named]
    print("FAIL" if unnamed or not lines else "ok", "the audit names each misuse",
          f"{len(lines)} misuses, {len(skipped)} skipped; compute-sanitizer: {counted(lines)}" + "; unnamed: ".join(["", " ".join(unnamed)] * bool(unnamed)), sep="\t", flush=True)
    times = Times(build, driver, sanitizer, logs, until)
    times.measure()
    for program in times.programs:
        print(times.word(program), f"time of {program}", "; ".join(f"{mode}: {times.cell(program, mode)}" for mode in times.modes), sep="\t", flush=True)
    (results / "sanitizer.md").write_text("\n".join(page(driver, sanitizer, lines, skipped, times)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
