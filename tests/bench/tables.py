#!/usr/bin/env python3
"""Writes results of bench.py into docs/measured.md, as tables between its marks.

usage: tables.py PAGE RESULT.json [INSTRUCTIONS.json]     (make bench-docs)
"""
import datetime
import json
import pathlib
import sys

from page import fill


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
    page = pathlib.Path(sys.argv[1])
    result = json.loads(pathlib.Path(sys.argv[2]).read_text(encoding="utf-8"))
    machine = result["machine"]
    where = machine["gpu"] if not machine["driver"] else \
        f"{machine['cards']} {machine['gpu']}{'s' if machine['cards'] > 1 else ''}, driver {machine['driver']}"
    fill(page, "run", f"On {result['when']}: {where}, by `{result['command']}`, {result['rounds']} pairs.")
    fill(page, "calls", calls(result))
    fill(page, "many", singles(result))
    if len(sys.argv) > 3:
        counted = pathlib.Path(sys.argv[3])
        day = datetime.date.fromtimestamp(counted.stat().st_mtime)
        fill(page, "instructions", f"On {day}:\n\n" + instructions(json.loads(counted.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
