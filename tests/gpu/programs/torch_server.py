"""PyTorch as people serve with it: a language model with an odd vocabulary, biases and norms.

usage: torch_server.py make FILE LAYERS     a state dict; prints its bytes
       torch_server.py serve FILE LAYERS    says "ready ...", then a line for each line of its input, until "end"

load THREADS     the state dict onto the card; by several threads in random order
forward          the bits of an answer
busy SECONDS     three threads with streams of their own answer one request after the other
work SECONDS     two threads with streams of their own serve requests, with a cache of keys and values and
                 pinned staging; graphs are captured before and after, and replayed
"""
import hashlib
import random
import sys
import threading
import time

import torch
from torch import nn

WIDTH, HEADS, VOCABULARY = 1024, 16, 50257
BATCH, PROMPT, TOKENS, LENGTH, PROMPTS = 4, 64, 4, 256, 8


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.qkv, self.proj = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.after, self.fc, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, cache, at):
        batch, count, _ = x.shape
        query, key, value = [part.view(batch, count, HEADS, WIDTH // HEADS).transpose(1, 2)
                             for part in self.qkv(self.before(x)).chunk(3, -1)]
        cache[0][:, :, at:at + count] = key
        cache[1][:, :, at:at + count] = value
        seen = nn.functional.scaled_dot_product_attention(query, cache[0][:, :, :at + count], cache[1][:, :, :at + count],
                                                          is_causal=count > 1)
        x = x + self.proj(seen.transpose(1, 2).reshape(batch, count, WIDTH))
        return x + self.feed(self.after(x))

    def feed(self, x):
        return self.out(nn.functional.gelu(self.fc(x)))


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.words, self.norm = nn.Embedding(VOCABULARY, WIDTH), nn.LayerNorm(WIDTH)
        self.blocks, self.head = nn.ModuleList(Block() for _ in range(layers)), nn.Linear(WIDTH, VOCABULARY)

    def forward(self, x, caches, at):
        x = self.words(x)
        for block, cache in zip(self.blocks, caches):
            x = block(x, cache, at)
        return self.head(self.norm(x[:, -1]))


def digest(*tensors):
    return hashlib.md5(b"".join(one.float().cpu().numpy().tobytes() for one in tensors)).hexdigest()[:12]


class Server:
    def __init__(self, path, layers):
        with torch.device("meta"):
            self.model = Model(layers)
        self.model.load_state_dict(torch.load(path, mmap=True, weights_only=True), assign=True)
        self.model.eval()
        self.lock, self.right, self.pause = threading.Lock(), {}, 0.002

    def load(self, threads):
        """On the card; seconds."""
        started = time.monotonic()
        if threads == 1:
            self.model.cuda()
        else:
            parameters = list(self.model.parameters())
            random.shuffle(parameters)
            parts = [threading.Thread(target=self.move, args=(parameters[i::threads],)) for i in range(threads)]
            for part in parts:
                part.start()
            for part in parts:
                part.join()
        torch.cuda.synchronize()
        return time.monotonic() - started

    @staticmethod
    def move(parameters):
        for parameter in parameters:
            parameter.data = parameter.data.cuda()

    def caches(self):
        return [[torch.zeros(BATCH, HEADS, LENGTH, WIDTH // HEADS, device="cuda") for _ in range(2)] for _ in self.model.blocks]

    def request(self, prompt, stage, caches):
        """A prompt, and some words after it."""
        stage.copy_(prompt, non_blocking=True)
        at, words, scores = PROMPT, [], self.model(stage, caches, 0)
        for _ in range(TOKENS):
            words.append(scores.argmax(-1, keepdim=True))
            scores = self.model(words[-1], caches, at)
            at += 1
        return digest(torch.cat(words, 1), scores)

    def forward(self):
        return self.request(prompts()[0], torch.empty(BATCH, PROMPT, dtype=torch.long, device="cuda"), self.caches())

    # --- under load ---

    def serve(self, name, until, seen):
        """Until then, or until something fails."""
        try:
            questions, n = prompts(), name
            with torch.inference_mode(), torch.cuda.stream(torch.cuda.Stream()):
                caches, stage = self.caches(), torch.empty(BATCH, PROMPT, dtype=torch.long, device="cuda")
                while time.monotonic() < until and not seen["error"]:
                    started = time.monotonic()
                    answer = self.request(questions[n % PROMPTS], stage, caches)
                    self.note(seen, n % PROMPTS, answer, time.monotonic() - started)
                    n += 1
                    time.sleep(self.pause)
        except RuntimeError as error:
            seen["error"] = str(error).split("\n", maxsplit=1)[0]

    def note(self, seen, prompt, answer, took):
        with self.lock:
            seen["requests"] += 1
            seen["bad"] += self.right.setdefault(prompt, answer) != answer
            if seen["requests"] > 2 * PROMPTS:
                seen["worst"] = max(seen["worst"], took)

    def busy(self, seconds):
        """Never idle: how many, how many wrong, the slowest in ms, the answers, the error."""
        seen, until = {"requests": 0, "bad": 0, "worst": 0.0, "error": None}, time.monotonic() + seconds
        self.pause = 0
        threads = [threading.Thread(target=self.serve, args=(name, until, seen)) for name in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answers = hashlib.md5(str(sorted(self.right.items())).encode()).hexdigest()[:12]
        return f"{seen['requests']} {seen['bad']} {seen['worst'] * 1e3:.1f} {answers} {seen['error'] or 'none'}"

    def work(self, seconds):
        seen = {"requests": 0, "bad": 0, "worst": 0.0, "error": None}
        first = Graph(self.model.blocks[0])
        right, until = first.replay(), time.monotonic() + seconds
        threads = [threading.Thread(target=self.serve, args=(name, until, seen)) for name in range(2)]
        for thread in threads:
            thread.start()
        graphs = set()
        try:
            while time.monotonic() < until and not seen["error"]:
                time.sleep(0.2)
                graphs.add(first.replay())
        except RuntimeError as error:
            seen["error"] = seen["error"] or str(error).split("\n", maxsplit=1)[0]
        for thread in threads:
            thread.join()
        if not seen["error"]: # a capture beside the threads would forbid them their own calls
            graphs |= {first.replay(), Graph(self.model.blocks[0]).replay()}
        answers = hashlib.md5(str(sorted(self.right.items())).encode()).hexdigest()[:12]
        return (f"{seen['requests']} {seen['bad']} {len(graphs - {right})} {answers}-{right} {seen['worst'] * 1e3:.1f} "
                f"{seen['error'] or 'none'}")


class Graph:
    """A captured piece of the model. It owns what the graph reads and writes."""

    def __init__(self, block):
        self.graph = torch.cuda.CUDAGraph()
        with torch.inference_mode():
            self.read = torch.sin(torch.arange(8 * WIDTH, dtype=torch.float32, device="cuda")).reshape(8, WIDTH)
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(3):
                    block.feed(self.read)
            side.synchronize()
            with torch.cuda.graph(self.graph):
                self.written = block.feed(self.read)

    def replay(self):
        self.graph.replay()
        torch.cuda.synchronize()
        return digest(self.written)


def prompts():
    return [torch.randint(0, VOCABULARY, (BATCH, PROMPT), generator=torch.Generator().manual_seed(i)).pin_memory()
            for i in range(PROMPTS)]


def make(path, layers):
    torch.manual_seed(0)
    state = Model(layers).state_dict()
    torch.save(state, path)
    print(sum(one.numel() * one.element_size() for one in state.values()))


def answer(server, question, value):
    if question == "load":
        return f"{server.load(int(value)):.4f}"
    if question in ("work", "busy"):
        return getattr(server, question)(float(value))
    with torch.inference_mode():
        return server.forward()


def serve(path, layers):
    started = time.monotonic()
    server = Server(path, layers)
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    print(f"ready load 0 start {time.monotonic() - started:.4f}", flush=True)
    for line in sys.stdin:
        if line == "end\n":
            break
        question, _, value = line.strip().partition(" ")
        print(question, answer(server, question, value), flush=True)


if __name__ == "__main__":
    {"make": make, "serve": serve}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
