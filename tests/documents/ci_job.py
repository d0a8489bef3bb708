#!/usr/bin/env python3
"""The CI jobs of docs/audit.md, run as they are written there, on the simulated driver: each fails where the program
leaks, and passes where it does not.

Usage: tests/documents/ci_job.py [BUILD_DIR]

The commands come out of the page's YAML. A runner does the rest, as far as the jobs ask: it stands in for
actions/checkout (your sources; gpushare's where the job names a folder), for the upload of a report, and for GitLab's
image, in which gpushare is installed.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

import yaml

from findings import ROOT, Machine

PAGE = ROOT / "docs/audit.md"
# The program of the job: your sources are those of tests/apps/misuse.
MAKEFILE = """\
app: program
	printf '#!/bin/sh\\nexec ./program %s\\n' '{words}' >app
	chmod +x app
program:
	$(CC) -std=gnu11 -D_GNU_SOURCE -g -I{cuda}/include misuse/*.c -o $@ -L{build}/sim -lcudart -ldl
"""


def jobs():
    """{service: its job} of the page."""
    found = {}
    for text in re.findall(r"^```yaml\n(.*?)^```\n", PAGE.read_text(encoding="utf-8"), re.M | re.S):
        told = yaml.safe_load(text)
        found["GitHub" if "jobs" in told else "GitLab"] = told.get("jobs", told)["audit"]
    return found


def cuda_home():
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda", "/opt/cuda", "/usr/lib/cuda", "/usr"]
    return next(home for home in homes if home and pathlib.Path(home, "include/cuda.h").exists())


class Runner:
    """A workspace of its own, with what a service does for a job there."""

    def __init__(self, machine, words):
        self.machine = machine
        self.place = pathlib.Path(machine.place, "workspace")
        for source in [*(ROOT / "tests/apps").glob("*.h"), *(ROOT / "tests/apps/misuse").glob("*.[ch]")]:
            copy = self.place / source.relative_to(ROOT / "tests/apps")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
        (self.place / "Makefile").write_text(MAKEFILE.format(words=words, cuda=cuda_home(), build=machine.build), encoding="utf-8")
        self.paths = self.place.parent / "paths"
        self.paths.touch()
        self.environment = {**machine.environment, "PATH": os.environ["PATH"], "GITHUB_PATH": str(self.paths)}
        for name in ("GPUSHARE_CONFIG", "GPUSHARE_LOG_LEVEL"):
            del self.environment[name]
        if "CUDA_HOME" in os.environ:
            self.environment["CUDA_HOME"] = os.environ["CUDA_HOME"]
        self.uploaded, self.printed = {}, ""

    def shell(self, script):
        """Its exit status, as the services run it: until the first command that fails."""
        paths = [*reversed(self.paths.read_text(encoding="utf-8").split()), self.environment["PATH"]]
        done = subprocess.run(["bash", "--norc", "-e", "-c", script], cwd=self.place, env={**self.environment, "PATH": ":".join(paths)},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=300)
        self.printed += done.stdout
        return done.returncode

    def check_out(self, folder):
        """gpushare's sources, with what is built of them already."""
        (self.place / folder).mkdir()
        for path in ROOT.iterdir():
            if path.name != "build":
                (self.place / folder / path.name).symlink_to(path)
        (self.place / folder / "build").symlink_to(self.machine.build)

    def upload(self, name):
        if (self.place / name).exists():
            self.uploaded[name] = json.loads((self.place / name).read_text(encoding="utf-8"))

    def use(self, action, given):
        name = action.partition("@")[0]
        if name == "actions/checkout":
            if "path" in given:
                self.check_out(given["path"])
        elif name == "github/codeql-action/upload-sarif":
            self.upload(given["sarif_file"])
        else:
            sys.exit(f"{PAGE}: what does {action} do?")

    def github(self, job):
        """The exit status of the first step that failed, and its command."""
        failed = 0, ""
        for step in job["steps"]:
            if failed[0] and step.get("if") != "always()":
                continue
            if "uses" in step:
                self.use(step["uses"], step.get("with", {}))
                continue
            status = self.shell(step["run"])
            failed = failed if failed[0] else (status, step["run"] * (status != 0))
        return failed

    def gitlab(self, job):
        self.environment["PATH"] = f"{self.machine.build}:{self.environment['PATH']}"
        failed = self.shell("\n".join(job["script"])), job["script"][-1]
        for name in job["artifacts"]["paths"] * (job["artifacts"]["when"] == "always" or not failed[0]):
            self.upload(name)
        return failed


def places(report):
    """What a report says: [(finding, file, line)], from SARIF or JSON."""
    if isinstance(report, list):
        frames = [(one["finding"], one["prior"][0]["stack"][0]) for one in report]
        return [(finding, pathlib.Path(frame["file"]).name, frame["line"]) for finding, frame in frames]
    results = [(one["ruleId"], one["locations"][0]["physicalLocation"]) for one in report["runs"][0]["results"]]
    return [(finding, place["artifactLocation"]["uri"], place["region"]["startLine"]) for finding, place in results]


def wrong_with(service, job, build, leaks):
    """What is not as it ought to be; nothing if all is well."""
    with Machine(build) as machine:
        runner = Runner(machine, "leak-open" if leaks else "--right leak-open")
        status, command = getattr(runner, service.lower())(job)
        found = [place for report in runner.uploaded.values() for place in places(report)]
    told = f"status {status} of: {command.strip()}\nreported: {found}\n{runner.printed}"
    if len(runner.uploaded) != 1:
        return f"{len(runner.uploaded)} reports were uploaded\n{told}"
    if not leaks:
        return told if status or found else ""
    good = status == 1 and command.startswith("gpushare audit ") and [one[0] for one in found] == ["leak-open"]
    # GitHub shows a finding in the code where the file is named from the top of the sources.
    named = found[0][1] == ("misuse/memory.c" if service == "GitHub" else "memory.c") if found else False
    return "" if good and named else told


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build").resolve()
    found = jobs()
    failed = sorted(found) != ["GitHub", "GitLab"]
    if failed:
        print(f"{PAGE}: jobs of {sorted(found)}")
    for service, job in found.items():
        for leaks in (True, False):
            wrong = wrong_with(service, job, build, leaks)
            print(f"{service}, a program that {'leaks' if leaks else 'does not leak'}: {wrong or 'ok'}")
            failed = failed or bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
