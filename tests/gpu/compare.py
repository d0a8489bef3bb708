#!/usr/bin/env python3
"""Compares two tables of build/tests/conformance, row by row: what the driver answered in each.

usage: compare.py [--cached] EXPECTED GOT     (EXPECTED: the simulator's, made by tests/gpu/expected.sh)

--cached leaves out what is otherwise with open_cache: how much memory is free at the end of a row, which is chance where
frees wait for importers; that closed memory answers no more, for it does until it is unmapped; and what a checkpoint of
the exporter by another tool cuts off.

Prints each step that was answered otherwise, then what only one of them ran (skipped on the other: one
card, or not simulated), and a last line that counts. The exit status is 1 if a step was answered otherwise
or is in one table only without its row having been skipped in the other.
"""
import re
import sys

CACHED = re.compile("free again|it is free|was freed|is left|the handle opens no more|q reads no more|q is gone|ends it")


def read(path, cached):
    """{(row, step, how often it was seen before): answer}, and the rows with a skipped step."""
    answers, skipped, seen = {}, {}, {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) != 5 or cells[0] == "row":
                continue
            row, step, _, got, ok = cells
            if ok == "note" or cached and CACHED.search(step):
                continue
            if ok == "skipped":
                skipped[row] = step
                continue
            number = seen[row, step] = seen.get((row, step), 0) + 1
            answers[row, step, number] = got
    return answers, skipped


def main():
    cached = sys.argv[1] == "--cached"
    (expected, left_out), (got, skipped) = (read(path, cached) for path in sys.argv[-2:])
    equal, wrong = 0, 0
    alone = {}
    for key in list(expected) + [key for key in got if key not in expected]:
        row, step, _ = key
        if key in expected and key in got:
            equal += expected[key] == got[key]
            if expected[key] != got[key]:
                wrong += 1
                print(f"row {row}: {step}: the simulator answers {expected[key]}, this driver {got[key]}")
        else:
            reason = (skipped if key in expected else left_out).get(row)
            where = "the simulator" if key in expected else "this driver"
            alone.setdefault((row, where, reason), []).append(step)
    for (row, where, reason), steps in alone.items():
        if reason:
            print(f"row {row}: {len(steps)} steps on {where} only: {reason}")
        else:
            wrong += len(steps)
            print(f"row {row}: on {where} only: {'; '.join(steps)}")
    print(f"{equal} steps equal, {wrong} differ, {sum(map(len, alone.values()))} on one side only")
    return 1 if wrong or not equal else 0


if __name__ == "__main__":
    sys.exit(main())
