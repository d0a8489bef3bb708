"""Servers whose card is never idle: how soon all is merged, and what a request notices. A part of replicas.py."""
import statistics
import time

from fleet import GIB, MIB, gib, merge_rule
from replicas_torch import Models, missing

LENGTHS = (200_000, 2_000_000, 10_000_000) # ns, of kernels
SECONDS, QUIET = 20, 3


def merged_within(fleet, size, begun, seconds):
    """Seconds until so many bytes less are in use than at first, or None; and the bytes."""
    first = fleet.used()
    while time.monotonic() < begun + seconds:
        if first - fleet.used() >= size:
            return time.monotonic() - begun, size
        time.sleep(0.05)
    return None, first - fleet.used()


def told(when, size, gone):
    return f"{gib(size)} after {when:.1f} s" if when else f"{gib(max(0, gone))} of {gib(size)} after {SECONDS} s"


def say(members, words):
    for one in members:
        one.process.stdin.write(words + "\n")


def heard(members):
    return [one.line(SECONDS + 60)[1].split()[1:] for one in members]


def kernels(fleet, table, size):
    """One kernel after the other on each of three streams."""
    folder, tool, size = fleet.room_for(2 * GIB), fleet.programs / "weights_static", min(size, 2 * GIB)
    fleet.once(tool, "make", folder / "weights", size, 1)
    words, lengths = [tool, "serve", folder / "weights", "layers=64"], " ".join(map(str, LENGTHS))
    config = fleet.config("busy", merge_rule("weights_*", quiet=f"{QUIET}s"))
    bare = fleet.start("kernels-bare", words).ready()
    alone = list(map(float, bare.ask(f"busy 5000 {lengths}", 30).split()))
    bare.end()
    members = [fleet.start(f"kernels-{i}", words, config).ready() for i in range(2)]
    begun = time.monotonic()
    say(members, f"busy {SECONDS * 1000} {lengths}")
    when, gone = merged_within(fleet, int(0.97 * size), begun, SECONDS)
    seen = [list(map(float, words)) for words in heard(members)]
    good = when is not None and when <= QUIET + 10
    table.row(good or fleet.driver == "sim", "never idle, kernels of 0.2, 2 and 10 ms: all is merged within 10 s after quiet",
              told(when, size, gone) + f"; {[one.findings() for one in members]}")
    for i, length in enumerate(LENGTHS):
        worst, bare_worst = max(one[2 * i + 1] for one in seen), alone[2 * i + 1]
        table.row(fleet.driver == "sim" or worst <= bare_worst + 5000,
                  f"never idle, kernels of {length / 1e6:g} ms: the slowest ends at most 5 ms later than bare",
                  f"{worst / 1e3:.2f} ms late of {seen[0][2 * i]:.0f}, bare {bare_worst / 1e3:.2f}")
    table.row({one.end() for one in members} == {0}, "never idle, kernels: they end well")
    if when:
        table.figure("kernels of 0.2, 2 and 10 ms on three streams, never idle", f"{gib(size)} are merged after", "", f"{when - QUIET:.1f} s")
    fleet.stable_use(0, 1)


def servers(fleet, table):
    if missing(fleet, table, "never idle, two PyTorch servers"):
        return
    models = Models(fleet, "model")
    config = fleet.config("torch-busy", merge_rule("python*", quiet=f"{QUIET}s"))
    bare, members = models.start("torch-bare"), models.group("torch-busy", config, 2)
    for one in [bare] + members:
        one.ready(100).ask("load 1")
        one.ask("forward")
    say([bare], "busy 8")
    alone = heard([bare])[0]
    bare.end()
    begun = time.monotonic()
    say(members, f"busy {SECONDS}")
    when, gone = merged_within(fleet, int(0.9 * models.size), begun, SECONDS)
    seen = heard(members)
    good = when is not None and when <= QUIET + 10
    table.row(good, "never idle, two PyTorch servers: the weights are merged within 10 s after quiet", told(when, models.size, gone))
    answers = {one[3] for one in seen} == {alone[3]} and {one[1] for one in seen} == {"0"}
    table.row(answers and {one[4] for one in seen} == {"none"}, "never idle, two PyTorch servers: they answer as bare ones do", f"{seen}, bare {alone}")
    if when:
        table.figure("two PyTorch servers, never idle", f"{gib(models.size)} are merged after", "", f"{when - QUIET:.1f} s")
    table.figure("two PyTorch servers, never idle", "the slowest request takes", f"{float(alone[2]):.0f} ms alone",
                 f"{statistics.fmean(float(one[2]) for one in seen):.0f} ms of two")
    table.row({one.end() for one in members} == {0}, "never idle, two PyTorch servers: they end well")


def busy(fleet, table, size):
    with table.part("never idle, kernels"):
        kernels(fleet, table, size if fleet.driver == "gpu" else 64 * MIB)
    with table.part("never idle, two PyTorch servers"):
        servers(fleet, table)
