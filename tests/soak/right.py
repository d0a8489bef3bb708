#!/usr/bin/env python3
"""Random programs of right steps (right.c: memory of cuMemCreate, descriptors, pools, legacy handles) in audits, which
must not find anything.

usage: right.py BUILD_DIR [--seconds N] [--seed N] [--steps N] [--mode audit|share|bare] [--jobs N]

The seed of a program decides its steps; SEED=n is --seed n, the first of the run's programs. A program that fails, or
of which anything is reported, is printed with its seed, and the exit status is 1. Ends with a line of sums.
"""
import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
from patience import patient

LIMIT = patient(300)  # seconds a program


def environment(build, place, mode):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("GPUSHARE")}
    clean |= {"LD_LIBRARY_PATH": f"{build}/sim", "GPUSHARE_SIM_ROOT": f"@{place}", "GPUSHARE_SIM_LINGER_MS": "100"}
    if mode == "bare":
        return clean
    return clean | {"LD_PRELOAD": f"{build}/libgpushare.so", "GPUSHARE_DIR": f"{place}/pub", "GPUSHARE_CONFIG": "/dev/null",
                    "GPUSHARE_MODE": mode, "GPUSHARE_LOG": f"{place}/log-%p", "GPUSHARE_LOG_LEVEL": "info",
                    "GPUSHARE_ASSERTIONS": f"{place}/assertions"}


def run(build, seed, steps, mode):
    """What is wrong, or an empty text."""
    place = tempfile.mkdtemp(prefix="gpushare-right-", dir="/dev/shm")
    try:
        done = subprocess.run([f"{build}/tests/soak-right", str(seed), str(steps)], env=environment(build, place, mode),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False)
        logs = sorted(path for path in pathlib.Path(place).iterdir() if path.name.startswith(("log-", "assertions")))
        said = done.stdout + done.stderr + "".join(path.read_text(errors="replace") for path in logs)
        return f"ended with {done.returncode}\n{said}" if done.returncode or said else ""
    except subprocess.TimeoutExpired:
        return f"did not end in {LIMIT} s"
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "1")))
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--mode", choices=["audit", "share", "bare"], default="audit")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    build, until = options.build.resolve(), time.monotonic() + options.seconds
    seed, failed = options.seed, []

    def one(number):
        return number, run(build, number, options.steps, options.mode)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        while time.monotonic() < until:
            for number, wrong in pool.map(one, range(seed, seed + options.jobs)):
                if wrong:
                    failed.append(number)
                    print(f"seed {number}: {wrong}", flush=True)
            seed += options.jobs
    print(f"right: mode {options.mode}, programs {options.seed} to {seed - 1} of {options.steps} steps, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
