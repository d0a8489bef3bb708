#!/usr/bin/env python3
"""Beside a preloaded library that limits device memory (tests/gpu/programs/limiter.c), which stands behind gpushare:
its limit holds, with each kind of rule; the audit finds what it finds; replicas merge.

usage: limiter.py BUILD sim|gpu     rows as fleet.py prints them

LIMITER_EVERYWHERE=1  put it into /etc/ld.so.preload meanwhile, as clusters do, and not into LD_PRELOAD (needs root;
                      then every program that starts on the machine has it)
"""
import contextlib
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

from fleet import MIB, Fleet, Table, gib, merge_rule, sums
from replicas import Weights

PRELOADED = pathlib.Path("/etc/ld.so.preload")
LIMIT = 320 * MIB + 4096  # five pieces of 64 MiB, and no sixth
RULES = {
    "no rule": "",
    "audit": "[gpushare]\nmode = audit\n",
    "export": "[region piece{n}]\nprogram = *\nsize = 64MiB\nindex = *\nrole = export\n",
    "export, vmm": "[region piece{n}]\nprogram = *\nsize = 64MiB\nindex = *\nrole = export\nbacking = vmm\n",
    "merge": "[region pieces]\nprogram = *\nrole = merge\n",
    "merge, quiet = 0": "[region pieces]\nprogram = *\nrole = merge\nquiet = 0\n",
}
TORCH = """import torch
taken = []
try:
    while len(taken) < 16:
        taken.append(torch.empty(64 << 20, dtype=torch.uint8, device="cuda"))
    print("taken all")
except torch.OutOfMemoryError:
    count = len(taken)
    del taken[1:]
    print("taken", count, "then out of memory, right", bool((taken[0].fill_(7) == 7).all()))
"""


class Limited:
    """Programs with the limiter, bare or behind gpushare."""

    def __init__(self, fleet):
        self.fleet, self.library, self.log = fleet, fleet.programs / "limiter.so", fleet.results / "limiter.log"

    def run(self, words, config=None, limit=LIMIT):
        """What it prints, its status, and what the limiter says that this program was given and refused."""
        self.log.unlink(missing_ok=True)
        words, variables = [str(word) for word in words], self.fleet.environment(config, self.fleet.results / "limiter.jsonl")
        done = subprocess.run(words, env=variables | {"LIMITER_BYTES": str(limit)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, timeout=100)
        return (done.stdout.strip() or done.stderr.strip()[-200:], done.returncode), self.said(words[0])

    def said(self, program):
        text = self.log.read_text(encoding="utf-8") if self.log.exists() else ""
        return [line for line in text.splitlines() if line.startswith(pathlib.Path(program).name)]


@contextlib.contextmanager
def everywhere(library):
    before = PRELOADED.read_text(encoding="ascii") if PRELOADED.exists() else None
    PRELOADED.write_text(f"{before or ''}{library}\n", encoding="ascii")
    try:
        yield
    finally:
        if before is None:
            PRELOADED.unlink()
        else:
            PRELOADED.write_text(before, encoding="ascii")


def limits(limited, table, name, words):
    """The same answers under the same limit."""
    bare, (counted,) = limited.run(words)
    for rule, text in RULES.items():
        config = limited.fleet.config(re.sub(r"\W", "", rule), text)
        found, said = limited.run(words, config)
        given = [line.split("given", 1)[1] for line in [counted, *said]]
        table.row(found == bare and len(said) == 1 and "refused 0" not in said[0], f"{name}, {rule}: the limit holds as bare",
                  f"{found[0]} (bare {bare[0]}); given{' |'.join(given)}")


def audited(limited, table):
    """Each misuse, with the limiter in both runs."""
    for program in ("misuse", "misuse_static"):
        where = "gpu" if program == "misuse_static" and limited.fleet.driver == "gpu" else "apps"
        done = subprocess.run(["tests/gpu/misuse.sh", limited.fleet.build, limited.fleet.build / "tests" / where / program],
                              env=os.environ | {"LD_PRELOAD": ":".join(map(str, limited.fleet.behind))}, stdout=subprocess.PIPE, text=True, timeout=300)
        lines = done.stdout.splitlines()
        table.row(done.returncode == 0, f"{program}: each misuse is found, none invented", "; ".join(lines[-1:] + lines[:-1][:5]))


def replicas(limited, table):
    """Four that merge; each is accounted for what its own cudaMalloc asked for."""
    fleet = limited.fleet
    weights = Weights(fleet, 1024 * MIB if fleet.driver == "gpu" else 64 * MIB, "layers=16")
    bare = weights.start("bare").ready()
    right, private = bare.ask("sum"), weights.used()
    weights.end([bare])
    limited.log.unlink(missing_ok=True)
    members = [weights.start(f"merged-{i}", fleet.config("weights", merge_rule("weights_*", quiet=0)), ("shared", "static")[i % 2]).ready()
               for i in range(4)]
    limit = weights.limit(4)
    used = weights.stable_use(limit)
    table.row(used <= limit, "four replicas are one copy + contexts + 2%", f"{gib(used)} of at most {gib(limit)}; without {gib(4 * private)}")
    table.row(set(sums(members)) == {right}, "their sums are those of a bare one", right)
    table.row(weights.end(members) == {0} and not any(member.findings() for member in members), "they end well, and nothing is reported")
    peaks = [int(line.split()[2].rstrip(",")) for line in limited.said("weights_")]
    table.row(len(peaks) == 4 and min(peaks) >= weights.size, "the limiter has counted the weights of each", " ".join(map(gib, peaks)))


def main():
    build, driver = sys.argv[1:3]
    table = Table()
    with Fleet(build, driver, "limiter") as fleet, contextlib.ExitStack() as stack:
        limited = Limited(fleet)
        os.environ["LIMITER_LOG"] = str(limited.log)
        if os.environ.get("LIMITER_EVERYWHERE"):
            stack.enter_context(everywhere(limited.library))
        else:
            fleet.behind = [limited.library]
        for runtime in ("shared", "static"):
            with table.part(f"pieces_{runtime}"):
                limits(limited, table, f"{runtime} runtime", [fleet.programs / f"pieces_{runtime}"])
        if driver == "gpu" and importlib.util.find_spec("torch"):
            with table.part("PyTorch"):
                limits(limited, table, "PyTorch", [sys.executable, "-c", TORCH])
        with table.part("replicas"):
            replicas(limited, table)
        with table.part("misuse"):
            audited(limited, table)


if __name__ == "__main__":
    main()
