#!/usr/bin/env python3
"""Writes what a run of tests/gpu/check.sh's part `replicas` has measured into docs/replicas.md, between its two
marks.

usage: replicas_table.py RESULTS_DIR PAGE     (make replicas-docs; RESULTS_DIR has replicas-*.json and table.txt)
"""
import datetime
import json
import pathlib
import sys

from page import fill

STEPS = ["hole", "model", "together", "changed", "latency", "serve", "kills", "learn", "read-only", "tokens"]


HEAD = ["| program | measured | bare | merged | `quiet = 0` |", "| --- | --- | ---: | ---: | ---: |"]


def table(results):
    """A row for each program and what was measured of it; a program is named once."""
    rows = {}
    for step in STEPS:
        path = results / f"replicas-{step}.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["driver"] == "sim":
                sys.exit("replicas_table.py: the simulator measures nothing")
            for one in found["figures"]:
                rows.setdefault(one["program"], {}).setdefault(one["measured"], {"bare": one["bare"]})[one["column"]] = one["figure"]
    lines = [f"| {program + ' ' if not i else ''}| {measured} | " + " | ".join(cells.get(name, "") for name in ("bare", "merged", "quiet = 0")) + " |"
             for program, found in rows.items() for i, (measured, cells) in enumerate(found.items())]
    return "\n".join(HEAD + lines)


def main():
    results, page = map(pathlib.Path, sys.argv[1:3])
    lines = table(results)
    machine = (results / "table.txt").read_text(encoding="utf-8").splitlines()[0]
    when = datetime.date.fromtimestamp((results / "table.txt").stat().st_mtime).isoformat()
    name, driver = machine.split(", ")[:2]
    text = (f"{name}, driver {driver}, {when}, by `tests/gpu/check.sh BUILD replicas`. Memory includes a context a process\n"
            f"where nothing else is said; times are medians, and in brackets the least and the greatest.\n\n{lines}")
    fill(page, "replicas", text)


if __name__ == "__main__":
    main()
