"""PyTorch as people use it: CUDA tensors go to other processes and come back. Prints plain results.

usage: torch_share.py [queues|spawn|loader|graph|events]...     (all)
"""
import sys

import torch
import torch.multiprocessing as mp


def worker(rank, inbox, outbox):
    for tensor in iter(inbox.get, None):
        tensor.add_(rank + 1)
        outbox.put((rank, float(tensor.sum())))
        del tensor
    event = torch.cuda.Event(enable_timing=False)
    event.record()
    event.synchronize()
    outbox.put((rank, "done"))


def queues():
    """Long-lived workers that get tensors through queues."""
    context = mp.get_context("spawn")
    outbox = context.Queue()
    inboxes = [context.Queue() for _ in range(3)]
    workers = [context.Process(target=worker, args=(i, inboxes[i], outbox)) for i in range(3)]
    for process in workers:
        process.start()
    tensors = [torch.ones(1 << 20, device="cuda") * i for i in range(3)]
    results = []
    for inbox, tensor in zip(inboxes, tensors):
        inbox.put(tensor)
        results.append(outbox.get())
    for inbox in inboxes:
        inbox.put(None)
    results += sorted(outbox.get() for _ in workers)
    for process in workers:
        process.join()
    print("queues", results, [process.exitcode for process in workers])
    print("tensors", [float(tensor[0]) for tensor in tensors])


def add_rank(rank, tensor, small):
    """Each process writes its own row; a small tensor lies in one block with others."""
    tensor[rank] += rank
    small[rank] = rank * 10
    torch.cuda.synchronize()


def spawn():
    tensor = torch.ones((4, 1 << 20), device="cuda")
    small = torch.zeros(4, device="cuda")
    mp.spawn(add_rank, args=(tensor, small), nprocs=4)
    print("spawn", tensor[:, 0].tolist(), tensor.sum().item(), small.tolist())


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((16,), float(i * i), device="cuda")


def loader():
    """A DataLoader whose workers make CUDA tensors and hand them over."""
    batches = torch.utils.data.DataLoader(Squares(), batch_size=16, num_workers=2,
                                          multiprocessing_context="spawn")
    print("loader", sum(float(batch.sum()) for batch in batches))


def replay(tensor, outbox):
    """A graph that works on another process's memory."""
    static = torch.zeros(1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        static.copy_(tensor)
        static += 1
    graph.replay()
    torch.cuda.synchronize()
    outbox.put(float(static[0]))


def graph():
    graph_in = torch.ones(1024, device="cuda")
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        graph_out = graph_in * 2
    graph_in.fill_(21)
    captured.replay()
    torch.cuda.synchronize()
    context = mp.get_context("spawn")
    outbox = context.Queue()
    process = context.Process(target=replay, args=(graph_in, outbox))
    process.start()
    print("graph", float(graph_out[0]), outbox.get(timeout=90))
    process.join()


def await_event(handle, tensor, outbox):
    event = torch.cuda.Event.from_ipc_handle(torch.device("cuda", 0), handle)
    event.synchronize()
    outbox.put(float(tensor[-1]))


def events():
    context = mp.get_context("spawn")
    outbox = context.Queue()
    event = torch.cuda.Event(enable_timing=False, interprocess=True)
    tensor = torch.zeros(1 << 22, device="cuda")
    tensor += 5
    event.record()
    process = context.Process(target=await_event, args=(event.ipc_handle(), tensor, outbox))
    process.start()
    print("events", outbox.get(timeout=90))
    process.join()


if __name__ == "__main__":
    for name in sys.argv[1:] or ["queues", "spawn", "loader", "graph", "events"]:
        {"queues": queues, "spawn": spawn, "loader": loader, "graph": graph, "events": events}[name]()
    sys.stdout.flush()
