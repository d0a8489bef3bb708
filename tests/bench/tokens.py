#!/usr/bin/env python3
"""Opening and closing a token (backing = vmm) against the bare driver's legacy handle of the same size, and what
a launch and a copy cost beside rules: runs of `calls pick`, a bare one and a preloaded one in turn.

usage: tokens.py BUILD_DIR gpu|sim ROUNDS [CARDS]

A line a row, as of tests/gpu/replicas.py; the figures go to BUILD_DIR/gpu-results/replicas-tokens.json. With two
cards also the importer on one and the exporter on the other; bare CUDA then maps its memory to every card.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

RULES = """
[region token-{size}]
program = calls
size = {size}
role = export
backing = vmm
"""
MERGE = """
[region elsewhere]
program = calls
size = 3TiB
role = merge
"""
OPENS = ["open+close 64 MiB", "open+close 4 GiB"]
BESIDE = ["kernel launch", "memcpy 4 KiB", "malloc+free 2 MiB"]


class Pairs:
    def __init__(self, build, driver, folder):
        self.build, self.folder = pathlib.Path(build).resolve(), folder
        self.results = pathlib.Path(os.environ.get("RESULTS", self.build / "gpu-results"))
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE_") or "_SIM_" in key}
        if driver == "sim":
            self.environment["LD_LIBRARY_PATH"] = f"{self.build}/sim"

    def config(self, name, text):
        path = pathlib.Path(self.folder, name + ".conf")
        path.write_text(text, encoding="utf-8")
        return {"LD_PRELOAD": f"{self.build}/libgpushare.so", "GPUSHARE_CONFIG": str(path), "GPUSHARE_DIR": f"{self.folder}/{name}",
                "GPUSHARE_LOG": f"{self.results}/replicas-tokens-{name}.log"}

    def run(self, rows, extra):
        done = subprocess.run([f"{self.build}/bench/calls", "pick", *rows], env={**self.environment, **extra}, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise RuntimeError(f"calls ends with {done.returncode}: {done.stdout.strip()[-200:]}")
        lines = [line.split("\t") for line in done.stdout.splitlines() if "\t" in line]
        return {row: float(value) for row, value in lines}

    def pairs(self, rows, rounds, shim, both):
        """For each row the medians of the bare and of the preloaded runs, of the differences and of the ratios."""
        seen = {}
        for _ in range(rounds):
            bare, with_shim = self.run(rows, both), self.run(rows, {**both, **shim})
            for row, value in bare.items():
                if row.endswith(", token"):
                    if with_shim[row] != 1:
                        raise RuntimeError("what was opened was no token: see the log")
                    continue
                seen.setdefault(row, []).append((value, with_shim[row]))
        return {row: [statistics.median(values) for values in zip(*((a, b, b - a, b / a) for a, b in pairs))]
                for row, pairs in seen.items()}


def report(good, name, remark):
    print("ok" if good else "FAIL", name, remark, sep="\t", flush=True)


def main():
    build, driver, rounds, cards = sys.argv[1], sys.argv[2], int(sys.argv[3]), int((sys.argv[4:] or ["1"])[0])
    figures = []
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gpushare-tokens-") as folder:
        pairs = Pairs(build, driver, folder)
        token = pairs.config("token", RULES.format(size="64MiB") + RULES.format(size="4GiB"))
        places = [("", {})] if cards < 2 else [
            (", the importer's card", {}), (", another card than the importer's", {"EXPORTER_DEVICE": "1"})]
        runs = [(f"token against legacy handle{place}: ", OPENS, token, both) for place, both in places]
        runs += [("beside rules: ", BESIDE, token, {}),
                 ("beside a rule with role = merge: ", ["memcpy 4 KiB", "kernel launch"], pairs.config("merge", MERGE), {})]
        for name, rows, shim, both in runs:
            try:
                for row, (bare, preloaded, more, ratio) in pairs.pairs(rows, rounds, shim, both).items():
                    report(True, name + row, f"{bare / 1e3:.2f} us bare, {preloaded / 1e3:.2f} us, {more:+.0f} ns, ratio {ratio:.3f}")
                    figures.append({"what": name + row, "without": f"{bare / 1e3:.2f} us",
                                    "with": f"{preloaded / 1e3:.2f} us ({ratio:.3f})"})
            except (RuntimeError, OSError, subprocess.SubprocessError, KeyError) as error:
                report(False, name + ", ".join(rows), f"{error}"[:300].replace("\n", " "))
    (pairs.results / "replicas-tokens.json").write_text(json.dumps({"weights": 0, "driver": driver, "figures": figures}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
