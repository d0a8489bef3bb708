"""A language model that transformers loads, as people serve with it: safetensors, `device_map="cuda"`.

usage: transformers_server.py make FOLDER VOCABULARY     a Llama with random weights; prints its bytes
       transformers_server.py serve FOLDER               says "ready ...", then a line for each line of its input, until "end"

load         the model onto the card; seconds
forward      the bits of an answer
places       of each weight in the order of the model: the bytes, and its distance from a multiple of 2 MiB before it
"""
import hashlib
import os
import sys
import time

os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TRANSFORMERS_VERBOSITY": "error", "TQDM_DISABLE": "1"}

import torch
import transformers

PAGE = 2 << 20
WIDTH, INNER, HEADS, LAYERS = 2048, 5632, 32, 20 # each matrix of a layer is a multiple of 2 MiB


def make(folder, vocabulary):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(vocab_size=vocabulary, hidden_size=WIDTH, intermediate_size=INNER, num_attention_heads=HEADS,
                                      num_key_value_heads=HEADS, num_hidden_layers=LAYERS, tie_word_embeddings=False)
    torch.set_default_dtype(torch.float16)
    with torch.device("cuda"):
        model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(folder, safe_serialization=True)
    print(sum(one.numel() * one.element_size() for one in model.parameters()))


class Server:
    def __init__(self, folder):
        self.folder, self.model = folder, None

    def load(self):
        started = time.monotonic()
        self.model = transformers.LlamaForCausalLM.from_pretrained(self.folder, device_map="cuda", dtype=torch.float16)
        torch.cuda.synchronize()
        return f"{time.monotonic() - started:.4f}"

    def forward(self):
        words = torch.arange(64, device="cuda")[None] * 17
        with torch.inference_mode():
            scores = self.model(words).logits[0, -1].float().cpu()
        return hashlib.md5(scores.numpy().tobytes()).hexdigest()[:12]

    def places(self):
        return " ".join(f"{one.numel() * one.element_size()}:{one.data_ptr() % PAGE}" for one in self.model.parameters())


def serve(folder):
    started, server = time.monotonic(), Server(folder)
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    print(f"ready load 0 start {time.monotonic() - started:.4f} transformers {transformers.__version__}", flush=True)
    for line in sys.stdin:
        if line == "end\n":
            break
        question = line.split()[0]
        print(question, getattr(server, question)(), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], int(sys.argv[3]))
    else:
        serve(sys.argv[2])
