#!/usr/bin/env python3
"""tests/console.py [BUILD_DIR]: whether README.md and the man page show what the tool does today.

Runs the commands of each console block of README.md on the simulated driver, in a directory with the programs
and the configuration that the page speaks of, and compares what they print. What differs from run to run (pids,
addresses, ids, ages, times, widths of columns) is made equal in both; a line "..." stands for any lines. Of the
commands in the examples of the man page, verbs and options must exist.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATIENCE = 60  # seconds until programs in the background have done what a block shows
# What a program of the page does, as a puppet, and for how long.
PUPPETS = {"camera": "malloc p 67108864", "viewer": "malloc p 67108864"}


def blocks(page, kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", page, re.M | re.S)


def normalised(text):
    for pattern, with_what in (
        (r"/tmp/[\w.-]+/", "/tmp/"),
        (r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
        (r"GPU-[0-9a-f-]+", "GPU-UUID"),
        (r"0x[0-9a-f]+", "0x0"),
        (r"\b[0-9a-f]{32}\b|\b[0-9a-f]{8}\b", "ID"),
        (r"\b\d+ (s|min|h|days)\b", "AGE"),
        (r"(pid |\[|\b(?:camera|viewer|five) )\d+", r"\1PID"),
        (r"[ \t]+", " "),
    ):
        text = re.sub(pattern, with_what, text)
    lines = [line.rstrip() for line in text.strip("\n").split("\n")]
    rows = [i for i, line in enumerate(lines) if re.match(r"=+ \d+x ", line)]  # of two processes, in any order
    for i, line in zip(rows, sorted(lines[i] for i in rows)):
        lines[i] = line
    return lines


def fits(wanted, got):
    """Whether the lines are those, with `...` for any of them."""
    if not wanted:
        return not got
    if wanted[0] == "...":
        return any(fits(wanted[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and wanted[0] == got[0] and fits(wanted[1:], got[1:])


def prepare(place, build, page):
    for program in PUPPETS:
        shutil.copy(build / "tests/apps/puppet", place / program)
    shutil.copy(build / "tests/apps/five", place / "five")
    (place / "frames.conf").write_text(blocks(page, "ini")[0])


def in_background(command):
    """The command with what its puppet is to do on stdin, and nothing to say."""
    program = command.rstrip(" &").rsplit("/", 1)[-1]
    return f"(echo {shlex.quote(PUPPETS[program])}; sleep {PATIENCE}) | {command.rstrip(' &')} >/dev/null 2>&1 &"


class Shell:
    def __init__(self, build, place):
        self.place, self.lines = place, []
        self.environment = {
            "PATH": f"{build}:" + os.environ["PATH"], "HOME": str(place), "LC_ALL": "C", "TZ": "UTC",
            "LD_LIBRARY_PATH": f"{build}/sim", "GPUSHARE_DIR": f"/dev/shm/{place.name}",
            "GPUSHARE_CONFIG": "/dev/null", "GPUSHARE_SIM_ROOT": f"@{place.name}", "GPUSHARE_SIM_LINGER_MS": "100"}
        self.children = []

    def run(self, command):
        script = "\n".join([*self.lines, command])
        if command.endswith("&"):
            self.children.append(subprocess.Popen(
                ["bash", "-c", script + "\nwait"], cwd=self.place, env=self.environment, start_new_session=True))
            return ""
        done = subprocess.run(["bash", "-c", script + "\n"], cwd=self.place, env=self.environment, text=True,
                              timeout=120, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if "export " in command:
            self.lines.append(f"{{ {command}; }} >/dev/null")
        return done.stdout

    def end(self):
        for child in self.children:
            os.killpg(child.pid, 15)
            child.wait()
        shutil.rmtree(self.environment["GPUSHARE_DIR"], ignore_errors=True)


def commands_of(block):
    """[(command, what it prints)]"""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def check_block(shell, block):
    wrong = 0
    for command, expected in commands_of(block):
        until = time.monotonic() + PATIENCE / 2
        while True:
            got = shell.run(in_background(command) if command.endswith("&") else command)
            good = fits(normalised("\n".join(expected)), normalised(got))
            if good or not shell.children or time.monotonic() > until:
                break
            time.sleep(0.2)
        if not good:
            wrong += 1
            print(f"README.md: $ {command}\n--- shown:\n" + "\n".join(expected) + f"\n--- today:\n{got}")
    return wrong


def check_readme(build):
    page, wrong = (ROOT / "README.md").read_text(), 0
    with tempfile.TemporaryDirectory(prefix="gpushare-console-") as name:
        place = pathlib.Path(name)
        prepare(place, build, page)
        for block in blocks(page, "console"):
            shell = Shell(build, place)
            try:
                wrong += check_block(shell, block)
            finally:
                shell.end()
    return wrong


def check_manual(build):
    page, wrong = (ROOT / "tools/gpushare.1").read_text(), 0
    page = page[page.index(".SH EXAMPLES") :].replace("\\-", "-").replace("\\(aq", "'")
    for line in re.findall(r"^(?:\w+=\S+ )*gpushare (.*)$", page, re.M):
        verb, *words = line.split()
        text = subprocess.run([build / "gpushare", verb, "--help"], capture_output=True, text=True).stdout
        for word in words:
            option = word.partition("=")[0]
            if word == "--" or not word.startswith("-"):
                break
            if not re.search(rf"(?<![\w-]){option}\b", text):
                wrong += 1
                print(f"tools/gpushare.1: gpushare {line}: there is no {option}")
        if not text:
            wrong += 1
            print(f"tools/gpushare.1: gpushare {line}: there is no {verb}")
    return wrong


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    return 1 if check_readme(build) + check_manual(build) else 0


if __name__ == "__main__":
    sys.exit(main())
