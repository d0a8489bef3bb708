"""Servers whose card is never idle: how soon all is merged, and what a request notices. A part of replicas.py."""
import statistics
import time

from fleet import GIB, MIB, gib, merge_rule
from replicas_torch import Models, missing

LENGTHS = (200_000, 2_000_000, 10_000_000) # ns, of kernels
SECONDS, QUIET = 20, 3


def merged_within(fleet, size, begun, seconds):
    """Seconds until merging has saved so many bytes, or None; and the bytes."""
    saved = 0
    while time.monotonic() < begun + seconds:
        saved = fleet.saved()
        if saved >= size:
            return time.monotonic() - begun, saved
        time.sleep(0.05)
    return None, saved


def told(when, size, gone):
    return f"{gib(size)} after {when:.1f} s" if when else f"{gib(max(0, gone))} of {gib(size)} after {SECONDS} s"


def say(members, words):
    for one in members:
        one.process.stdin.write(words + "\n")


def heard(members):
    return [one.line(SECONDS + 60)[1].split()[1:] for one in members]


def busy(fleet, table, size):
    """One kernel after the other on each of three streams, in two processes, which share the card's time."""
    folder, tool, size = fleet.room_for(2 * GIB), fleet.programs / "weights_static", 2 * GIB if fleet.driver == "gpu" else 64 * MIB
    fleet.once(tool, "make", folder / "weights", size, 1)
    words, lengths = [tool, "serve", folder / "weights", "layers=64"], " ".join(map(str, LENGTHS))
    config = fleet.config("busy", merge_rule("weights_*", quiet=f"{QUIET}s"))
    bare = [fleet.start(f"kernels-bare-{i}", words).ready() for i in range(2)]
    say(bare, f"busy 5000 {lengths}")
    without = [list(map(float, words)) for words in heard(bare)]
    for one in bare:
        one.end()
    members = [fleet.start(f"kernels-{i}", words, config).ready() for i in range(2)]
    begun = time.monotonic()
    say(members, f"busy {SECONDS * 1000} {lengths}")
    when, gone = merged_within(fleet, int(0.97 * size), begun, SECONDS)
    seen = [list(map(float, words)) for words in heard(members)]
    good = when is not None and when <= QUIET + 10
    table.row(good or fleet.driver == "sim", "never idle, kernels of 0.2, 2 and 10 ms: all is merged within 10 s after quiet",
              told(when, size, gone) + f"; {[one.findings() for one in members]}")
    for i, length in enumerate(LENGTHS):
        worst, bare_worst = (max(one[2 * i + 1] for one in them) for them in (seen, without))
        table.goal(fleet.driver == "sim" or worst <= bare_worst + 5000,
                   f"never idle, kernels of {length / 1e6:g} ms: the slowest ends at most 5 ms later than bare",
                   f"{worst / 1e3:.2f} ms late of {seen[0][2 * i]:.0f}, bare {bare_worst / 1e3:.2f}")
    table.row({one.end() for one in members} == {0}, "never idle, kernels: they end well")
    if when:
        table.figure("kernels of 0.2, 2 and 10 ms on three streams, never idle", f"{gib(size)} are merged after", "", f"{when - QUIET:.1f} s")
    fleet.stable_use(0, 1)


def loaded(members, seconds):
    """With their weights on the card, and busy from then on."""
    for one in members:
        one.ready(100).ask("load 1")
        one.ask("forward")
        say([one], f"busy {seconds}")
    return members


def busy_torch(fleet, table, _):
    if missing(fleet, table, "never idle, two PyTorch servers"):
        return
    models = Models(fleet, "model")
    config = fleet.config("torch-busy", merge_rule("python*", quiet=f"{QUIET}s"))
    bare, members = models.group("torch-bare", None, 2), models.group("torch-busy", config, 2)
    without = heard(loaded(bare, 8))
    for one in bare:
        one.end()
    loaded(members, SECONDS)
    begun = time.monotonic()
    when, gone = merged_within(fleet, int(0.9 * models.size), begun, SECONDS)
    seen = heard(members)
    good = when is not None and when <= QUIET + 10
    table.row(good, "never idle, two PyTorch servers: the weights are merged within 10 s after quiet", told(when, models.size, gone))
    answers = {one[3] for one in seen} == {without[0][3]} and {one[1] for one in seen} == {"0"}
    table.row(answers and {one[4] for one in seen} == {"none"}, "never idle, two PyTorch servers: they answer as bare ones do", f"{seen}, bare {without}")
    if when:
        table.figure("two PyTorch servers, never idle", f"{gib(models.size)} are merged after", "", f"{when - QUIET:.1f} s")
    table.figure("two PyTorch servers, never idle", "the slowest request takes", *(
        f"{statistics.fmean(float(one[2]) for one in them):.0f} ms" for them in (without, seen)))
    table.row({one.end() for one in members} == {0}, "never idle, two PyTorch servers: they end well")
