#!/usr/bin/env python3
"""Makes docs/compatibility.md from runs that are recorded: the rows in docs/machines.jsonl, which `gpushare doctor --selftest
--json` has printed, and the tables of docs/checked.md, which tests/gpu/check.sh has. What neither has says "not run".

Usage: tests/documents/compatibility.py [--check]          writes the page, or says whether it is as it would be written
       tests/documents/compatibility.py --add FILE...      adds rows of `doctor --selftest --json` to docs/machines.jsonl
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MACHINES, CHECKED, PAGE = ROOT / "docs/machines.jsonl", ROOT / "docs/checked.md", ROOT / "docs/compatibility.md"
STEPS = ["share", "hand_over", "misuse", "merge"]
NOT_RUN = "not run"


def unmodified(names):
    return rf"unmodified: (?:{names}), mode {{}}$"


TOGETHER = r"|simple IPC \(both runtimes\), driver_only, share, audit$"  # one row for both modes
# What people run: its name, the module whose version a run records, and which rows of checked.md are about it, as regular
# expressions: of a mode, and of merging. None: no step of check.sh is about it.
PROGRAMS = [
    ("PyTorch, its own allocator", "torch", unmodified("torch-queues|torch-spawn|torch-loader|torch-graph|torch-events"), r"(?:model|PyTorch)\b.*"),
    ("PyTorch, expandable segments", "torch", unmodified("torch-expandable"), None),
    ("transformers", "transformers", None, r"transformers,.*"),
    ("JAX", "jax", unmodified("jax"), None),
    ("CuPy", "cupy", unmodified("cupy"), None),
    ("numba", "numba", unmodified("numba"), None),
    ("cuda.bindings (start only)", "cuda.bindings", unmodified("cuda-bindings"), None),
    ("mpi4py (import only)", "mpi4py", unmodified("import-mpi4py"), None),
    ("vLLM", "vllm", None, None),
    ("SGLang", "sglang", None, None),
    ("simple IPC of this project, both runtimes", None, unmodified("simple_ipc-shared|simple_ipc-static") + TOGETHER, None),
    ("a program of the driver API alone", None, unmodified("driver_only") + TOGETHER, None),
    ("nvidia-smi", None, unmodified("nvidia-smi"), None),
]
# Runs by hand on H200s with the driver above, each equal to bare in status and output: what, version, share, audit, merge.
BY_HAND = [
    ("NCCL, two tensor-parallel replicas on two cards, by cuMem, by legacy IPC, with symmetric memory", "2.28", "ok", "ok", "ok"),
    ("ggml, llama.cpp (libraries of CUDA 12 as npm ships them), three replicas", "", NOT_RUN, NOT_RUN,
     "ok: 8.62 to 4.35 GiB, 99.9 % of what is equal"),
    ("NVIDIA's CUDA samples, merge with `quiet = 0` for everything", "", "40 of 40 ok", "40 of 40 ok",
     "38 of 40 ok: two write what they uploaded"),
    ("PyTorch, expandable segments, `created = on`", "2.11.0", NOT_RUN, NOT_RUN, "ok: by a rule of `learn` 960 of 980 MiB"),
    ("transformers, expandable segments, `created = on`", "5.17", NOT_RUN, NOT_RUN, "ok"),
]
BY_HAND_DATE = "2026-11-27 to 30"
BEGINNING = """\
# Known to work

Made by `tests/documents/compatibility.py` from runs that are recorded here: [machines.jsonl](machines.jsonl) has what `gpushare doctor
--selftest` printed, [checked.md](checked.md) what `make check-gpu` did, with every row and what failed. What neither
has says "not run": it may well work. Some was run by hand, and stands for itself.

## Machines

`gpushare doctor --selftest` takes half a minute at most, and its last line is a row for this table. Send it, with a word on
what the machine is; with `--json` it is what [machines.jsonl](machines.jsonl) has.
"""


# --- what is recorded ---

def machines():
    return [json.loads(line) for line in MACHINES.read_text(encoding="utf-8").splitlines() if line]


class Section:
    """A part of checked.md that has a table: when it was run, on which cards, and its rows."""

    def __init__(self, text, date, cards):
        self.date, self.cards = date, cards
        self.rows, self.versions, of = [], {}, ""
        for line in "\n".join(re.findall(r"^```\n(.*?)^```", text, re.M | re.S)).splitlines():
            row = re.match(r"(\S.*?|    .*?) +(ok|FAIL|miss|skip)(?: .*)?$", line)
            version = re.match(r"    version: (\S+) (\S+)$", line)
            if version:
                self.versions[version[1]] = version[2]
            elif row:  # one that stands further in belongs to the one before
                of = of if row[1].startswith(" ") else row[1].removeprefix("morning: ")
                self.rows.append((of, row[2]))


def sections():
    """The newest first."""
    text = CHECKED.read_text(encoding="utf-8")
    head = re.search(r"On (\d{4}-\d\d-\d\d) and -(\d\d), on (NVIDIA \w+) with driver (\S+) and (CUDA \S+), by", text)
    found = []
    for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, re.M | re.S):
        if re.match(r"\d{4}-", title):
            cards = re.search(r"\bH\d+", body)[0]  # the first one named
            found.append(Section(body, title, "NVIDIA " + cards))
        else:  # the first runs: their day stands at the top
            found.append(Section(body, f"{head[1]} or -{head[2]}", head[3]))
    return sorted(found, key=lambda section: section.date, reverse=True), head[4], head[5]


# --- the tables ---

def outcome(runs, pattern):
    """Of the newest section that has such rows: (outcome, section)."""
    for section in runs if pattern else []:
        words = [word for name, word in section.rows if re.match(pattern, name) and word not in ("skip", "miss")]
        if words:
            good = words.count("ok")
            return ("ok" if good == len(words) else f"{good} of {len(words)} rows ok"), section
    return NOT_RUN, None


def cell(runs, pattern):
    said, section = outcome(runs, pattern)
    return f"{said}<br><sub>{section.date}, {section.cards.removeprefix('NVIDIA ')}</sub>" if section else said


def version_of(runs, module):
    found = [section.versions[module] for section in runs if module in section.versions]
    return found[0] if found else "not recorded"


def table(titles, rows):
    return "".join("| " + " | ".join(row) + " |\n" for row in [titles, ["---"] * len(titles), *rows])


def machine_rows(runs, driver, interface):
    rows = [[row["date"], row["gpushare"], row["gpu"], row["driver"], row["interface"], row["glibc"], row["container"],
             *(row[step] for step in STEPS)] for row in machines()]
    tested = {row["gpu"] for row in machines()}
    for cards in sorted({section.cards for section in runs}):
        if not any(cards in gpu for gpu in tested):
            rows.append([NOT_RUN, "", f"{cards} ([checked.md](checked.md) has other runs)", driver, interface, "", "", *[NOT_RUN] * 4])
    rows.append([NOT_RUN, "", "any AMD card", "", "", "", "", *[NOT_RUN] * 4])
    return rows


def program_rows(runs):
    for name, module, started, merging in PROGRAMS:
        share, audit = (started and started.format(mode) for mode in ("share", "audit"))
        patterns = share, audit, merging
        cells = [cell(runs, pattern) for pattern in patterns]
        told = [section for section in (outcome(runs, pattern)[1] for pattern in patterns) if section]
        version = version_of(told, module) if told and module else ""
        yield [name, version, *cells]


def container_rows(runs):
    yield ["pid namespaces, as podman makes them", cell(runs, r"containers: ")]
    for engine in ("docker", "Kubernetes", "apptainer"):
        yield [engine, NOT_RUN]


def page():
    runs, driver, interface = sections()
    titles = ["date", "gpushare", "GPU", "driver", "CUDA or HIP", "glibc", "container", "share", "hand-over", "misuse", "merge"]
    return "\n".join([
        BEGINNING, table(titles, machine_rows(runs, driver, interface)),
        "## Engines and libraries\n",
        f"On cards with driver {driver} and {interface}. Share and audit: the program runs unmodified, with the status and output that it",
        "has bare. Merge: it runs as replicas under a merge rule. A cell is of the newest run that has such rows; where not all are",
        "ok, [checked.md](checked.md) says which, and why. Versions are recorded since 0.2.0.\n",
        table(["what", "version", "share", "audit", "merge"], program_rows(runs)),
        "## By hand\n",
        f"Not by the project's own steps, so no step repeats them: on H200s with driver {driver}, on {BY_HAND_DATE}, each equal to bare in",
        "status and output.\n",
        table(["what", "version", "share", "audit", "merge"], BY_HAND),
        "## Containers\n",
        "In `make check` podman runs programs in containers on the simulated driver ([containers.md](containers.md)). With cards:\n",
        table(["what", "outcome"], container_rows(runs))])


def add(paths):
    with MACHINES.open("a", encoding="utf-8") as file:
        for path in paths:
            file.write(json.dumps(json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["row"]) + "\n")


def main():
    if sys.argv[1:2] == ["--add"]:
        add(sys.argv[2:])
    elif sys.argv[1:] != ["--check"]:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit(f"{PAGE.relative_to(ROOT)} is not what tests/documents/compatibility.py makes")


main()
