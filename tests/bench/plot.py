#!/usr/bin/env python3
"""Two plots of a result of bench.py, as SVG by hand: what opening and closing cost against the region's size,
and what malloc + free costs against the number of live allocations.

usage: plot.py RESULT.json DIRECTORY     (make bench-docs; writes open-close.svg and live.svg there)
"""
import html
import json
import math
import pathlib
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 420, 84, 170, 40, 56
COLOURS = {"bare": "#444444", "share": "#1b7fbd", "audit": "#d1602b"}
DASHES = {"open": "", "close": ' stroke-dasharray="6 4"'}


class Axis:
    """Logarithmic, over whole steps of `base` that hold all values."""

    def __init__(self, values, base, start, end):
        log = [math.log(value, base) for value in values]
        self.low, self.high = math.floor(min(log) + 1e-9), max(math.ceil(max(log) - 1e-9), math.floor(min(log)) + 1)
        self.base, self.start, self.end = base, start, end

    def __call__(self, value):
        share = (math.log(value, self.base) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        return [self.base**power for power in range(self.low, self.high + 1)]


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{html.escape(words)}</text>'


def size_name(mib):
    return f"{mib / 1024:g} GiB" if mib >= 1024 else f"{mib:g} MiB"


def time_name(ns):
    return f"{ns / 1e6:g} ms" if ns >= 1e6 else f"{ns / 1e3:g} µs" if ns >= 1e3 else f"{ns:g} ns"


def number_name(count):
    return f"{int(count):,}"


def plot(title, note, x_title, x_base, x_name, lines):
    """lines: (label, colour, dashes, [(x, y in ns)]), or with quartiles (x, y, low, high)"""
    x_axis = Axis([point[0] for line in lines for point in line[3]], x_base, LEFT, WIDTH - RIGHT)
    y_axis = Axis([y for line in lines for point in line[3] for y in point[1:]], 10, HEIGHT - BOTTOM, TOP)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
           f'font-family="sans-serif" font-size="12" fill="#222222" role="img">',
           f"<title>{html.escape(title)}</title>",
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
           text(LEFT, 20, title, "start", ' font-size="14" font-weight="bold"'),
           text(WIDTH - 8, HEIGHT - 8, note, "end", ' font-size="10" fill="#666666"'),
           text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 20, x_title + " (logarithmic)"),
           text(0, 0, "time of a call (logarithmic)", more=f' transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2:.0f}) rotate(-90)"')]
    for value in y_axis.ticks():
        y = y_axis(value)
        out.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>' + text(LEFT - 6, y + 4, time_name(value), "end"))
    for i, value in enumerate(x_axis.ticks()):
        x = x_axis(value)
        label = text(x, HEIGHT - BOTTOM + 18, x_name(value)) if i % (2 if len(x_axis.ticks()) > 9 else 1) == 0 else ""
        out.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}" stroke="#eeeeee"/>' + label)
    for i, (label, colour, dashes, points) in enumerate(lines):
        path = " ".join(f"{x_axis(point[0]):.1f},{y_axis(point[1]):.1f}" for point in points)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>')
        out += [f'<circle cx="{x_axis(point[0]):.1f}" cy="{y_axis(point[1]):.1f}" r="2.5" fill="{colour}"/>' for point in points]
        out += [f'<path d="M{x_axis(x):.1f} {y_axis(low):.1f}V{y_axis(high):.1f}" stroke="{colour}"/>' for x, _, low, high in
                (point for point in points if len(point) == 4)]
        y, x = TOP + 12 + 20 * i, WIDTH - RIGHT + 14
        out.append(f'<path d="M{x} {y}h26" stroke="{colour}" stroke-width="2"{dashes}/>' + text(x + 32, y + 4, label, "start"))
    return "\n".join(out + ["</svg>", ""])


def main():
    result = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    directory = pathlib.Path(sys.argv[2])
    machine = result["machine"]
    note = ", ".join(filter(None, [machine["gpu"], machine["driver"] and "driver " + machine["driver"], result["when"]]))
    name = lambda mode: mode if mode == "bare" else f"mode = {mode}"
    opening = [(f"{verb}, {name(mode)}", COLOURS[mode], DASHES[verb], [[point[0], *point[column : column + 3]] for point in points])
               for mode, points in result["sweep"].items() for column, verb in ((1, "open"), (4, "close"))]
    (directory / "open-close.svg").write_text(
        plot("Opening and closing a region", note, "size of the region", 2, size_name, opening), encoding="utf-8")
    live = [(name(mode), COLOURS[mode], "", [(point[0], point[1]) for point in points])
            for mode, points in result["live"].items()]
    (directory / "live.svg").write_text(
        plot("malloc + free of 1 KiB beside live allocations", note, "live allocations", 10, number_name, live), encoding="utf-8")


if __name__ == "__main__":
    main()
