#!/usr/bin/env python3
"""tests/gpu/suspend_programs.py [--few-threads] BUILD: programs that leave the card and come back twice, each a row: CuPy, JAX, PyTorch
with convolutions and pinned memory, textures; and PyTorch without huge pages, and where main memory is bounded 1 GiB below what it has
on the card: refused there, and it runs on. With --few-threads, not as root: PyTorch that gets no thread more. The status is 1 if an
answer differs."""
import argparse
import contextlib
import ctypes
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "soak"))
from suspend import timed
from suspend_kills import World

PR_SET_THP_DISABLE = 41
CGROUPS = pathlib.Path("/sys/fs/cgroup")
PYTHON = {
    "CuPy, 2 GiB": r"""
import sys, cupy
parts = [cupy.random.random((64 << 20,), dtype=cupy.float32) for _ in range(8)]
print("ready", flush=True)
for line in sys.stdin:
    ones = cupy.ones((512, 512), dtype=cupy.float32)
    print(sum(float(part.sum()) for part in parts), float((ones @ ones)[0, 0]), flush=True)
""",
    "JAX": r"""
import os
os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = "0.05"
import sys, jax
run = jax.jit(lambda x: (x @ x).sum())
x = jax.random.uniform(jax.random.PRNGKey(0), (4096, 4096))
run(x).block_until_ready()
print("ready", flush=True)
for line in sys.stdin:
    print(float(run(x)), flush=True)
""",
    "PyTorch, convolutions": r"""
import sys, torch
model = torch.nn.Sequential(*[torch.nn.Conv2d(64, 64, 3, padding=1) for _ in range(8)]).cuda().eval()
x, pinned = torch.randn(8, 64, 128, 128, device="cuda"), torch.randn(1 << 20).pin_memory()
torch.backends.cudnn.deterministic = True
with torch.no_grad():
    model(x)
torch.cuda.synchronize()
print("ready", flush=True)
for line in sys.stdin:
    with torch.no_grad():
        print(float((model(x) + pinned.cuda(non_blocking=True)[0]).double().sum()), flush=True)
""",
    "PyTorch": r"""
import sys, torch
parts = [torch.randint(-2**62, 2**62, (1 << 27,), dtype=torch.int64, device="cuda") for _ in range(4)]
torch.cuda.synchronize()
print("ready", flush=True)
for line in sys.stdin:
    print(sum(int(part.sum()) for part in parts), flush=True)
""",
}


def no_huge_pages():
    if ctypes.CDLL(None).prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0):
        os._exit(70)


class Program:
    def __init__(self, world, words, prepare=None):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=prepare,
                                        env=world.environment | {"LD_PRELOAD": str(world.build / "libgpushare.so")})
        self.ready = self.process.stdout.readline().strip() == "ready"

    def ask(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(120)


def new_world(build):
    world = World(build, "gpu")
    (world.folder / "conf").write_text(f"[gpushare]\nlog = {world.folder}/log-%p\nsuspend = on\n")
    return world


def turns(build, name, words, prepare=None, limit=None):
    """Whether it goes on with the same answers. `limit` is set when it runs."""
    world = new_world(build)
    program = Program(world, words, prepare)
    if not program.ready:
        print(f"{name:30} did not start", flush=True)
        return False
    if limit:
        resource.prlimit(program.process.pid, *limit)
    before, good, times = program.ask(), True, []
    for _ in range(2):
        for verb in "suspend", "resume":
            done, seconds = timed(world, verb, *["--wait"] * (verb == "resume"), str(program.process.pid))
            good &= done.returncode == 0
            times.append(f"{seconds:.2f}")
            if done.returncode:
                print(done.stdout, done.stderr, flush=True)
        good &= program.ask() == before
    good &= program.end() == 0
    print(f"{name:30} out {times[0]}, {times[2]}  back {times[1]}, {times[3]} s  {'equal' if good else 'WRONG'}", flush=True)
    return good


def textures(build):
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/textures"
        source = pathlib.Path(__file__).resolve().with_name("textures.cu")
        subprocess.run(["nvcc", "-arch=native", "-cudart", "shared", "-o", program, source], check=True)
        return turns(build, "textures, pinned memory", [program])


@contextlib.contextmanager
def group(name):
    """A control group that may be bounded; None: there is none to be had."""
    path = CGROUPS / name
    try:
        (CGROUPS / "cgroup.subtree_control").write_text("+memory")
        path.mkdir()
    except OSError:
        yield None
        return
    yield path
    path.rmdir()


def bounded(build):
    with group(f"suspend-{os.getpid()}") as path:
        if not path or not (path / "memory.max").exists():
            print("memory.max                     skipped: no control group can be made here", flush=True)
            return True
        world = new_world(build)
        program = Program(world, [sys.executable, "-c", PYTHON["PyTorch"]], lambda: (path / "cgroup.procs").write_text(str(os.getpid())))
        before = program.ask()
        used = int((path / "memory.current").read_text())
        (path / "memory.max").write_text(str(used + (3 << 30)))
        refused = world.tool("suspend", str(program.process.pid))
        good = refused.returncode == 1 and program.ask() == before
        (path / "memory.max").write_text("max")
        out, back = (world.tool(*words, str(program.process.pid)) for words in (["suspend"], ["resume", "--wait"]))
        good &= out.returncode == back.returncode == 0 and program.ask() == before
        good &= program.end() == 0
        print(f"memory.max 1 GiB too small     {refused.stderr.strip()}  {'equal' if good else 'WRONG'}", flush=True)
        return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--few-threads", action="store_true")
    options = parser.parse_args()
    build = options.build.resolve()
    if options.few_threads:
        words = [sys.executable, "-c", PYTHON["PyTorch"]]
        return 0 if turns(build, "PyTorch, no thread more", words, limit=(resource.RLIMIT_NPROC, (1, 1))) else 1
    good = all([turns(build, name, [sys.executable, "-c", text]) for name, text in PYTHON.items()])
    good &= turns(build, "PyTorch, no huge pages", [sys.executable, "-c", PYTHON["PyTorch"]], no_huge_pages)
    good &= textures(build)
    good &= bounded(build)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
