"""PyTorch as people use it: CUDA tensors go to other processes and come back. Prints plain results."""
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


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((16,), float(i * i), device="cuda")


def main():
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
    loader = torch.utils.data.DataLoader(Squares(), batch_size=16, num_workers=2,
                                         multiprocessing_context="spawn")
    print("loader", sum(float(batch.sum()) for batch in loader))
    graph_in = torch.ones(1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        graph_out = graph_in * 2
    graph_in.fill_(21)
    graph.replay()
    torch.cuda.synchronize()
    print("graph", float(graph_out[0]))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
