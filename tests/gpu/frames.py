#!/usr/bin/env python3
"""tests/gpu/frames.py [--driver sim|gpu] [--frames N] BUILD: whole frames, by the ways to draw and to look of tests/apps/film.c, and by
PyTorch. Rows for check.sh: ok or FAIL, a tab, name, a tab, remark. A row fails by a frame that is torn, or older than one before, and
with `each` by one that is left out."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MIB = 1 << 20
WAYS = "one stream four poll called event never upload whole kernel graph node threads".split()

TORCH_DRAWS = """
import sys, time, torch
frames, size = int(sys.argv[1]), int(sys.argv[2])
p = torch.empty(size // 4, dtype=torch.int32, device="cuda")
began = time.monotonic()
for i in range(1, frames + 1):
    p.fill_(i)
    p[: size // 8].fill_(i)
    torch.cuda.synchronize()
    time.sleep(0.0005)
print(f"drew {frames}, {frames / (time.monotonic() - began):.0f} a second", flush=True)
del p
torch.cuda.empty_cache()
"""
TORCH_LOOKS = """
import sys, time, torch
frames, size = int(sys.argv[1]), int(sys.argv[2])
torch.zeros(1, device="cuda")
print("ready", flush=True)
p = torch.empty(size // 4, dtype=torch.int32, device="cuda")
looks = torn = new = gaps = back = last = first = 0
began = time.monotonic()
while last < frames and time.monotonic() - began < 60:
    low, high = torch.stack([p.min(), p.max()]).tolist()
    looks += 1
    torn += low != high
    first = first or high
    new += high != last
    gaps += last and high > last + 1
    back += high < last
    last = high
rate = new / (time.monotonic() - began)
print(f"frames {looks} torn {torn} new {new} gaps {gaps} back {back} first {first} last {last}, {rate:.0f} a second", flush=True)
"""


class Film:
    def __init__(self, build, driver, mode, size, keys=""):
        self.place = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.place.name)
        for name in "camera", "viewer":
            shutil.copy(build / "tests/apps/film", self.path / name)
        rules = [("camera", f"export\nframes = {mode}\n{keys}"), ("viewer", "import")]
        (self.path / "conf").write_text("".join(f"[region film]\nprogram = {name}\nsize = {size}\nrole = {role}\n" for name, role in rules))
        (self.path / "draws.py").write_text(TORCH_DRAWS)
        (self.path / "looks.py").write_text(TORCH_LOOKS)
        self.size = size
        self.environment = {**os.environ, "GPUSHARE_CONFIG": f"{self.path}/conf", "GPUSHARE_DIR": f"{self.path}/dir",
                            "GPUSHARE_LOG": f"{self.path}/log.%p", "FILM_KERNELS": str(build / "tests/apps/kernels.ptx"),
                            "LD_PRELOAD": str(build / "libgpushare.so")}
        if driver == "sim":
            self.environment.update(LD_LIBRARY_PATH=str(build / "sim"), GPUSHARE_SIM_ROOT=f"@film-{os.getpid()}")

    def start(self, name, *words, python=None):
        line = [sys.executable, str(self.path / python), *words] if python else [str(self.path / name), *words]
        return subprocess.Popen(line, env={**self.environment, "GPUSHARE_PROGRAM": name}, stdout=subprocess.PIPE, text=True)


def end(process):
    try:
        return process.communicate(timeout=70)[0].strip()
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0].strip() + " (hangs)"


def play(film, way, look, frames, pause, readers=1):
    """What the readers and the writer print. The readers wait for the region. PyTorch takes seconds to start, in which a writer
    may draw all of its frames and end, so the writer starts after it."""
    words = [str(frames), str(film.size)]
    viewers = [film.start("viewer", *words, python="looks.py") if look == "torch" else film.start("viewer", "look", look, *words)
               for _ in range(readers)]
    if look == "torch" and {viewer.stdout.readline() for viewer in viewers} != {"ready\n"}:
        print("a viewer ends before it is ready", file=sys.stderr)
    camera = film.start("camera", *words, python="draws.py") if way == "torch" else film.start("camera", "draw", way, *words, str(pause))
    drew = end(camera)
    return [end(viewer) for viewer in viewers], drew


def is_good(said, mode, frames, alone):
    """Of `each`, who came beside others may have missed the first ones."""
    found = re.match(r"frames (\d+) torn 0 new (\d+) gaps (\d+) back 0 first (\d+) last (\d+)", said)
    if not found or int(found[5]) != frames:
        return False
    first = 1 if alone else int(found[4])
    return mode == "latest" or (int(found[2]), int(found[3]), int(found[4])) == (frames - first + 1, 0, first)


def row(build, driver, mode, way, look, frames, size, pause, keys="", readers=1):
    looks, drew = play(Film(build, driver, mode, size, keys), way, look, frames, pause, readers)
    good = all(is_good(said, mode, frames, readers == 1) for said in looks)
    beside = f", {readers} readers" if readers > 1 else ""
    key = f", {keys.strip()}" if keys.strip() else ""
    print(f"{'ok' if good else 'FAIL'}\t{mode}, {size / MIB:g} MiB: {way} -> {look}{beside}{key}\t{'; '.join(looks)} | {drew}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--driver", choices=["sim", "gpu"], default="gpu")
    parser.add_argument("--frames", type=int, default=2000)
    arguments = parser.parse_args()
    build, driver, frames = arguments.build.resolve(), arguments.driver, arguments.frames
    some = max(frames // 4, 40)
    for way in WAYS:
        row(build, driver, "latest", way, "one", frames, 8 * MIB, 300)
        row(build, driver, "each", way, "one", some, 8 * MIB, 0)
    for look in "parts", "stream", "kernel":
        row(build, driver, "latest", "four", look, frames, 8 * MIB, 300)
        row(build, driver, "each", "one", look, some, 8 * MIB, 0, "backing = vmm\n")
    for readers in 2, 8:
        row(build, driver, "latest", "one", "one", some, 8 * MIB, 1000, readers=readers)
        row(build, driver, "each", "one", "one", some, 8 * MIB, 1000, readers=readers)
    if driver == "gpu":
        row(build, driver, "latest", "one", "kernel", frames * 10, MIB, 0)
        row(build, driver, "latest", "one", "kernel", some, 256 * MIB, 0)
        row(build, driver, "each", "one", "kernel", some, 256 * MIB, 0)
        row(build, driver, "latest", "torch", "kernel", frames, 64 * MIB, 0)
        row(build, driver, "latest", "one", "torch", frames, 64 * MIB, 2000)
        row(build, driver, "each", "torch", "torch", some, 64 * MIB, 0)


if __name__ == "__main__":
    main()
