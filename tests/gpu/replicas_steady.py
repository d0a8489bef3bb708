"""Four replicas of one model, each of which measures what is free before and after its load, as engines do that size a cache by it
(`free = steady`). A part of replicas.py."""
import os
import subprocess
import sys

from fleet import GIB, MIB, gib, merge_rule
from replicas_torch import missing

# Prints what its load seems to cost and the card's memory, then for each line of its input what is free.
PROGRAM = """
import sys, torch
torch.zeros(1, device="cuda")
torch.cuda.synchronize()
before, total = torch.cuda.mem_get_info()
parts = [torch.randint(-2**62, 2**62, (1 << 27,), dtype=torch.int64, generator=torch.Generator().manual_seed(number)).cuda()
         for number in range(int(sys.argv[1]))]
torch.cuda.synchronize()
print(before - torch.cuda.mem_get_info()[0], total, flush=True)
for line in sys.stdin:
    print(torch.cuda.mem_get_info()[0], flush=True)
"""


def steady(fleet, table, _):
    if missing(fleet, table, "PyTorch: what is free stays steady"):
        return
    config, size, before = fleet.config("steady", merge_rule("python*", quiet="1s")), 4, fleet.used()
    members, caches, free = [], [], []
    for number in range(4):
        environment = fleet.environment(config, fleet.results / f"replicas-steady-{number}.log")
        members.append(subprocess.Popen([sys.executable, "-c", PROGRAM, str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment, text=True))
        cost, total = map(int, members[-1].stdout.readline().split())
        caches.append(total * 9 // 10 - cost) # 90 % of the card, less the load
        members[0].stdin.write(os.linesep)
        members[0].stdin.flush()
        free.append(int(members[0].stdout.readline()))
    in_use = fleet.used() - before
    off = max(abs(one - caches[0]) / caches[0] for one in caches)
    table.row(off <= 0.01, "PyTorch, free = steady: each of four sizes its cache as the first one within 1 %",
              f"{off:.2%}; caches of {', '.join(f'{one // MIB} MiB' for one in caches)}")
    table.row(free == sorted(free, reverse=True), "and for the first one what is free never rises", ", ".join(gib(one) for one in free))
    for one in members:
        one.stdin.close()
    table.row({one.wait(60) for one in members} == {0} and in_use < 3 * size * GIB, "they end well, and were merged",
              f"{gib(in_use)} of four with {size} GiB each")
