"""PyTorch as people serve with it: a state dict from a file onto the card, then forward passes.

usage: torch_weights.py make FILE LAYERS SEED [FILE LAYERS SEED]...
       torch_weights.py serve FILE LAYERS      says "ready ...", then a line for each line of its input, until "end"
"""
import sys
import time

import torch

WIDTH = 4096 # 64 MiB a layer


def model(layers):
    parts = []
    for _ in range(layers):
        parts += [torch.nn.Linear(WIDTH, WIDTH, device="meta"), torch.nn.Tanh()]
    return torch.nn.Sequential(*parts)


def make(path, layers, seed):
    generator = torch.Generator().manual_seed(seed)
    shapes = {name: value.shape for name, value in model(layers).state_dict().items()}
    torch.save({name: torch.randn(shape, generator=generator) / WIDTH ** 0.5 for name, shape in shapes.items()}, path)


def load(path, layers):
    """As by the manual: the model, its state dict, to the card."""
    server = model(layers).to_empty(device="cpu")
    server.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    return server.eval().to("cuda")


def forward(server):
    """Exact: the bits of some of the outputs, and of their sum."""
    steps = torch.arange(4 * WIDTH, dtype=torch.float32, device="cuda").reshape(4, WIDTH)
    out = server(torch.sin(steps)).double()
    return " ".join([float(x).hex() for x in out[:, 7]] + [float(out.sum()).hex()])


def serve(path, layers):
    started = time.monotonic()
    torch.cuda.init()
    torch.cuda.synchronize()
    loading = time.monotonic()
    server = load(path, layers)
    torch.cuda.synchronize()
    print(f"ready load {time.monotonic() - loading:.4f} start {loading - started:.4f}", flush=True)
    with torch.inference_mode():
        for line in sys.stdin:
            if line == "end\n":
                break
            print(line.strip(), forward(server), flush=True)


if __name__ == "__main__":
    words = sys.argv[2:]
    if sys.argv[1] == "serve":
        serve(words[0], int(words[1]))
    else:
        for at in range(0, len(words), 3):
            make(words[at], int(words[at + 1]), int(words[at + 2]))
