#!/usr/bin/env python3
"""Makes docs/findings.md: every finding of the catalogue, with a command that causes it and the
report, by running the command on the simulated driver.

Usage: tests/documents/findings.py [--check] [BUILD_DIR]     (make docs)
--check compares with the committed file instead, and the lines of the programs' logs with
docs/log.schema.json. What differs from run to run (addresses, pids,
times, ids of regions) is replaced by numbers that count up from the first.
"""

import difflib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/findings.md"
SKIPPED = 77
INTRODUCTION = """\
# Findings

This page has every finding that gpushare can report, with a program that causes it and the report. `make docs` makes the
page by running the programs on the simulated driver, and `make check` compares it with a new run. Values that differ from
run to run are replaced, and frames of libc are left out. `misuse` is `build/tests/apps/misuse`, which `make apps` builds
from [tests/apps/misuse](../tests/apps/misuse). `misuse --right ID` does the same job correctly, and gets no report. It
starts both the importer and the exporter if both take part. `gpushare explain ID` says briefly what a finding means, and
`gpushare explain --list` lists all of them.

The codes are those that the programs of this page are answered; other calls may answer others for the same reason.
[troubleshooting.md](troubleshooting.md) goes from a symptom to its cause, also where there is no finding.
"""
BEYOND = {  # what a finding's own name is not enough to see
    "open-stale": ["open-stale-reused"],
    "event-unknown": ["event-unknown-memory", "event-unknown-torn"],
    "event-use-after-destroy": ["event-use-after-destroy-export"],
    "close-unopened": ["close-unopened-null"],
    "free-unknown": ["free-unknown-end"],
    "copy-outside": ["copy-outside-begin"],
    "use-after-close": ["use-after-close-kernel"],
    "open-unknown": ["open-unknown-cut", "open-unknown-mixed"],
    "use-unmapped": ["use-unmapped-access"],
    "unmap-mismatch": ["unmap-mismatch-nothing"],
    "descriptor-refused": ["descriptor-refused-address", "descriptor-refused-gpu"],
    "open-dead-owner": ["open-unknown-exited"],
    "export-not-capable": ["export-not-capable-managed", "export-not-capable-host"],
    "leak-event": ["leak-event-exported"],
    "event-not-interprocess": ["event-not-interprocess-timing"],
    "reset-with-shared": ["reset-with-shared-exporter"],
}

# What a person sees first, beside the codes that calls answer, which are in the transcripts.
SYMPTOMS = {
    "The context is lost (700 or 719)": "use-after-free use-after-close use-unmapped write-read-only merge-written",
    "The program hangs, or waits for seconds": "share-timeout frame-late free-while-open",
    "A wrong picture, or old bytes": "free-while-open exit-while-open use-after-free event-never-recorded event-stale event-dead-owner "
                                     "vmm-remapped-shared pool-free-order pool-imported-twice export-interior open-interior",
    "Memory is not given back": "leak-memory leak-open unbalanced-open double-open leak-export leak-event vmm-handle-leak "
                                "export-descriptor-leak import-descriptor-leak free-imported free-interior",
    "Nothing is shared, or not what was meant": "share-mismatch share-timeout share-fallback config-error driver-incomplete record-invalid store-unavailable",
    "Nothing is seen yet": "exit-while-open reset-with-shared export-shared-block event-destroyed-while-open mapping-never-accessible "
                           "pool-destroyed-in-use",
}
ANSWER = re.compile(r"^(?:[\w ]+: )?\w+: ([\w ',;-]+) \((\d+)\)$", re.M)


def catalogue():
    """The rows of finding.h: id, level, sentence, hint."""
    text = (ROOT / "include/gpushare/finding.h").read_text()
    text = text[text.index("#define GPS_FINDINGS") : text.index("enum gps_level")]
    text = re.sub(r"\\\n\s*", "", text)
    row = re.compile(r'ROW\(\w+,\s*"([a-z-]+)",\s*(\w+),\s*((?:"[^"]*"\s*)+),\s*((?:"[^"]*"\s*)+)\)')
    join = lambda literals: "".join(re.findall(r'"([^"]*)"', literals))
    return [(i, level.lower(), join(s), join(h)) for i, level, s, h in row.findall(text)]


def raised():
    """{id: "error where ..."}: levels that a report of it may have instead."""
    text = (ROOT / "include/gpushare/finding.h").read_text()
    rows = re.findall(r'ROW\((\w+), (\w+), "([^"]*)"\)', text[text.index("#define GPS_RAISED_LEVELS") :])
    return {name.lower().replace("_", "-"): f"{level.lower()} {where}" for name, level, where in rows}


RAISED = raised()


def groups(build):
    """[(title, [id])], as `gpushare explain --list` has them."""
    found = []
    for line in subprocess.run([f"{build}/gpushare", "explain", "--list"], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if line and line[0] != " ":
            found.append((line, []))
        elif words and words[0] != "FINDING":
            found[-1][1].append(words[0])
    return found


class Machine:
    """A published directory, a simulated card and a place for files, new for every command."""

    def __init__(self, build):
        self.build = build
        self.place = tempfile.mkdtemp(prefix="gpushare-docs-")
        self.environment = {
            "PATH": f"{build}:{build}/tests/apps:" + os.environ["PATH"],
            "HOME": self.place,
            "LC_ALL": "C",
            "TZ": "UTC",
            "LD_LIBRARY_PATH": f"{build}/sim",
            "GPUSHARE_CONFIG": "/dev/null",
            "GPUSHARE_DIR": self.place + "/gpushare",
            "GPUSHARE_LOG_LEVEL": "info",
            "GPUSHARE_SIM_ROOT": "@" + self.place,
            "GPUSHARE_SIM_LINGER_MS": "100",
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.place, ignore_errors=True)

    def run(self, words, variables=None):
        """What it says, and its exit status. Errors come last: two streams have no order."""
        done = subprocess.run(
            words, env={**self.environment, **(variables or {})}, cwd=ROOT, timeout=120, text=True,
            errors="replace", stdin=subprocess.DEVNULL, capture_output=True)
        return done.stdout + done.stderr, done.returncode

    def damage(self):
        """A record that is none, under the name that the rules import."""
        names = pathlib.Path(self.place, "gpushare/default/names")
        names.mkdir(parents=True)
        for name in ("procs", "regions"):
            names.with_name(name).mkdir()
        for path in (names, names.with_name("procs"), names.with_name("regions"), names.parent, names.parent.parent):
            path.chmod(0o700)
        record = names.with_name("regions") / ("1" * 32)
        record.write_text("rubbish")
        record.chmod(0o600)
        (names / "frames").symlink_to("../regions/" + "1" * 32)


# Where rules are followed: run, not audit, and the report by a command of its own.
FOLLOWING = ["gpushare", "run", "--config", "tests/apps/misuse/share.conf", "--"]
RULES = {"GPUSHARE_LOG": "logs/%p.jsonl", "GPUSHARE_LOG_FORMAT": "jsonl"}


def command_of(run):
    """How a run is raised: variables, words, a remark."""
    if run.startswith(("share-", "frame-", "write-", "merge-")):
        return RULES, [*FOLLOWING, "misuse", run], "rules are followed in mode share"
    if run == "record-invalid":
        return RULES, [*FOLLOWING, "misuse", "share-timeout"], "a damaged file in `regions/` has the name `frames`"
    if run == "config-error":
        preload = {"GPUSHARE_ON_FREE": "sometimes", "LD_PRELOAD": "build/libgpushare.so"}
        return preload, ["misuse", "--right", "leak-export"], "`gpushare run` would refuse to start it"
    if run == "driver-incomplete":
        return {"LD_LIBRARY_PATH": "build/tests/apps/partial"}, ["gpushare", "run", "--", "few_calls"], "its libcuda.so.1 has six functions"
    if run == "store-unavailable":
        return {"GPUSHARE_DIR": "/proc/gpushare"}, ["gpushare", "audit", "--", "misuse", "--right", "leak-export"], ""
    if run in ("open-peer-denied", "descriptor-refused-gpu"):
        peers = {"GPUSHARE_SIM_DEVICES": "2", "GPUSHARE_SIM_PEERS": "0"}
        return peers, ["gpushare", "audit", "--", "misuse", run], "two devices that are no peers"
    if run == "open-interior":
        hip = {"LD_LIBRARY_PATH": "build/sim/hip7"}
        return hip, ["gpushare", "audit", "--", "misuse_hip7", "export-interior"], "a program of AMD's runtime, the simulated one"
    if run in ("import-partial", "vmm-remapped-shared"):
        return {"GPUSHARE_VMM_IPC": "on"}, ["gpushare", "audit", "--", "misuse", run], "without the key there are no such handles"
    if run == "leak-memory":
        return {}, ["gpushare", "audit", "--leak-check", "--", "misuse", run], ""
    if run == "access-peer-missing":
        return {"GPUSHARE_SIM_DEVICES": "2"}, ["gpushare", "audit", "--", "misuse", run], "two devices"
    remark = ""
    if run == "open-unknown-exited":
        remark = "what an exporter that has ended leaves is kept by the audit; without, this is open-unknown"
    return {}, ["gpushare", "audit", "--", "misuse", run], remark


def is_verb(build, verb):
    return subprocess.run([f"{build}/gpushare", verb, "--help"], capture_output=True).returncode == 0


def words_for(build, words):
    """With the verbs that there are."""
    if words[:2] == ["gpushare", "audit"] and not is_verb(build, "audit"):
        return ["gpushare", "run", "--mode", "audit", *words[2:]]
    return words


class Numbers:
    """Replaces what matches by numbers that count up in order of appearance."""

    def __init__(self, pattern, form):
        self.pattern, self.form, self.seen = re.compile(pattern), form, {}

    def __call__(self, text):
        def one(match):
            number = self.seen.setdefault(match.group(1), len(self.seen) + 1)
            whole = match.group(0)
            start, end = match.start(1) - match.start(0), match.end(1) - match.start(0)
            return whole[:start] + self.form(number) + whole[end:]

        return self.pattern.sub(one, text)


def normalised(text, machine):
    build = str(machine.build)
    text = text.replace(build, "build").replace(str(ROOT) + "/", "").replace(machine.place, "/tmp/example")
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z?", "2026-01-01T12:00:00.000000Z", text)
    text = re.sub(r"\b\d\d:\d\d:\d\d(\.\d+)?", "12:00:00.000000", text)
    text = re.sub(r"\b\d+(\.\d+)? (ns|us|ms|s)\b(?= (ago|earlier|later|before|after|old))", r"5 \2", text)
    text = re.sub(r"^=+ +#\d+ .*( in /(usr/)?lib|\b_start in ).*\n", "", text, flags=re.M)
    text = re.sub(r"^(=+ +#\d+ )0x[0-9a-f]+ ", r"\g<1>0x1234 ", text, flags=re.M)
    text = re.sub(r"\+0x[0-9a-f]+", "+0x12", text)
    text = re.sub(r"\b40265\d{5}\b", "4026531836", text)
    text = re.sub(r"\b[0-9a-f]{40}\b", "0123456789abcdef0123456789abcdef01234567", text)
    for rule in (
        Numbers(r"(0x[0-9a-f]{8,16})\b", lambda n: f"0x7f{n:02x}00000000"),
        Numbers(r"\b([0-9a-f]{32})\b", lambda n: f"{n:032x}"),
        Numbers(r"(?m)(?:\b(?:pid|process|by|of) |^=+ \[)(\d{2,7})\b", lambda n: str(1000 + n)),
        Numbers(r"\b[\w.]+ (\d{3,7})(?=[,:)]| \(| freed| has| opened)", lambda n: str(1000 + n)),
    ):
        text = rule(text)
    return re.sub(r" +$", "", text, flags=re.M).rstrip() + "\n"


def shown(variables, words):
    set_first = " ".join(f"{name}={value}" for name, value in variables.items())
    return "$ " + (set_first + " " if set_first else "") + " ".join(words)


def real(text, machine):
    """A word of the page as it is on this machine."""
    return re.sub(r"^(build|logs)/", lambda m: {"build": f"{machine.build}/", "logs": f"{machine.place}/logs/"}[m[1]], text)


def transcript(build, run):
    """A console block, or None where this machine does not allow it."""
    variables, words, remark = command_of(run)
    words = words_for(build, words)
    if "misuse_hip7" in words and not pathlib.Path(build, "tests/apps/misuse_hip7").exists():
        return None
    with Machine(build) as machine:
        os.mkdir(machine.place + "/logs")
        if run == "record-invalid":
            machine.damage()
        text, status = machine.run(words, {name: real(value, machine) for name, value in variables.items()})
        if status == SKIPPED:
            return None
        if variables is RULES:
            report = ["gpushare", "report", "logs"]
            text += shown({}, report) + "\n" + machine.run([*report[:2], machine.place + "/logs"])[0]
        text = normalised(text, machine)
    return (f"({remark})\n\n" if remark else "") + f"```console\n{shown(variables, words)}\n{text}```\n"


def log_lines(build, run):
    """What the program's processes log as JSON, every level of it."""
    with Machine(build) as machine:
        directory = pathlib.Path(machine.place, "logs")
        directory.mkdir()
        machine.run(["misuse", run], {
            "LD_PRELOAD": f"{build}/libgpushare.so",
            "GPUSHARE_MODE": "share" if run.startswith(("share-", "merge-")) else "audit",
            "GPUSHARE_CONFIG": str(ROOT / "tests/apps/misuse/share.conf"),
            "GPUSHARE_LOG": f"{directory}/%p", "GPUSHARE_LOG_FORMAT": "jsonl"})
        return [line for path in directory.iterdir() for line in path.read_text().splitlines()]


def check_logs(build):
    """How many lines are not as the schema says; each is told."""
    schema = json.loads((ROOT / "docs/log.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    runs = subprocess.run([f"{build}/tests/apps/misuse", "--list"], capture_output=True, text=True,
                          env={"LD_LIBRARY_PATH": f"{build}/sim"}).stdout.split()
    wrong = 0
    for run in runs:
        for line in log_lines(build, run):
            error = next(validator.iter_errors(json.loads(line)), None)
            if error:
                wrong += 1
                print(f"{run}: {error.json_path}: {error.message}\n    {line}")
    return wrong


def section(build, row):
    name, level, sentence, hint = row
    level = ", ".join([level, *([RAISED[name]] if name in RAISED else [])])
    parts = [f"### {name}\n\n{level}: {sentence}.\n\nWhat to do: {hint}.\n"]
    for run in [name, *BEYOND.get(name, [])]:
        block = transcript(build, run)
        if block is None:
            return None
        parts.append(block)
    return "\n".join(parts)


def symptoms(sections):
    """The index by what is seen first, of {id: section}: lines. Each finding is in it."""
    answers, words, seen = {}, {}, {}
    for name, text in sections.items():
        for said, code in ANSWER.findall(text):
            words[int(code)] = said
            answers.setdefault(int(code), {})[name] = None
        if "the program was ended: Segmentation fault" in text:
            seen.setdefault("The program ends with SIGSEGV", []).append(name)
    index = {f"A call answers {code} ({words[code]})": list(answers[code]) for code in sorted(answers) if code}
    index |= seen | {title: names.split() for title, names in SYMPTOMS.items()}
    missing = set(sections) - {name for names in index.values() for name in names}
    assert not missing, f"findings of no symptom: {sorted(missing)}; add them to SYMPTOMS"
    return [links(title, names) for title, names in index.items()]


def links(title, names):
    return f"- {title}: " + ", ".join(f"[{name}](#{name})" for name in names)


def sections_of(page):
    found = {}
    for part in re.split(r"(?m)^(?=##+ )", page)[1:]:
        title, _, _ = part.partition("\n")
        found[title.lstrip("# ")] = part.strip() + "\n"
    return found


def main():
    arguments = [word for word in sys.argv[1:] if word != "--check"]
    build = pathlib.Path(arguments[0] if arguments else ROOT / "build").resolve()
    committed = sections_of(PAGE.read_text()) if PAGE.exists() else {}
    rows = {row[0]: row for row in catalogue()}
    index, made, sections = [], [], {}
    for title, names in groups(build):
        index.append(links(title, names))
        made.append(f"## {title}\n")
        for name in names:
            text = section(build, rows.pop(name))
            if text is None:
                print(f"findings.py: {name} cannot be had on this machine; its section stays", file=sys.stderr)
                text = committed.get(name, "")
            made.append(text.strip() + "\n")
            sections[name] = text
    assert not rows, f"in no group: {list(rows)}"
    index = ["## By what is seen first", "", *symptoms(sections), "", "## By what went wrong", "", *index]
    page = INTRODUCTION + "\n" + "\n".join(index) + "\n\n" + "\n".join(made)
    if "--check" not in sys.argv:
        PAGE.write_text(page)
        return 0
    difference = list(difflib.unified_diff(
        PAGE.read_text().splitlines() if PAGE.exists() else [], page.splitlines(), str(PAGE), "now", lineterm=""))
    print("\n".join(difference))
    if difference:
        print("docs/findings.md is not what the programs say now: make docs, and look at what changed")
    return 1 if check_logs(build) or difference else 0


if __name__ == "__main__":
    sys.exit(main())
