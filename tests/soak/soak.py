#!/usr/bin/env python3
"""Eight processes under gpushare that allocate, export, open, close and free at random (worker.c), of which
one after the other is killed or ended and started again; then everything must be as it was.

usage: soak.py BUILD_DIR [--driver sim|gpu] [--mode share|audit] [--seconds N] [--seed N] [--processes N]

Judged at the end: each read byte was its exporter's, each call answered as it should (the workers' journal);
device memory in use is what it was; the published directory holds nothing once `gpushare gc` has removed
what killed processes left; no worker ended otherwise than told; and no finding is untrue. The workers do
only what is legal, but they are killed, and free what others have open: ALLOWED. An open that fails for
that reason is in the journal: there are at most as many findings about opens. The last line counts.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ALLOWED = {
    "free-while-open": "workers free what others have open",
    "exit-while-open": "and end while they have",
    "export-shared-block": "small allocations lie in one block",
    "open-stale": "a file is read, its memory freed, then the handle opened",
    "open-dead-owner": "a file of a killed worker is found before it is removed",
    "open-unknown": "and when its record is gone already",
}
OPENS = ("open-stale", "open-dead-owner", "open-unknown")


class Soak:
    def __init__(self, options):
        self.options = options
        self.build = pathlib.Path(options.build).resolve()
        self.random = random.Random(options.seed)
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="gpushare-soak-", dir="/dev/shm"))
        for name in ("adverts", "logs"):
            (self.place / name).mkdir()
        self.environment = {**os.environ, "GPUSHARE_DIR": f"{self.place}/pub"}
        if options.driver == "sim":
            self.environment |= {"LD_LIBRARY_PATH": f"{self.build}/sim", "GPUSHARE_SIM_ROOT": f"@{self.place}"}
        self.workers, self.killed, self.ended, self.failures = {}, 0, 0, []
        self.meter = subprocess.Popen([self.build / "tests/apps/puppet"], env=self.environment, text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def used(self):
        self.meter.stdin.write("info\n")
        self.meter.stdin.flush()
        code, left, total = map(int, self.meter.stdout.readline().split())
        if code:
            raise SystemExit(f"soak: no device: {code}")
        return total - left

    def start(self):
        words = [self.build / "tests/soak-worker", str(self.random.randrange(1 << 30)),
                 self.place / "adverts", self.place / "journal"]
        if self.options.mode == "audit":
            words.append("unprotected")
        environment = {**self.environment, "LD_PRELOAD": f"{self.build}/libgpushare.so", "GPUSHARE_CONFIG": "/dev/null",
                       "GPUSHARE_MODE": self.options.mode, "GPUSHARE_LOG": f"{self.place}/logs/%p",
                       "GPUSHARE_LOG_FORMAT": "jsonl", "GPUSHARE_LOG_LEVEL": "info"}
        worker = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL)
        self.workers[worker.pid] = worker

    def end(self, worker, number):
        del self.workers[worker.pid]
        worker.send_signal(number)
        try:
            status = worker.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.failures.append(f"worker {worker.pid} hangs")
            worker.kill()
            status = worker.wait()
        if status in (-signal.SIGKILL, -signal.SIGTERM):  # TERM: it had not come to its main yet
            self.killed += 1
            for advert in (self.place / "adverts").glob(f"*{worker.pid}*"):
                if advert.name.lstrip(".").split(".")[0] == str(worker.pid):
                    advert.unlink()
        else:
            self.ended += 1
            if status != 0:
                self.failures.append(f"worker {worker.pid} ended with {status}")

    def run(self):
        for _ in range(self.options.processes):
            self.start()
        until = time.monotonic() + self.options.seconds
        pause = 0.3 if self.options.driver == "sim" else 2.0  # a start on a card takes a second or two
        while time.monotonic() < until:
            time.sleep(self.random.uniform(0, 2 * pause))
            for worker in [one for one in self.workers.values() if one.poll() is not None]:
                self.failures.append(f"worker {worker.pid} died with {worker.returncode}")
                del self.workers[worker.pid]
                self.start()
            worker = self.random.choice(list(self.workers.values()))
            self.end(worker, signal.SIGKILL if self.random.random() < 0.7 else signal.SIGTERM)
            self.start()
        for worker in list(self.workers.values()):
            self.end(worker, signal.SIGTERM)

    def judge_memory(self, before):
        slack = 0 if self.options.driver == "sim" else 64 << 20
        for _ in range(100):
            after = self.used()
            if after <= before + slack:
                return
            time.sleep(0.1)
        self.failures.append(f"{(after - before) >> 10} KiB of device memory are still in use")

    def judge_directory(self):
        files = lambda: [path for path in (self.place / "pub").rglob("*")
                         if not path.is_dir() and path.name != "lock"]
        left = len(files())
        subprocess.run([self.build / "gpushare", "gc"], env=self.environment, check=True, stdout=subprocess.DEVNULL)
        if files():
            self.failures.append(f"in the directory after gc: {' '.join(path.name for path in files()[:5])}")
        return left

    def judge_journal(self):
        counts = collections.Counter()
        for line in (self.place / "journal").read_text().splitlines():
            word, _, rest = line.partition(" ")
            counts[word] += int(rest) if word == "steps" else 1
            if word == "WRONG" and counts[word] <= 10:
                self.failures.append(rest)
        return counts

    def judge_findings(self, journal):
        counts = collections.Counter()
        for log in (self.place / "logs").iterdir():
            for line in log.read_text().splitlines():
                try:
                    record = json.loads(line)
                except ValueError:
                    continue  # the last one of a worker that was killed
                if record["finding"]:
                    counts[record["finding"]] += record["count"] or 1
                    if record["finding"] not in ALLOWED and counts[record["finding"]] == 1:
                        self.failures.append(f"untrue: {record['finding']}: {record['detail']} {record['others']}")
        opens = sum(counts[name] for name in OPENS)
        known = journal["refused"] + journal["raced"] + self.killed
        if opens > known:
            self.failures.append(f"{opens} findings about opens, but only {known} that failed or raced")
        return counts

    def close(self):
        for worker in self.workers.values():
            worker.kill()
            worker.wait()
        self.meter.stdin.close()
        self.meter.wait()
        if self.failures:
            print(f"logs, journal and directory are kept: {self.place}")
        else:
            shutil.rmtree(self.place)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build")
    parser.add_argument("--driver", choices=["sim", "gpu"], default="sim")
    parser.add_argument("--mode", choices=["share", "audit"], default="share")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=8)
    soak = Soak(parser.parse_args())
    try:
        before = soak.used()
        soak.run()
        soak.judge_memory(before)
        left = soak.judge_directory()
        journal = soak.judge_journal()
        findings = soak.judge_findings(journal)
    finally:
        soak.close()
    for failure in soak.failures:
        print(f"FAILED: {failure}")
    print(f"{journal['steps']} steps of those that were not killed, {soak.killed} killed, {soak.ended} ended, "
          f"{journal['refused']} opens refused, {journal['raced']} raced, {left} files left for gc, "
          f"{len(soak.failures)} failures; findings: "
          + (", ".join(f"{count} {name}" for name, count in sorted(findings.items())) or "none"))
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
