"""What the programs that try the library by chance or by force have in common: their options, a place with an environment
of its own, the programs there, and what is looked at in the end."""
import argparse
import contextlib
import os
import pathlib
import select
import subprocess
import tempfile
import time

from patience import patient


def options(text, seconds=None):
    """A parser; the seed is also SEED=n."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda path: pathlib.Path(path).resolve())
    if seconds:
        parser.add_argument("--seconds", type=float, default=seconds)
        parser.add_argument("--seed", type=int, default=int(os.environ.get("SEED", "1")))
    return parser


def make_place(name):
    return pathlib.Path(tempfile.mkdtemp(prefix=f"gpushare-{name}-", dir="/dev/shm"))


def clean_environment():
    return {name: text for name, text in os.environ.items() if not name.startswith("GPUSHARE_")}


def on_card(build, place):
    """On a simulated card of the place's own."""
    return clean_environment() | {"LD_LIBRARY_PATH": f"{build}/sim", "GPUSHARE_SIM_ROOT": f"@{place}",
                                  "GPUSHARE_ASSERTIONS": f"{place}/assertions"}


def lines_of(path):
    """Each once; none where there is no such file."""
    return sorted(set(path.read_text(errors="replace").splitlines())) if path.exists() else []


def eventually(holds, seconds, pause=0.01):
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(pause)
    return True


# --- a small disk ---

def mount(folder, options):
    """Whether it could be."""
    return os.geteuid() == 0 and subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", folder],
                                                stderr=subprocess.DEVNULL, check=False).returncode == 0


def unmount(folder):
    subprocess.run(["umount", "-l", folder], check=False)


# --- programs ---

def answer(process, seconds):
    """The next line that it prints; "" if it has ended, None if it prints none in time."""
    line, until = b"", time.monotonic() + seconds
    while not line.endswith(b"\n"):
        if not select.select([process.stdout], [], [], max(0, until - time.monotonic()))[0]:
            return None
        part = os.read(process.stdout.fileno(), 65536)
        if not part:
            return ""
        line += part
    return line.decode().strip()


class Meter:
    """A puppet without the library, that says how much of the card is in use, or takes it."""

    def __init__(self, puppet, environment):
        self.process = subprocess.Popen([puppet], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)

    def ask(self, command):
        self.process.stdin.write(command.encode() + b"\n")
        return self.process.stdout.readline().decode().split()

    def used(self):
        code, left, total = map(int, self.ask("info"))
        if code:
            raise SystemExit(f"no device: {code}")
        return total - left

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def send(pids, number):
    """To those that are still there."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def processes(directory, word=b""):
    """Those of a published directory whose command has that word: their pids."""
    found, mark = [], f"GPUSHARE_DIR={directory}\0".encode()
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if word in (process / "cmdline").read_bytes() and mark in (process / "environ").read_bytes():
                found.append(int(process.name))
    return found


def keepers(directory):
    """The keeper and its stand-by."""
    return processes(directory, b"\0keeper")


# --- the end ---

def files_after_gc(build, directory, environment, check=False):
    """What `gpushare gc`, which must succeed if checked, leaves of a published directory."""
    subprocess.run([build / "gpushare", "gc"], env=environment | {"GPUSHARE_DIR": str(directory)}, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=patient(60), check=check)
    return files(directory)


def files(directory):
    """But for those that are always there."""
    return [path.name for path in directory.rglob("*")
            if not path.is_dir() and path.name not in ("lock", "secret", "promises")]
