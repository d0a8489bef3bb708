#!/usr/bin/env python3
"""Many blocks, four replicas, few descriptors: as a normal user, on the simulated driver.

usage: blocks.py BUILD_DIR [--blocks N] [--seconds N]    (4096 blocks of 2 MiB, for which it takes 9 GiB of memory)

Two runs, both with a soft limit of 256 descriptors. With a hard limit of 16,384 four replicas (busy.c) load one after
the other. Meanwhile another program of that user has 200 descriptors on their way all the while, keeper and stand-by
are killed in turns, and the stand-by is stopped for --seconds (60). All blocks must be held once. With a hard limit
of 256 two replicas load: what the keeper has no room for stays private, and each of them says so once. As root it
becomes the user with the number 61234.
"""
import argparse
import array
import json
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

NOBODY, SOFT, HARD, CROWD = 61234, 256, 16384, 200
RULE = "[region weights]\nprogram = busy\nrole = merge\nquiet = 0\n"


def few(hard):
    """Before a program starts: it is a normal user's, with these limits."""
    def become():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, hard))
    return become


def crowd():
    """Passes descriptors on and on, 200 at a time; ends with their number, or the error, when its input ends."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one, rounds = os.open("/dev/null", os.O_RDONLY), 0
    threading.Thread(target=lambda: (sys.stdin.read(), ended.append(True)), daemon=True).start()
    ended = []
    print("ready", flush=True)
    while not ended:
        for _ in range(CROWD // 50):
            here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [one] * 50))])
        time.sleep(0.01)
        for _ in range(CROWD // 50):
            words = there.recvmsg(1, 4096)[1]
            for number in array.array("i", words[0][2]):
                os.close(number)
        rounds += 1
    print(rounds * CROWD)


class Run:
    def __init__(self, options, folder, hard):
        self.build, self.blocks, self.hard = pathlib.Path(options.build).resolve(), options.blocks, hard
        self.folder = pathlib.Path(folder, str(hard))
        self.folder.mkdir()
        os.chmod(folder, 0o755)
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        (self.folder / "merge.conf").write_text(RULE, encoding="utf-8")
        self.environment = os.environ | {
            "GPUSHARE_DIR": f"{self.folder}/d", "GPUSHARE_CONFIG": f"{self.folder}/merge.conf", "GPUSHARE_SIM_MEMORY": "64GiB",
            "GPUSHARE_SIM_ROOT": f"@{self.folder}", "LD_LIBRARY_PATH": f"{self.build}/sim"}
        self.replicas, self.kills, self.over, self.stopped = [], 0, False, 0

    def spawn(self, words, **more):
        return subprocess.Popen([str(word) for word in words], preexec_fn=few(self.hard), text=True, **more)

    def start(self):
        log = open(self.folder / f"log-{len(self.replicas)}", "w+", encoding="utf-8")
        words = [self.build / "bench/busy", self.build / "tests/apps/kernels.ptx", self.blocks, 3600000, 10000000]
        one = self.spawn(words, stdout=subprocess.PIPE, stderr=log,
                         env=self.environment | {"LD_PRELOAD": f"{self.build}/libgpushare.so", "GPUSHARE_LOG_LEVEL": "info"})
        one.log = log
        if one.stdout.readline() != "ready\n":
            sys.exit(f"blocks.py: a replica did not load; {pathlib.Path(log.name).read_text(encoding='utf-8')}")
        self.replicas.append(one)
        return one

    def tool(self, *words):
        return subprocess.run([str(self.build / "gpushare"), *words], preexec_fn=few(HARD), env=self.environment,
                              capture_output=True, text=True, check=False).stdout

    def shown(self, one):
        said = self.tool("show", "--json", str(one.pid))
        return json.loads(said)[0] if said.strip() else {}

    def settle(self, one, seconds):
        """What is merged of it when that changes no more, or all is."""
        until, last = time.monotonic() + seconds, None
        while time.monotonic() < until:
            last = self.shown(one)
            merged = last.get("merged", {})
            if merged.get("blocks") == self.blocks and merged["own"] == 0: # the second is at most a second old
                break
            time.sleep(0.5)
        return last

    def keeper(self, stands_by):
        mine = f"GPUSHARE_DIR={self.folder}/d\0".encode()
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (b"\0keeper" in (process / "cmdline").read_bytes() and mine in (process / "environ").read_bytes()
                        and ((process / "comm").read_text() == "keeper-stand-by\n") == stands_by):
                    return int(process.name)
            except OSError:
                continue
        return None

    def signal(self, stands_by, number):
        pid = self.keeper(stands_by)
        if pid:
            os.kill(pid, number)
        return pid

    def trouble(self, seconds):
        """Stops the stand-by for a while, once; else kills one of the two every second."""
        while not self.over and not self.keeper(True):
            time.sleep(0.1)
        stopped = self.signal(True, signal.SIGSTOP)
        begun = time.monotonic()
        while not self.over and time.monotonic() - begun < seconds:
            time.sleep(0.1)
        self.stopped = time.monotonic() - begun
        os.kill(stopped, signal.SIGCONT)
        while not self.over:
            time.sleep(1)
            both = self.keeper(True), self.keeper(False)
            if all(both):
                os.kill(both[self.kills % 2], signal.SIGKILL)
                self.kills += 1

    def end(self):
        for one in self.replicas:
            one.kill()
            one.wait()


def many(options, folder):
    run = Run(options, folder, HARD)
    passer = run.spawn(["/usr/bin/python3", __file__, "crowd"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    passer.stdout.readline()
    trouble = threading.Thread(target=run.trouble, args=(options.seconds,))
    trouble.start()
    shown = []
    for number in range(4):
        begun = time.monotonic()
        one = run.start()
        loaded = time.monotonic() - begun
        run.settle(one, 120)
        print(f"replica {number}: loaded in {loaded:.1f} s; {time.monotonic() - begun:.1f} s until it is merged", flush=True)
    while run.stopped == 0 or run.kills < 6:
        time.sleep(0.5)
    run.over = True
    trouble.join()
    shown = [run.settle(one, 60) for one in run.replicas]
    held = run.tool("ls").split("Merged blocks:")[-1].strip()
    passer.stdin.close()
    passed = passer.stdout.read().strip()
    print(f"stand-by stopped for {run.stopped:.0f} s, {run.kills} killed; passed by the other program: {passed}")
    print("merged: ", [one.get("merged") for one in shown], [one.get("unmerged") for one in shown])
    print(held)
    said = [pathlib.Path(one.log.name).read_text(encoding="utf-8") for one in run.replicas]
    run.end()
    print("said:   ", said)
    return (all(one.get("merged", {}).get("blocks") == run.blocks and one["merged"]["own"] == 0 for one in shown)
            and passed.isdigit())


def one_limit(options, folder):
    run = Run(options, folder, SOFT)
    run.blocks = min(run.blocks, 2 * SOFT)
    shown = [run.settle(run.start(), 20) for _ in range(2)]
    said = [pathlib.Path(one.log.name).read_text(encoding="utf-8") for one in run.replicas]
    run.end()
    print(f"hard limit {SOFT}: merged", [one.get("merged") for one in shown], [one.get("unmerged") for one in shown])
    print("said:   ", said)
    return all(one.get("merged", {}).get("blocks", 0) > 0 and one["merged"]["own"] > 0 and one.get("unmerged") for one in shown) and \
        all(text.count("nothing is merged") <= 1 for text in said) and any("nothing is merged" in text for text in said)


def main():
    if sys.argv[1:] == ["crowd"]:
        return crowd()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--blocks", type=int, default=4096)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="gpushare-blocks-") as folder:
        for part in (many, one_limit):
            good &= part(options, folder)
    print("ok" if good else "FAIL")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
