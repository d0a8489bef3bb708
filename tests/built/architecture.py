#!/usr/bin/env python3
"""docs/architecture.svg: the rooms as they are, from the includes and the object files (tests/built/house.py).

usage: architecture.py BUILD           writes the picture
       architecture.py --check BUILD   fails when the picture is not what it would write

A room uses only rooms below it. An arrow says that it uses another one; an arrow that follows from others is left
out. What a room is for stands below, and in docs/architecture.md.
"""
import glob
import html
import os
import re
import sys

from house import House, rooms_of

PURPOSE = {
    "hip": "the front end for HIP, a library of its own",
    "cuda": "the front end: hooks, look-ups, the driver's operations",
    "doors": "dlsym, and the vendor's library found",
    "lifecycle": "start, fork, exit, teardown",
    "suspend": "what it shares let go of, and taken again",
    "rules": "which allocation a rule takes, and what becomes of it",
    "calls": "what a call of the program means",
    "writes": "who looks at copies and fills",
    "ipc": "export, import, close before free",
    "merge": "what is equal is held once",
    "learn": "what stays as it was uploaded",
    "frames": "whole frames, exchanged",
    "gate": "when the device is idle, and stays so",
    "digest": "bytes hashed and compared",
    "vmm": "memory that the keeper holds",
    "findings": "policy, reports, diagnosis, leaks",
    "registry": "what this process has: all uthash tables",
    "threads": "threads of ours, watches, waits",
    "process": "who this process is",
    "python": "frames of CPython",
    "driver": "the seam to a vendor: its operations",
    "stack": "modules, stacks, the call under way",
    "log": "findings, written",
    "keeper": "talking to the keeper",
    "directory": "records, names, leases, processes",
    "config": "options and rules",
    "util": "text, clocks, descriptors",
    "tools/keeper": "the keeper itself",
    "tools/top": "who uses how much, live and for Prometheus",
    "tools/suspend": "programs taken off the GPU, and brought back",
    "tools/selftest": "what gpushare is for, tried on this machine",
    "tools/doctor": "what would keep sharing from working here",
    "tools/learn": "rules made from what was seen",
    "tools/run": "commands run with the library",
    "tools/matching": "rules explained: explain, check",
    "tools/directory": "what is shared: ls, show, drop, gc",
    "tools/timeline": "event logs as a page, for Perfetto, or as a stream",
    "tools/report": "findings as text, JSON, SARIF",
    "tools/symbols": "functions, files and lines",
    "tools/logs": "logs read back",
    "tools/cli": "options, tables, JSON, terminals",
}
WIDTH, ROW, GAP, MARGIN, ARCS = 940, 34, 12, 20, 90
INK, PALE, PAPER, LINE = "#1c2733", "#5d6b7a", "#f4f7fa", "#7d97b0"


def uses(house, tree, rooms):
    """{room: rooms of the same tree that it uses}"""
    found = {room: set() for room in rooms}
    pairs = [(path, other) for path, others in house.symbols.items() for other in others]
    pairs += [(path, header) for path, headers in house.includes.items() for header in headers]
    for path, other in pairs:
        room, below = (house.room(file).removeprefix(tree + "/") for file in (path, other))
        if path.startswith(tree) and other.startswith(tree) and room != below and {room, below} <= set(rooms):
            found[room].add(below)
    return found


def reach(graph, room, seen=None):
    seen = set() if seen is None else seen
    for below in graph[room] - seen:
        seen.add(below)
        reach(graph, below, seen)
    return seen


def reduced(graph):
    """Without the arrows that follow from others."""
    return {room: {below for below in belows if not any(below in reach(graph, other) for other in belows - {below})}
            for room, belows in graph.items()}


def text(x, y, size, colour, words, more=""):
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}"{more}>{html.escape(words)}</text>'


def draw_tree(house, tree, variable, top):
    rooms = rooms_of(variable)[::-1]
    out = [text(MARGIN, top + 16, 15, INK, tree + "/", ' font-weight="bold"')]
    top += 28
    middle = {room: top + number * (ROW + GAP) + ROW / 2 for number, room in enumerate(rooms)}
    right = WIDTH - MARGIN - ARCS
    for room, belows in reduced(uses(house, tree, rooms)).items():
        for below in sorted(belows):
            start, end = middle[room], middle[below]
            steps = rooms.index(below) - rooms.index(room)
            if steps == 1:
                path = f"M{MARGIN + 60} {start + ROW / 2:g}V{end - ROW / 2:g}"
            else:
                reach_out = min(ARCS - 8, 26 + 11 * steps)
                path = f"M{right} {start + 5:g}C{right + reach_out} {start + 5:g} {right + reach_out} {end - 5:g} {right} {end - 5:g}"
            out.append(f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.5" marker-end="url(#tip)"/>')
    for room, y in middle.items():
        files = [os.path.basename(path)[:-2] for path in house.files
                 if path.startswith(f"{tree}/{room}/") and path.endswith(".c")]
        out.append(f'<rect x="{MARGIN}" y="{y - ROW / 2:g}" width="{right - MARGIN}" height="{ROW}" rx="5" '
                   f'fill="{PAPER}" stroke="{LINE}"/>')
        out.append(text(MARGIN + 12, y + 5, 14, INK, room, ' font-weight="bold"'))
        purpose = PURPOSE.get(f"{tree}/{room}") or PURPOSE[room]
        out.append(text(MARGIN + 118, y - 3, 12, INK, purpose))
        out.append(text(MARGIN + 118, y + 11, 9.5, PALE, "  ".join(files)))
    return out, top + len(rooms) * (ROW + GAP)


def draw(house):
    shim, bottom = draw_tree(house, "shim", "ROOMS", MARGIN)
    tools, bottom = draw_tree(house, "tools", "TOOL_ROOMS", bottom + 14)
    height = bottom + MARGIN - GAP
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'font-family="DejaVu Sans, Verdana, sans-serif">',
        "<title>The rooms of shim/ and tools/: an arrow says that a room uses another one</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{LINE}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>', *shim, *tools, "</svg>", ""])


def missing_files():
    """Files that the page names and that are not there: from the top, from a tree, or alone as one of a room's."""
    with open("docs/architecture.md", encoding="utf-8") as file:
        named = set(re.findall(r"`((?:[\w-]+/)*[\w-]+\.(?:c|h|py|S|inc|def|awk|conf|hpp|cpp))`", file.read()))
    trees = ["", "shim/", "tools/", "include/gpushare/"]
    known = {path.rsplit("/", 1)[1] for tree in ("shim", "tools", "tests") for path in glob.glob(f"{tree}/**/*.*", recursive=True)}
    return sorted(name for name in named - {"cuda.h"}
                  if not any(os.path.exists(tree + name) for tree in trees) and ("/" in name or name not in known))


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(arguments) != 1:
        sys.exit(__doc__)
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    picture = draw(House(arguments[0]))
    if missing := missing_files():
        sys.exit(f"docs/architecture.md names files that are not there: {', '.join(missing)}")
    if "--check" in sys.argv:
        with open("docs/architecture.svg", encoding="utf-8") as file:
            if file.read() != picture:
                sys.exit(f"docs/architecture.svg is not what the code is; tests/built/architecture.py {arguments[0]} draws it")
        return
    with open("docs/architecture.svg", "w", encoding="utf-8") as file:
        file.write(picture)


if __name__ == "__main__":
    main()
