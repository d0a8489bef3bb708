#!/usr/bin/env python3
"""Random programs of right steps (right.c: memory of cuMemCreate, descriptors, pools, legacy handles) in audits, which
must not find anything.

usage: right.py BUILD_DIR [--seconds N] [--seed N] [--steps N] [--mode audit|share|bare] [--jobs N]

The seed of a program decides its steps; SEED=n is --seed n, the first of the run's programs. A program that fails, or
of which anything is reported, is printed with its seed, and the exit status is 1. Ends with a line of sums.
"""
import concurrent.futures
import os
import shutil
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../common"))
import trial
from patience import patient

LIMIT = patient(300)  # seconds a program


def environment(build, place, mode):
    clean = trial.on_card(build, place) | {"GPUSHARE_SIM_LINGER_MS": "100"}
    if mode == "bare":
        return clean
    return clean | {"LD_PRELOAD": f"{build}/libgpushare.so", "GPUSHARE_DIR": f"{place}/pub", "GPUSHARE_CONFIG": "/dev/null",
                    "GPUSHARE_MODE": mode, "GPUSHARE_LOG": f"{place}/log-%p", "GPUSHARE_LOG_LEVEL": "info"}


def run(build, seed, steps, mode):
    """What is wrong, or an empty text."""
    place = trial.make_place("right")
    try:
        done = subprocess.run([f"{build}/tests/soak-right", str(seed), str(steps)], env=environment(build, place, mode),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False)
        logs = sorted(path for path in place.iterdir() if path.name.startswith(("log-", "assertions")))
        said = done.stdout + done.stderr + "".join(path.read_text(errors="replace") for path in logs)
        return f"ended with {done.returncode}\n{said}" if done.returncode or said else ""
    except subprocess.TimeoutExpired:
        return f"did not end in {LIMIT} s"
    finally:
        shutil.rmtree(place, ignore_errors=True)


def main():
    parser = trial.options(__doc__, seconds=20)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--mode", choices=["audit", "share", "bare"], default="audit")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    build, until = options.build, time.monotonic() + options.seconds
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
