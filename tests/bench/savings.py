#!/usr/bin/env python3
"""Draws what merging saves, docs/savings.svg, from the measured table of docs/replicas.md: the memory of N replicas
and how long a further one loads, bare beside merged. A cell with a range, as "0.21 s (0.20 to 0.23)", gets a whisker.

usage: savings.py [--check]     (make bench-docs; --check: is the committed picture that of the table?)
"""
import html
import math
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE, PICTURE = ROOT / "docs/replicas.md", ROOT / "docs/savings.svg"
WIDTH, LEFT, RIGHT, BAR, GAP, HEAD, FOOT = 760, 236, 690, 15, 14, 34, 44
SERIES = [("bare", "bare"), ("merged", "merged"), ("once", "merged, quiet = 0")]
PANELS = [("GiB", "Memory of all replicas together", "GiB of GPU memory", ("memory of ",)),
          ("s", "Loading a further replica", "seconds", ("a further one loads ", "a further one is ready "))]
# The picture brings its own ground, so that it can be read on any page.
STYLE = """\
.ground{fill:#fff}text{fill:#24292f}.quiet{fill:#57606a}.grid{stroke:#d8dee4}.whisker{stroke:#24292f}
.bare{fill:#8c959f}.merged{fill:#1f6feb}.once{fill:#1a7f37}.merged-line{stroke:#1f6feb}.once-line{stroke:#1a7f37}
@media (prefers-color-scheme:dark){.ground{fill:#161b22}text{fill:#e6edf3}.quiet{fill:#9da7b1}.grid{stroke:#373e47}
.whisker{stroke:#e6edf3}.bare{fill:#7d8590}.merged{fill:#58a6ff}.once{fill:#3fb950}
.merged-line{stroke:#58a6ff}.once-line{stroke:#3fb950}}"""


def figure(cell, unit):
    """(value, low, high) of "0.21 s (0.20 to 0.23)", the range without which is the value; None where there is none."""
    found = re.fullmatch(rf"([\d.]+) {unit}(?: \(([\d.]+) to ([\d.]+)\))?", cell)
    if not found:
        return None
    value = float(found[1])
    return value, float(found[2] or value), float(found[3] or value)


def measured():
    """What the page says of machine and day, and its rows: program, what was measured, and a cell a series."""
    block = re.search(r"<!-- measured:.*?-->\n(.*?)<!-- end -->", PAGE.read_text(encoding="utf-8"), re.S)[1]
    rows, program = [], ""
    for line in re.findall(r"^\| (.*) \|$", block, re.M)[2:]:
        cells = [cell.strip().replace("`", "") for cell in f" {line} ".split("|")]
        program = cells[0] or program
        rows.append((program, *cells[1:]))
    return block.split(", by ")[0], rows


def groups(rows, unit, kinds):
    """[(program, what was measured, [(series, figure)])] of rows that have a bare figure and another one."""
    found = []
    for program, what, *cells in rows:
        figures = [(name, figure(cell, unit)) for (name, _), cell in zip(SERIES, cells)]
        figures = [(name, one) for name, one in figures if one]
        if what.startswith(kinds) and len(figures) > 1 and figures[0][0] == "bare":
            found.append((program, what, figures))
    return found


def text(x, y, words, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{html.escape(words)}</text>'


def document(title, width, height, body):
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="sans-serif" font-size="12" role="img">', f"<title>{title}</title>", f"<style>{STYLE}</style>",
            f'<rect class="ground" width="{width}" height="{height}" rx="8"/>']
    return "\n".join(head + body + ["</svg>", ""])


def step_of(most):
    """Of an axis with four to eight steps."""
    power = 10 ** math.floor(math.log10(most / 4))
    return next(power * times for times in (1, 2, 5, 10) if most / (power * times) <= 8)


def wrapped(words, width=36):
    lines = [""]
    for word in words.split():
        if len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def bars(top, figures, unit, scale):
    out, y = [], top
    for name, (value, low, high) in figures:
        out.append(f'<rect class="{name}" x="{LEFT}" y="{y}" width="{value * scale:.1f}" height="{BAR - 2}"/>')
        if high > low:
            out.append(f'<path class="whisker" d="M{LEFT + low * scale:.1f} {y + 6.5}H{LEFT + high * scale:.1f}"/>')
        out.append(text(LEFT + max(value, high) * scale + 5, y + 11, f"{value:g} {unit}", more=' font-size="11"'))
        y += BAR
    return out, y


def panel(top, title, unit, axis, found):
    most = max(one[2] for _, _, figures in found for _, one in figures)
    step = step_of(most)
    scale = (RIGHT - LEFT - 20) / (math.ceil(most / step - 1e-9) * step)
    out, y = [text(16, top + 16, title, more=' font-size="14" font-weight="bold"')], top + HEAD
    for program, what, figures in found:
        lines = wrapped(program)
        out += [text(LEFT - 10, y + 11 + 14 * i, line, "end") for i, line in enumerate(lines)]
        out.append(text(LEFT - 10, y + 11 + 14 * len(lines), what, "end", ' font-size="11" class="quiet"'))
        more, low = bars(y, figures, unit, scale)
        out += more
        y = max(low, y + 14 * (len(lines) + 1)) + GAP
    grid = []
    for i in range(math.ceil(most / step - 1e-9) + 1):
        x = LEFT + i * step * scale
        grid.append(f'<path class="grid" d="M{x:.1f} {top + HEAD - 6}V{y - 4}"/>' + text(x, y + 10, f"{i * step:g}", "middle", ' font-size="11"'))
    return grid + out + [text((LEFT + RIGHT) / 2, y + 26, axis, "middle", ' class="quiet"')], y + FOOT


def picture():
    note, rows = measured()
    body, y, x = [], 48, LEFT
    for name, words in SERIES:
        body.append(f'<rect class="{name}" x="{x}" y="18" width="14" height="12"/>' + text(x + 20, 28, words))
        x += 50 + 8 * len(words)
    for unit, title, axis, kinds in PANELS:
        more, y = panel(y, title, unit, axis, groups(rows, unit, kinds))
        body += more
    body.append(text(WIDTH - 16, y + 6, note, "end", ' font-size="11" class="quiet"'))
    return document("What merging saves: memory and loading time", WIDTH, y + 20, body)


def main():
    if sys.argv[1:] != ["--check"]:
        PICTURE.write_text(picture(), encoding="utf-8")
    elif PICTURE.read_text(encoding="utf-8") != picture():
        sys.exit("docs/savings.svg is not that of the table in docs/replicas.md: tests/bench/savings.py draws it")


if __name__ == "__main__":
    main()
