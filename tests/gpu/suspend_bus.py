#!/usr/bin/env python3
"""tests/gpu/suspend_bus.py [--gib N ...] [--driver-gib N] [--merged-gib N] BUILD: how long a PyTorch program of N GiB takes off the
card and back, by gpushare's copies and by the driver's (blocks = off); how long merged weights take that only sleepers have; and what
cudaMalloc costs then. Tables; the status is 1 if bytes differ."""
import argparse
import os
import pathlib
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "soak"))
from suspend import timed
from suspend_kills import World

PROGRAM = r"""
import ctypes, itertools, statistics, sys, time, torch
gib, merged = int(sys.argv[1]), len(sys.argv) > 2
def make(number):
    random = torch.Generator(device="cpu" if merged else "cuda").manual_seed(number)
    return torch.randint(-2**62, 2**62, (1 << 27,), dtype=torch.int64, device=random.device, generator=random).to("cuda")
parts = [make(number) for number in range(gib)]
static = torch.zeros(1 << 10, device="cuda")
graph = torch.cuda.CUDAGraph()
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    static += 1
    probe = parts[0][:1024].sum()
def allocate():
    runtime = ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "libcudart.so" in line))
    out = []
    for size in 2 << 20, 64 << 20, 1 << 30, 8 << 30:
        times = []
        for _ in range(15):
            pointer, began = ctypes.c_void_p(), time.perf_counter()
            assert runtime.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
            middle = time.perf_counter()
            assert runtime.cudaFree(pointer) == 0
            times.append((middle - began, time.perf_counter() - middle))
        out += [f"{statistics.median(t[which] for t in times) * 1e6:.0f}" for which in (0, 1)]
    return "  ".join(f"{out[i]:>6} {out[i + 1]:>6}" for i in range(0, len(out), 2))
for line in itertools.chain(["ready"], iter(sys.stdin.readline, "")):
    line = line.strip()
    if line == "sum":
        print(sum(int(part.sum()) for part in parts), flush=True)
    elif line == "change":
        for part in parts:
            part += 1
        torch.cuda.synchronize()
        print("changed", flush=True)
    elif line == "graph":
        graph.replay()
        torch.cuda.synchronize()
        matrix = torch.ones(256, 256, device="cuda")
        print(int(static[0]), int((matrix @ matrix)[0, 0]), flush=True)
    elif line == "allocate":
        print(allocate(), flush=True)
    else:
        print("ready", flush=True)
"""


class Program:
    def __init__(self, world, gib, bare=False, merged=False):
        environment = world.environment | ({} if bare else {"LD_PRELOAD": str(world.build / "libgpushare.so")})
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(gib)] + ["merged"] * merged, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment, text=True)
        self.process.stdout.readline()

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def turn(world, program, name, rows):
    before = program.ask("sum")
    out, out_s = timed(world, "suspend", str(program.process.pid))
    back, back_s = timed(world, "resume", "--wait", str(program.process.pid))
    after, graph = program.ask("sum"), program.ask("graph")
    good = out.returncode == 0 and back.returncode == 0 and before == after and graph.endswith(" 256")
    rows.append((name, out_s, back_s, good))
    print(f"{name:34} {out_s:6.2f} {back_s:6.2f}  {'equal' if good else 'WRONG'}  {out.stdout.strip()} {out.stderr}{back.stderr}", flush=True)


def measure(build, gib, blocks, rows):
    world = World(build, "gpu")
    (world.folder / "conf").write_text(f"[gpushare]\nlog = {world.folder}/log-%p\nsuspend = on\nblocks = {blocks}\n")
    program = Program(world, gib)
    who = f"{gib} GiB, {'our copies' if blocks == 'on' else 'the driver'}"
    turn(world, program, f"{who}, first", rows)
    if blocks == "on":
        program.ask("change")
        turn(world, program, f"{who}, again, changed", rows)
        turn(world, program, f"{who}, unchanged", rows)
    program.end()
    for log in world.folder.glob("log-*"):
        print(log.read_text(), file=sys.stderr)


def in_use():
    query = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True, check=True)
    return int(query.stdout)


def sleepers(build, gib, rows):
    """Two replicas of merged weights: the second takes them off the card, and the first that comes back brings them."""
    world, empty = World(build, "gpu"), in_use()
    (world.folder / "conf").write_text(f"[gpushare]\nlog = {world.folder}/log-%p\nsuspend = on\nsuspend_memory = {2 * gib}GiB\n"
                                       "[region weights]\nsize = >=2MiB\nindex = *\nrole = merge\nquiet = 0\n")
    two = [Program(world, gib, merged=True) for _ in range(2)]
    sums = [program.ask("sum") for program in two]
    print(f"two of {gib} GiB, merged: {in_use() - empty} MiB in use", flush=True)
    for name in "first", "again", "again":
        times = []
        for verb in "suspend", "resume":
            for program in two:
                done, seconds = timed(world, verb, *["--wait"] * (verb == "resume"), str(program.process.pid))
                times.append(f"{seconds:.2f}")
                print(f"    {done.stdout.strip()} {done.stderr}", flush=True)
            left = in_use() - empty if verb == "suspend" else left
        good = sums == [program.ask("sum") for program in two] and all(program.ask("graph").endswith(" 256") for program in two)
        rows.append((name, 0, 0, good))
        print(f"{gib} GiB merged, {name:6} out {times[0]}, {times[1]} s; {left} MiB in use; back {times[2]}, {times[3]} s  "
              f"{'equal' if good else 'WRONG'}", flush=True)
    for program in two:
        program.end()
    for log in world.folder.glob("log-*"):
        print(log.read_text(), file=sys.stderr)


def allocations(build):
    """What cudaMalloc and cudaFree cost."""
    print(f"cudaMalloc, cudaFree in us of {'2 MiB':>8} {'64 MiB':>14} {'1 GiB':>14} {'8 GiB':>14}", flush=True)
    for name, blocks in ("without gpushare", None), ("suspend = on", "on"), ("blocks = off", "off"):
        world = World(build, "gpu")
        (world.folder / "conf").write_text(f"[gpushare]\nlog = {world.folder}/log-%p\nsuspend = on\nblocks = {blocks or 'on'}\n")
        program = Program(world, 1, bare=not blocks)
        print(f"{name:24} {program.ask('allocate')}", flush=True)
        program.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--gib", type=int, nargs="*", default=[24])
    parser.add_argument("--driver-gib", type=int, default=24)
    parser.add_argument("--merged-gib", type=int, default=0)
    parser.add_argument("--no-allocations", action="store_true")
    options = parser.parse_args()
    if not options.no_allocations:
        allocations(options.build.resolve())
    print(f"{'':34} {'out s':>6} {'back s':>6}   ({os.cpu_count()} processors)", flush=True)
    rows = []
    for gib in options.gib:
        measure(options.build.resolve(), gib, "on", rows)
    if options.driver_gib:
        measure(options.build.resolve(), options.driver_gib, "off", rows)
    if options.merged_gib:
        sleepers(options.build.resolve(), options.merged_gib, rows)
    return 0 if all(row[3] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
