"""Two ranks that sum over NCCL, one card each, and take their group down. Prints what each has."""
import os

import torch
import torch.distributed
import torch.multiprocessing


def rank(number):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", RANK=str(number), WORLD_SIZE="2")
    torch.cuda.set_device(number)
    torch.distributed.init_process_group("nccl")
    data = torch.full((1 << 20,), float(number + 1), device="cuda")
    torch.distributed.all_reduce(data)
    print("rank", number, "has", data[0].item(), flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(rank, nprocs=2)
