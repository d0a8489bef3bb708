#!/usr/bin/env python3
"""Sharing between two containers: pid namespaces of their own, in which both programs are process 1, or in which
their pids differ; bare, with the library preloaded, and by `gpushare run`. Prints a table; the exit status is 1 when
something with gpushare fails.

usage: containers.py BUILD [--driver gpu|sim] [--image ROOT]    (gpu)

--image ROOT: each program in a podman container over this root file system, instead of by unshare; gpushare comes into
it by the device of `gpushare cdi`, which tests/systems/containers has made.
A cell is "ok", or the code that the importer's call gave, for PyTorch its text ("invalid device context" is 201). A row
of KINDS is a function (exporter, importer) -> None that raises Wrong; another kind needs no more than a row.
"""
import argparse
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SIZE = 4 << 20
CONFIG = f"""
[region frames]
program = *puppet_frames
size = {SIZE}
role = auto
[region token]
program = *puppet_token
size = {SIZE}
role = export
backing = vmm
[region result]
program = *puppet_result
size = {SIZE}
role = auto
ready = free
handover = 30s
[region weights]
program = *puppet_weights
role = merge
quiet = 0
"""


class Wrong(Exception):
    """What the importer got instead."""


def complaint(lines):
    """What a program of PyTorch's that failed says of CUDA: its last lines are advice."""
    errors = [line.partition("CUDA error: ")[2] for line in lines if "CUDA error: " in line]
    return (errors or lines or ["?"])[-1]


def show(row, cells):
    print(f"{row:16}" + "".join(f"{cell[:22]:>23}" for cell in cells), flush=True)


class Puppet:
    """tests/apps/puppet/, in a container."""

    def __init__(self, words, environment, name):
        self.container, self.environment = name, environment
        self.process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def code(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        return (int(words[0]), words[1:]) if words else (-1, [])

    def must(self, line):
        code, words = self.code(line)
        if code != 0:
            raise Wrong(str(code))
        return words[0] if words else ""

    def kill(self):
        if self.container:
            subprocess.run(["podman", "kill", self.container], stdout=subprocess.DEVNULL, check=True)
        else:
            self.process.kill()
        self.process.wait()

    def end(self):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def expect(got, wanted):
    if got != wanted:
        raise Wrong(f"{got}, not {wanted}")


def memory(exporter, importer):
    exporter.must(f"malloc p {SIZE}")
    exporter.must("fill p 0x5c 4096")
    exporter.must("sync")
    importer.must("open q " + exporter.must("get p"))
    expect(importer.must("read q 0 1"), "5c")
    importer.must("close q")
    exporter.must("free p")


def event(exporter, importer):
    exporter.must("evcreate e 6")
    importer.must("malloc own 4096")
    importer.must("evopen f " + exporter.must("evget e"))
    importer.must("evdestroy f")
    exporter.must("evdestroy e")


def rule(exporter, importer):
    exporter.must(f"malloc p {SIZE}")
    exporter.must("fill p 0x33 4096")
    exporter.must("sync")
    importer.must(f"malloc q {SIZE}")
    expect(importer.must("read q 0 1"), "33")
    importer.must("free q")
    exporter.must("free p")


def hand_over(exporter, importer):
    """The exporter is through before the importer begins."""
    exporter.must(f"malloc p {SIZE}")
    exporter.must("fill p 0x44 4096")
    exporter.must("free p")
    exporter.process.stdin.write("exit 0\n")
    exporter.process.stdin.flush()
    importer.must(f"malloc q {SIZE}")
    expect(importer.must("read q 0 1"), "44")
    importer.must("free q")
    expect(exporter.process.wait(20), 0)


def killed(exporter, importer):
    """What an importer holds stays when the exporter is killed."""
    exporter.must(f"malloc p {SIZE}")
    exporter.must("fill p 0x66 4096")
    exporter.must("sync")
    importer.must("open q " + exporter.must("get p"))
    exporter.kill()
    expect(importer.must("read q 0 1"), "66")
    importer.must("close q")


def merged(exporter, importer):
    """Both upload the same, and hold it once; the one that writes has its own again."""
    for puppet in (exporter, importer):
        puppet.must(f"malloc p {SIZE}")
        puppet.must(f"upload p 0 {SIZE} 1 sync")
    saved, until = 0, time.monotonic() + 20
    while saved != SIZE and time.monotonic() < until:
        time.sleep(0.1)
        said = subprocess.run([exporter.environment["TOOL"], "ls", "--json"], env=exporter.environment,
                              stdout=subprocess.PIPE, check=True).stdout
        saved = sum(row.get("saved", 0) for row in json.loads(said))
    expect(saved, SIZE)
    importer.must("fill p 0x77 4096")
    expect(exporter.must(f"expect p 0 {SIZE} 1"), "same")
    for puppet in (exporter, importer):
        puppet.must("free p")


# Kind: function, the puppet's file name, whether it is anything without gpushare.
KINDS = {
    "legacy memory": (memory, "puppet_memory", True),
    "event": (event, "puppet_event", True),
    "rule region": (rule, "puppet_frames", False),
    "token": (memory, "puppet_token", False),
    "merged blocks": (merged, "puppet_weights", False),
    "hand-over": (hand_over, "puppet_result", False),
    "killed exporter": (killed, "puppet_memory", True),
}
# Way: preloaded, by `gpushare run`, whether gpushare promises it: events of equal pids need `run`.
WAYS = {
    "bare": (False, False, set()),
    "preloaded": (True, False, set(KINDS) - {"event"}),
    "gpushare run": (False, True, set(KINDS)),
}


class Lane:
    def __init__(self, options):
        self.build = options.build.resolve()
        self.image = options.image
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="gpushare-containers-", dir="/dev/shm"))
        (self.work / "conf").write_text(CONFIG)
        self.environment = {**os.environ, "GPUSHARE_DIR": f"{self.work}/dir", "GPUSHARE_CONFIG": f"{self.work}/conf",
                            "GPUSHARE_LIBRARY": f"{self.build}/libgpushare.so",
                            "TOOL": f"{self.build}/gpushare", "GPUSHARE_LOG": f"{self.work}/log"}
        if self.image:
            subprocess.run([f"{self.build}/gpushare", "cdi", "--output", "/etc/cdi/gpushare.json"],
                           env=self.environment, check=True)
        self.daemon = None
        self.numbers = itertools.count()
        if options.driver == "sim":
            self.environment |= {"LD_LIBRARY_PATH": f"{self.build}/sim", "GPUSHARE_SIM_ROOT": f"{self.work}/sim",
                                 "GPUSHARE_SIM_LINGER_MS": "60000"}
            self.daemon = subprocess.Popen([f"{self.build}/sim/gpusimd", "--foreground"], env=self.environment)
        for _, name, _ in KINDS.values():
            shutil.copy(self.build / "tests/apps/puppet", self.work / name)

    def words(self, way, differs, command, name=None):
        """The command line of a container whose process 1 the program is, or a shell before it."""
        preloaded, by_run, _ = way
        tool = "/usr/local/bin/gpushare" if self.image else f"{self.build}/gpushare"
        inside = [tool, "run", "--"] if by_run else []
        if preloaded and not self.image:
            inside = ["env", f"LD_PRELOAD={self.build}/libgpushare.so"]
        inside += command
        if differs:
            inside = ["sh", "-c", '"$0" "$@"; exit $?', *inside]
        if not self.image:
            return ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *inside]
        passed = [f"--env={variable}={value}" for variable, value in self.environment.items()
                  if variable.startswith(("GPUSHARE_SIM", "GPUSHARE_LOG", "LD_LIBRARY"))]
        device = ["--device=gpushare.io/namespace=default"] if preloaded or by_run else []
        return ["podman", "run", "--rm", "-i", f"--name={name}", "--net=host", "--cgroups=disabled", "--ipc=host",
                "--cap-add=CHECKPOINT_RESTORE", "--ulimit=nofile=1024:1024", "--ulimit=nproc=4096:4096", *device, *passed,
                f"--volume={self.work}:{self.work}", f"--volume={self.build}:{self.build}:ro",
                "--rootfs", self.image, *inside]

    def cell(self, kind, way, equal):
        share, name, _ = KINDS[kind]
        puppets = []
        try:
            for differs in (False, not equal):
                container = f"gpushare-{os.getpid()}-{next(self.numbers)}" if self.image else None
                words = self.words(WAYS[way], differs, [f"{self.work}/{name}"], container)
                puppets.append(Puppet(words, self.environment, container))
            share(*puppets)
            return "ok"
        except Wrong as wrong:
            return str(wrong)
        finally:
            for puppet in puppets:
                puppet.end()

    def torch(self, way, equal):
        """A CUDA tensor through a queue between two programs of PyTorch's."""
        place = f"{self.work}/queue-{way.replace(' ', '-')}-{equal}"
        ends = [subprocess.Popen(self.words(WAYS[way], differs, [sys.executable, f"{HERE}/programs/torch_queue.py", role, place]),
                                 env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                for role, differs in (("give", False), ("take", not equal))]
        try:
            said = [end.communicate(timeout=120)[0].strip().splitlines() for end in ends]
        except subprocess.TimeoutExpired:
            for end in ends:
                end.kill()
            return "time"
        return "ok" if all(end.returncode == 0 for end in ends) else complaint(said[1])

    def close(self):
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait()
        shutil.rmtree(self.work)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--driver", choices=("gpu", "sim"), default="gpu")
    parser.add_argument("--image")
    options = parser.parse_args()
    lane = Lane(options)
    columns = [(way, equal) for way in WAYS for equal in (True, False)]
    show("", [way + (", equal" if equal else ", differ") for way, equal in columns])
    bad = 0
    try:
        for kind, (_, _, alone) in KINDS.items():
            cells = [lane.cell(kind, way, equal) if alone or way != "bare" else "-" for way, equal in columns]
            bad += sum(cell not in ("ok", "-") and (not equal or kind in WAYS[way][2])
                       for cell, (way, equal) in zip(cells, columns))
            show(kind, cells)
        if options.driver == "gpu" and not options.image:
            if subprocess.run([sys.executable, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode:
                print("PyTorch queue: torch is not installed")
            else:
                cells = [lane.torch(way, equal) for way, equal in columns]
                bad += cells[4] != "ok" or cells[5] != "ok"
                show("PyTorch queue", cells)
    finally:
        lane.close()
    print(f"{bad} wrong")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
