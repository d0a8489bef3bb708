#!/usr/bin/env python3
"""Compares what docs/stability.md promises with docs/promised.json, the list of the last release: nothing of that may be gone
or be another. More may be there.

Usage: tests/documents/promises.py --check BUILD   differences are printed, and the exit status is 1
       tests/documents/promises.py --write BUILD   the list of a release, made from today's source

Tables of the source are read: exit statuses, keys of the configuration, findings, layouts. What the tool prints as JSON is
looked at where it runs, beside programs that share and merge on the simulated driver.
"""
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import time

from findings import Machine, catalogue

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST = ROOT / "docs/promised.json"
RULES = """[region frames]
program = camera
role = export
[region frames]
program = viewer
role = import
[region weights]
program = server
role = merge
quiet = 0
"""


def source(path):
    return (ROOT / path).read_text(encoding="utf-8")


# --- tables of the source ---

def exit_statuses():
    body = re.search(r"enum tool_status \{(.*?)\};", source("tools/cli/tool.h"), re.S)[1]
    return {name.lower(): int(value) for name, value in re.findall(r"TOOL_(\w+) = (\d+)", body)}


def keys():
    """{"gpushare.mode": {"default": ..., "values": [...]}}; values where only these are allowed."""
    text, found = source("shim/config/options.def"), {}
    for key, kind, default, allowed in re.findall(r'^OPTION\((\w+), (\w+), ("[^"]*"|NULL), "([^"]*)"', text, re.M):
        found["gpushare." + key] = key_of(kind, default, allowed)
    for key, kind, default, allowed in re.findall(r'^RULE_KEY\((\w+), \w+, (\w+), ("[^"]*"|NULL), "([^"]*)"', text, re.M):
        found["region." + key] = key_of(kind, default, allowed)
    return found


def key_of(kind, default, allowed):
    return {"default": None if default == "NULL" else default.strip('"'), "values": allowed.split(", ") if kind == "CHOICE" else []}


def layouts():
    """Of the files and messages, by their version: a layout may change only with the number."""
    found = {}
    for name in ("region", "keeper", "explained"):
        text = source(f"include/gpushare/{name}.h")
        found[name] = sorted(re.findall(r'static_assert\((.*?), "layout"\)', text))
    version = re.search(r"GPS_FORMAT_VERSION (\d+)", source("include/gpushare/region.h"))[1]
    return {version: found}


def schema_keys(name):
    schema = json.loads(source(f"docs/{name}.schema.json"))
    return {"keys": sorted(schema["properties"]), "required": sorted(schema["required"])}


# --- what the tool prints ---

def paths(value, at=""):
    """Of a JSON value: {"[].owner.pid", ...}."""
    if isinstance(value, dict):
        return {at + "." + key if at else key for key in value}.union(*(paths(one, at + "." + key if at else key) for key, one in value.items()))
    if isinstance(value, list):
        return set().union(*(paths(one, at + "[]") for one in value))
    return set()


@contextlib.contextmanager
def programs(machine, config):
    """Programs that share and merge, while the block runs."""
    lines = [["camera", "30"], ["viewer", "30"], ["server", "30"], ["server", "30"]]
    running = [subprocess.Popen(["gpushare", "run", "--config", config, "--", *line], env=machine.environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for line in lines]
    try:
        for _ in range(300):
            shown = json.loads(machine.run(["gpushare", "ls", "--json"])[0])
            if any(one["users"] for one in shown if one["name"] == "frames") and any(one["state"] == "merged" for one in shown):
                break
            time.sleep(0.1)
        yield running
    finally:
        for one in running:
            one.kill()
            one.wait()


def outputs(build):
    found = {}

    def look(verb, *words):
        text, status = machine.run(["gpushare", *words])
        if status not in (0, 1):
            sys.exit(f"gpushare {' '.join(words)}: {status}: {text}")
        found.setdefault(verb, set()).update(paths(json.loads(text)))

    with Machine(build) as machine:
        config = pathlib.Path(machine.place, "promises.conf")
        config.write_text(RULES, encoding="utf-8")
        with programs(machine, config) as running:
            look("ls", "ls", "--json")
            look("top", "top", "--once", "--json")
            for process in running:
                look("show PID", "show", "--json", str(process.pid))
            look("show NAME", "show", "--json", "frames")
            metrics = re.findall(r"^# TYPE (\S+)", machine.run(["gpushare", "metrics"])[0], re.M)
        log = pathlib.Path(machine.place, "log.jsonl")
        audited = {"GPUSHARE_MODE": "audit", "GPUSHARE_LOG": str(log), "GPUSHARE_LOG_FORMAT": "jsonl"}
        machine.run(["gpushare", "run", "--", "misuse", "free-while-open"], audited)
        look("report", "report", "--json", str(log))
        look("doctor", "doctor", "--json")
        look("doctor --selftest", "doctor", "--selftest", "--json")
    return {verb: sorted(names) for verb, names in found.items()}, sorted(metrics)


def today(build):
    printed, metrics = outputs(build)
    return {"release": re.search(r"^VERSION := (\S+)", source("Makefile"), re.M)[1], "exit statuses": exit_statuses(), "keys": keys(),
            "findings": {row[0]: row[1] for row in catalogue()}, "log": schema_keys("log"), "event log": schema_keys("event"),
            "layouts by format version": layouts(), "JSON of the tool": printed, "metrics": metrics}


# --- comparing ---

def lost(before, now, where=""):
    """What is gone, or another."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key, value in before.items():
            here = f"{where}: {key}" if where else key
            if key not in now:
                yield f"{here}: is gone"
            else:
                yield from lost(value, now[key], here)
    elif isinstance(before, list) and isinstance(now, list):
        yield from (f"{where}: {one} is gone" for one in before if one not in now)
    elif before != now:
        yield f"{where}: was {before}, is {now}"


def differences(before, now):
    before, now = ({key: value for key, value in one.items() if key != "release"} for one in (before, now))
    before_layouts, now_layouts = before.pop("layouts by format version"), now.pop("layouts by format version")
    yield from lost(before, now)
    for version in before_layouts.keys() & now_layouts.keys():  # of one version, more is another layout, too
        yield from lost(before_layouts[version], now_layouts[version], f"format {version}")
        yield from lost(now_layouts[version], before_layouts[version], f"format {version}, read the other way")


def main():
    build = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else "build").resolve()
    now = today(build)
    if sys.argv[1] == "--write":
        LIST.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
        return
    before = json.loads(LIST.read_text(encoding="utf-8"))
    found = list(differences(before, now))
    for one in found:
        print(f"promised in {before['release']}: {one}")
    if found:
        sys.exit("docs/stability.md says what may change, and how")


main()
