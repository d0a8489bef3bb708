#!/usr/bin/env python3
"""Draws what calls cost compared with bare ones, docs/overhead.svg, from the table of calls in docs/measured.md: the ratio to
bare, with the quartiles of the difference as a whisker.

usage: overhead.py [--check]     (make bench-docs; --check: is the committed picture that of the table?)
"""
import math
import re
import sys

from savings import ROOT, document, text

PAGE, PICTURE = ROOT / "docs/measured.md", ROOT / "docs/overhead.svg"
WIDTH, LEFT, RIGHT, ROW, TOP = 760, 262, 724, 26, 60
MODES = [("merged", "mode = share", 2, -4), ("once", "mode = audit", 4, 5)]
TICKS = [0.8, 1, 1.5, 2, 3, 5, 8]


def number(words):
    return float(words.replace(",", ""))


def figure(cell, bare):
    """(ratio, lower, upper quartile) of "+451 (1.009)<br><sub>-1,692 to +2,312</sub>"."""
    found = re.match(r"\**([+-][\d,]+) \([\d.]+\)\**(?:<br><sub>([+-][\d,]+) to ([+-][\d,]+)</sub>)?", cell)
    if not found:
        return None
    middle, low, high = (number(one or found[1]) for one in found.groups())
    return tuple(1 + one / bare for one in (middle, low, high))


def measured():
    """What the page says of machine and day, and [(call, bare in ns, a figure or None a mode)]."""
    page = PAGE.read_text(encoding="utf-8")
    when, where = re.search(r"^On ([\d-]+): (.*?), by ", page, re.M).groups()
    table = re.search(r"^\| call \| bare \|.*?\n\n", page, re.M | re.S)[0]
    rows = []
    for line in re.findall(r"^\| (.*) \|$", table, re.M)[2:]:
        cells = [cell.strip() for cell in line.split("|")]
        bare = number(cells[1])
        rows.append((cells[0], bare, [figure(cells[column], bare) for _, _, column, _ in MODES]))
    return f"{where}, {when}", rows


def time_name(ns):
    return f"{ns / 1e9:.2g} s" if ns >= 1e9 else f"{ns / 1e3:,.0f} µs" if ns >= 1e4 else f"{ns / 1e3:.1f} µs" if ns >= 1e3 else f"{ns:.0f} ns"


def x_of(ratio):
    low, high = math.log(TICKS[0]), math.log(TICKS[-1])
    return LEFT + (min(max(math.log(max(ratio, 0.01)), low), high) - low) / (high - low) * (RIGHT - LEFT)


def picture():
    note, rows = measured()
    bottom = TOP + ROW * len(rows)
    body = [text(16, 28, "Time of a call, bare = 1", more=' font-size="14" font-weight="bold"')]
    for i, (name, words, _, _) in enumerate(MODES):
        body.append(f'<circle class="{name}" cx="{LEFT + 120 + 130 * i}" cy="24" r="4"/>' + text(LEFT + 130 + 130 * i, 28, words))
    for tick in TICKS:
        body.append(f'<path class="{"whisker" if tick == 1 else "grid"}" d="M{x_of(tick):.1f} {TOP - 12}V{bottom}"/>' +
                    text(x_of(tick), bottom + 16, f"{tick:g}", "middle", ' font-size="11"'))
    for i, (call, bare, figures) in enumerate(rows):
        y = TOP + ROW * i + 8
        body.append(text(LEFT - 76, y + 4, call, "end") + text(LEFT - 10, y + 4, time_name(bare), "end", ' font-size="11" class="quiet"'))
        for (name, _, _, shift), one in zip(MODES, figures):
            if one:
                body.append(f'<path class="{name}-line" stroke-width="2" d="M{x_of(one[1]):.1f} {y + shift}H{x_of(one[2]):.1f}"/>'
                            f'<circle class="{name}" cx="{x_of(one[0]):.1f}" cy="{y + shift}" r="4"/>')
    body.append(text((LEFT + RIGHT) / 2, bottom + 34, "times as long as bare (logarithmic)", "middle", ' class="quiet"'))
    body.append(text(WIDTH - 16, bottom + 58, note, "end", ' font-size="11" class="quiet"'))
    return document("What calls cost compared with bare ones", WIDTH, bottom + 70, body)


if __name__ == "__main__":
    if sys.argv[1:] != ["--check"]:
        PICTURE.write_text(picture(), encoding="utf-8")
    elif PICTURE.read_text(encoding="utf-8") != picture():
        sys.exit("docs/overhead.svg is not that of the table in docs/measured.md: tests/bench/overhead.py draws it")
