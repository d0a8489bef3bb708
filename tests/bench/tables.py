#!/usr/bin/env python3
"""Turns results of bench.py into the tables of docs/measured.md, on standard output.

usage: tables.py RESULT.json [INSTRUCTIONS.json]     (make bench-docs)
"""
import json
import pathlib
import sys

HEAD = """\
# What gpushare saves and costs, measured

On {when}: {where}, by `{command}`, {rounds} pairs. This page is made by `make bench-docs`.

![memory and loading time of replicas, bare and merged](savings.svg)

N replicas with merged weights take little more memory than one, and with `quiet = 0` a further one is ready in a
fraction of the time. The table behind this picture is in [replicas.md](replicas.md#what-it-costs-measured).

![what calls cost beside bare ones](overhead.svg)

Calls that allocate and free take as long as bare ones: the dots lie at 1, and the whiskers, quartiles of the
difference, show the driver's own noise. The first export and the free of an export take longest beside bare ones: they
write a record.

## Calls

Each figure is the median of the differences between a preloaded run and the bare run just before it, in
nanoseconds; in brackets the ratio to bare. Calls that take long carry noise of their own: quartiles of the
differences are in the smaller lines below them. Bold is over the budget. What is not hooked (kernel launch,
memcpy, memset) has the budget 0 and counts as met when the lower quartile is not above it.{note}

"""


def nanoseconds(value):
    return f"{value:,.0f}"


def figure(added, spread):
    if added is None:
        return ""
    text = f"{added['median']:+,.0f} ({added['ratio']:.3f})"
    if added["met"] is False:
        text = f"**{text}**"
    return text + (f"<br><sub>{added['low']:+,.0f} to {added['high']:+,.0f}</sub>" if spread else "")


def budget(row):
    all_budgets = [added["budget"] for added in row["added"].values() if added["budget"] is not None]
    if not all_budgets:
        return ""
    low, high = min(all_budgets), max(all_budgets)
    return nanoseconds(low) if low == high else f"{nanoseconds(low)}; {nanoseconds(high)} with stacks"


def calls(result):
    modes = list(result["rows"][0]["added"])
    lines = ["| call | bare | " + " | ".join(f"`{mode.split(',')[0]}`{mode[len(mode.split(',')[0]):]}" for mode in modes) + " | budget |",
             "| --- | ---: |" + " ---: |" * len(modes) + " ---: |"]
    for row in result["rows"]:
        lines.append(f"| {row['row']} | {nanoseconds(row['bare'])} | " +
                     " | ".join(figure(row["added"].get(mode), row["bare"] > 1000) for mode in modes) + f" | {budget(row)} |")
    return "\n".join(lines)


def human(value, unit):
    if unit == "ns" and abs(value) >= 1e6:
        return f"{value / 1e6:.1f} ms"
    if unit == "ns" and abs(value) >= 1e4:
        return f"{value / 1e3:.1f} us"
    return f"{value:,.0f} {unit}"


def singles(result):
    lines = ["| what | measured | budget | |", "| --- | ---: | ---: | --- |"]
    for one in result["single"]:
        limit = "" if one["budget"] is None else human(one["budget"], one["unit"])
        met = {None: "", True: "met", False: "**missed**"}[one["met"]]
        lines.append(f"| {one['row']} | {human(one['value'], one['unit'])} | {limit} | {met} |")
    return "\n".join(lines)


def instructions(rows):
    modes = list(rows[0]["added"])
    lines = ["| call | bare | " + " | ".join(modes) + " |", "| --- | ---: |" + " ---: |" * len(modes)]
    for row in rows:
        lines.append(f"| {row['row']} | {row['bare']:,.0f} | " + " | ".join(f"{row['added'][mode]:+,.0f}" for mode in modes) + " |")
    return "\n".join(lines)


def main():
    result = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    machine = result["machine"]
    where = machine["gpu"] if not machine["driver"] else \
        f"{machine['cards']} {machine['gpu']}{'s' if machine['cards'] > 1 else ''}, driver {machine['driver']}"
    note = "\n" + result["note"] if "note" in result else "" # what does not come from this one run
    print(HEAD.format(when=result["when"], where=where, command=result["command"], rounds=result["rounds"], note=note), end="")
    print(calls(result))
    print("\n![opening and closing against the region's size](open-close.svg)\n\n"
          "What gpushare adds to opening (lines) and closing (dashes) is the same for every size; the driver's own time grows.\n"
          "Between 32 and 256 MiB the driver takes a step, in each run at another size. Each point is the\n"
          "median of one run, with quartiles where they were taken.")
    print("\n## Many at once\n\n" + singles(result))
    print("\n![malloc and free against the number of live allocations](live.svg)\n\n"
          "The cost does not grow with the number of live allocations. Each point is the median of one run.")
    if len(sys.argv) > 2:
        print("\n## Instructions\n\nWhat a call executes outside the kernel, on the simulated driver, by `make bench-instructions`.\n")
        print(instructions(json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
