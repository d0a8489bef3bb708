#!/usr/bin/env python3
"""Writes what a run of tests/gpu/check.sh's part `replicas` has measured into docs/replicas.md, between its two
marks.

usage: replicas_table.py RESULTS_DIR PAGE     (make replicas-docs; RESULTS_DIR has replicas-*.json and table.txt)
"""
import datetime
import json
import pathlib
import re
import sys

STEPS = ["hole", "model", "together", "changed", "latency", "serve", "kills", "learn", "read-only", "tokens"]


def table(results):
    lines = ["| | without | with gpushare |", "| --- | ---: | ---: |"]
    weights = 0
    for step in STEPS:
        path = results / f"replicas-{step}.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["driver"] == "sim":
                sys.exit("replicas_table.py: the simulator measures nothing")
            weights = found["weights"] if step == "together" else weights
            lines += [f"| {one['what']} | {one['without']} | {one['with']} |" for one in found["figures"]]
    return weights, "\n".join(lines)


def main():
    results, page = map(pathlib.Path, sys.argv[1:3])
    weights, lines = table(results)
    machine = (results / "table.txt").read_text(encoding="utf-8").splitlines()[0]
    when = datetime.date.fromtimestamp((results / "table.txt").stat().st_mtime).isoformat()
    text = (f"On {when}: {machine}; {weights / 2**30:g} GiB of weights in a file in memory where a row names no size, by\n"
            f"`tests/gpu/check.sh BUILD replicas`.\n\n{lines}\n")
    old = page.read_text(encoding="utf-8")
    new, count = re.subn(r"(<!-- measured:.*?-->\n).*?(<!-- end -->)", lambda marks: marks[1] + text + marks[2], old, flags=re.S)
    if count != 1:
        sys.exit(f"replicas_table.py: {page} has no marks")
    page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
