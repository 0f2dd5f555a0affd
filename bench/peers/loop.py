"""The honest rival: GRPO on a Qwen3 model in plain PyTorch, written for speed on a CPU.

Sampling: the adapter merged, q/k/v and gate/up in one product each, norms' weights folded into them, a preallocated
key-value cache, each distinct prompt read once and its cache repeated, one token tensor per step and nothing per row
in Python. Training: LoRA beside frozen weights, rows without an advantage skipped, like lengths together,
logits at the completions only. Left out: torch.compile, other dtypes than float32.
"""

import json
import math
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from common import Peer, Rewards, adamw, advantages
from safetensors.torch import load_file

# Rows per forward and backward pass, the fastest of 12, 24, 48, 96 and 192 on the arena's base.
TRAIN_ROWS = 48
# Finished rows leave the batch when they are at least this share of it; the fastest of never, 1/2, 1/4 and 1/8.
COMPACT_SHARE = 0.25
QKV = ["q_proj", "k_proj", "v_proj"]
GATE_UP = ["gate_proj", "up_proj"]
MODULES = [*QKV, "o_proj", *GATE_UP, "down_proj"]


@dataclass
class Config:
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    eps: float
    theta: float


class Policy:
    """The frozen base by layer, and the adapter's matrices on it."""

    def __init__(self, folder: str, lora: dict):
        raw = json.loads((Path(folder) / "config.json").read_text())
        self.config = Config(
            layers=raw["num_hidden_layers"],
            heads=raw["num_attention_heads"],
            kv_heads=raw["num_key_value_heads"],
            head_dim=raw["head_dim"],
            eps=raw["rms_norm_eps"],
            theta=raw["rope_theta"],
        )
        weights = load_file(str(Path(folder) / "model.safetensors"))
        self.embedding = weights["model.embed_tokens.weight"]
        self.head = self.embedding if raw["tie_word_embeddings"] else weights["lm_head.weight"]
        self.norm = weights["model.norm.weight"]
        self.base = [
            {
                name.split(f"layers.{layer}.")[1].removesuffix(".weight").split(".")[-1]: weight
                for name, weight in weights.items()
                if name.startswith(f"model.layers.{layer}.")
            }
            for layer in range(self.config.layers)
        ]
        for layer in self.base:
            for names in (QKV, GATE_UP):
                layer["+".join(names)] = torch.cat([layer[name] for name in names])
        self.scale = lora["alpha"] / lora["r"]
        self.A = [{m: kaiming(lora["r"], layer[m].shape[1]) for m in MODULES} for layer in self.base]
        self.B = [
            {m: torch.zeros(layer[m].shape[0], lora["r"], requires_grad=True) for m in MODULES} for layer in self.base
        ]
        half = self.config.head_dim // 2
        angles = torch.outer(
            torch.arange(raw["max_position_embeddings"]).float(), self.config.theta ** (-torch.arange(half) / half)
        )
        self.cos, self.sin = angles.cos().repeat(1, 2), torch.cat([-angles.sin(), angles.sin()], 1)

    def parameters(self) -> list[torch.Tensor]:
        return [matrix for layers in (self.A, self.B) for layer in layers for matrix in layer.values()]

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Normalised hidden states [R, T, d]. Padding is on the right, where no real token looks."""
        c = self.config
        R, T = ids.shape
        H, G, hd = c.heads, c.kv_heads, c.head_dim
        cos, sin = self.cos[:T, None], self.sin[:T, None]
        x = self.embedding[ids.view(-1)]
        for layer, A, B in zip(self.base, self.A, self.B, strict=True):

            def linear(x, names, layer=layer, A=A, B=B):
                """Modules that read the same input: the base and the adapters' first halves in one product each."""
                y = F.linear(x, layer["+".join(names)])
                inner = F.linear(x, torch.cat([A[name] for name in names]) if len(names) > 1 else A[names[0]])
                ys = y.split([layer[name].shape[0] for name in names], -1)
                inners = inner.chunk(len(names), -1)
                return [
                    torch.addmm(y, inner, B[name].t(), alpha=self.scale)
                    for y, inner, name in zip(ys, inners, names, strict=True)
                ]

            q, k, v = linear(rms(x, layer["input_layernorm"], c.eps), QKV)
            q = rotate(rms(q.view(R, T, H, hd), layer["q_norm"], c.eps), cos, sin).transpose(1, 2)
            k = rotate(rms(k.view(R, T, G, hd), layer["k_norm"], c.eps), cos, sin).transpose(1, 2)
            v = v.view(R, T, G, hd).transpose(1, 2)
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
            (out,) = linear(mixed.transpose(1, 2).reshape(R * T, H * hd), ["o_proj"])
            x = x + out
            gate, up = linear(rms(x, layer["post_attention_layernorm"], c.eps), GATE_UP)
            (out,) = linear(F.silu(gate) * up, ["down_proj"])
            x = x + out
        return rms(x, self.norm, c.eps).view(R, T, -1)


def kaiming(rows: int, columns: int) -> torch.Tensor:
    bound = 1 / math.sqrt(columns)
    return torch.empty(rows, columns).uniform_(-bound, bound).requires_grad_()


def rms(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def normalise(x: torch.Tensor, eps: float) -> torch.Tensor:
    """x / rms(x), without a weight."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True).add_(eps))


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """The sine's first half carries the minus sign of rotate-half."""
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin


class Sampler:
    """Merged weights and the cache [layers, rows x kv heads, length, head size] of one batch."""

    def __init__(self, policy: Policy, temperature: float):
        self.policy, self.config, self.temperature = policy, policy.config, temperature
        c = self.config
        self.layers = []
        for layer, A, B in zip(policy.base, policy.A, policy.B, strict=True):
            w = {m: torch.addmm(layer[m], B[m], A[m], alpha=policy.scale) for m in MODULES}
            q_norm = (layer["q_norm"] / math.sqrt(c.head_dim)).expand(c.heads, -1)  # the scores' scale
            self.layers.append(
                {
                    # The norms' weights belong to the columns of the product that follows.
                    "qkv": (torch.cat([w["q_proj"], w["k_proj"], w["v_proj"]]) * layer["input_layernorm"]).t(),
                    "qk_norm": torch.cat([q_norm, layer["k_norm"].expand(c.kv_heads, -1)])[None],
                    "o_proj": w["o_proj"].t(),
                    "gate_up": (torch.cat([w["gate_proj"], w["up_proj"]]) * layer["post_attention_layernorm"]).t(),
                    "down_proj": w["down_proj"].t(),
                }
            )
        self.head = (policy.head * policy.norm).t()

    def step(self, ids: torch.Tensor, positions: torch.Tensor, start: int, bias: torch.Tensor | None) -> torch.Tensor:
        """Ids [R, T] at cache places from `start`; logits [R, V] after the last."""
        c, policy = self.config, self.policy
        R, T = ids.shape
        H, G, hd = c.heads, c.kv_heads, c.head_dim
        end = start + T
        cos, sin = policy.cos[positions].view(-1, T, 1, hd), policy.sin[positions].view(-1, T, 1, hd)
        x = policy.embedding[ids.view(-1)]
        for i, w in enumerate(self.layers):
            qkv = torch.mm(normalise(x, c.eps), w["qkv"]).view(R, T, H + 2 * G, hd)
            qk = normalise(qkv[:, :, : H + G], c.eps).mul_(w["qk_norm"])
            qk = rotate(qk, cos, sin).transpose(1, 2)
            self.keys[i].view(R, G, -1, hd)[:, :, start:end] = qk[:, H:]
            self.values[i].view(R, G, -1, hd)[:, :, start:end] = qkv[:, :, H + G :].transpose(1, 2)
            keys, values = self.keys[i][:, :end], self.values[i][:, :end]
            # The query heads of one key head as the rows of one matrix: no key is repeated. Products of batches
            # are several times faster here than scaled_dot_product_attention with one query.
            scores = torch.bmm(qk[:, :H].reshape(R * G, H // G * T, hd), keys.transpose(1, 2))
            if bias is not None:
                scores.view(R, H, T, end).add_(bias)
            mixed = torch.bmm(torch.softmax(scores, -1), values).view(R, H, T, hd)
            x.addmm_(mixed.transpose(1, 2).reshape(R * T, H * hd), w["o_proj"])
            gate, up = torch.mm(normalise(x, c.eps), w["gate_up"]).chunk(2, -1)
            x.addmm_(F.silu(gate).mul_(up), w["down_proj"])
        last = x if T == 1 else x.view(R, T, -1)[:, -1]
        return torch.mm(normalise(last, c.eps), self.head)

    def draw(self, logits: torch.Tensor) -> torch.Tensor:
        """One id per row: the first whose cumulative probability passes a uniform number."""
        cumulative = torch.softmax(logits / self.temperature, -1).cumsum_(-1)
        u = torch.rand(len(logits), 1).mul_(cumulative[:, -1:])
        return (cumulative <= u).sum(-1)

    @torch.inference_mode()
    def generate(self, prompts: list[list[int]], new_tokens: int, eos: int | None) -> list[list[int]]:
        """Completions, end-of-sequence included. Equal neighbours among the prompts are read once."""
        c = self.config
        distinct = [p for i, p in enumerate(prompts) if i == 0 or p != prompts[i - 1]]
        counts = torch.zeros(len(distinct), dtype=torch.long)
        at = -1
        for i, p in enumerate(prompts):
            at += i == 0 or p != prompts[i - 1]
            counts[at] += 1
        width = max(map(len, distinct))
        padded = any(len(p) < width for p in distinct)
        ids = torch.tensor([[0] * (width - len(p)) + p for p in distinct])
        pad = torch.tensor([width - len(p) for p in distinct])
        places = torch.arange(width + new_tokens)
        hidden = torch.zeros(len(distinct), width + new_tokens)  # added to the scores of padding
        hidden.masked_fill_(places[None] < pad[:, None], -1e9)

        self.keys = [torch.empty(len(distinct) * c.kv_heads, width, c.head_dim) for _ in range(c.layers)]
        self.values = [torch.empty_like(k) for k in self.keys]
        positions = (places[:width] - pad[:, None]).clamp_(min=0) if padded else places[:width]
        future = torch.full((width, width), -1e9).triu_(1)
        logits = self.step(ids, positions, 0, future + hidden[:, None, None, :width])

        R = len(prompts)
        self.pick(torch.arange(len(distinct)).repeat_interleave(counts), width + new_tokens)
        last = self.draw(logits.repeat_interleave(counts, 0))
        pad, hidden = pad.repeat_interleave(counts), hidden.repeat_interleave(counts, 0)
        tokens = torch.full((R, new_tokens), -1)
        tokens[:, 0] = last
        rows = torch.arange(R)
        done = last == eos if eos is not None else None
        for t in range(1, new_tokens):
            if done is not None:
                finished = int(done.sum())
                if finished == len(rows):
                    break
                if finished >= COMPACT_SHARE * len(rows):
                    kept = (~done).nonzero()[:, 0]
                    rows, last, pad, hidden, done = rows[kept], last[kept], pad[kept], hidden[kept], done[kept]
                    self.pick(kept, width + new_tokens)
            place = width + t - 1
            positions = place - pad if padded else places[place : place + 1]
            bias = hidden[:, None, None, : place + 1] if padded else None
            last = self.draw(self.step(last[:, None], positions, place, bias))
            tokens[rows, t] = last if done is None else torch.where(done, -1, last)
            if done is not None:
                done |= last == eos
        return [[token for token in row if token >= 0] for row in tokens.tolist()]

    def pick(self, rows: torch.Tensor, length: int) -> None:
        """These rows of the cache, in this order, with room for `length` tokens."""
        G, hd = self.config.kv_heads, self.config.head_dim
        for cache in (self.keys, self.values):
            for i, block in enumerate(cache):
                cache[i] = torch.empty(len(rows), G, length, hd)
                have = block.shape[1]
                cache[i][:, :, :have] = block.view(-1, G, have, hd)[rows]
                cache[i] = cache[i].view(-1, length, hd)


class LoopPeer(Peer):
    measures = ["sample", "train", "grpo"]

    def __init__(self, workload: dict):
        from transformers import AutoTokenizer

        self.workload, self.grpo_config = workload, workload["run"]["grpo"]
        self.policy = Policy(workload["base"], workload["run"]["lora"])
        self.optimizer = adamw(self.policy.parameters(), workload)
        self.tokenizer = AutoTokenizer.from_pretrained(workload["base"])
        self.rewards = Rewards(workload)

    def sample(self, rows: int, completion: int) -> dict:
        with torch.inference_mode():
            sampler = Sampler(self.policy, self.grpo_config["temperature"])
        start = time.perf_counter()
        out = sampler.generate(self.workload["prompts"][:rows], completion, None)
        tokens = sum(map(len, out))
        return {"seconds": time.perf_counter() - start, "tokens": tokens}

    def train(self, rows: int, completion: int) -> dict:
        start = time.perf_counter()
        prompts = self.workload["prompts"][:rows]
        completions = [c[:completion] for c in self.workload["completions"][:rows]]
        signs = [1.0 if row % 2 == 0 else -1.0 for row in range(rows)]
        self.update(prompts, completions, signs)
        tokens = sum(len(p) + completion for p in prompts)
        return {"seconds": time.perf_counter() - start, "tokens": tokens}

    def grpo(self, step: int) -> dict:
        start = time.perf_counter()
        run = self.workload["run"]
        group = 2 * self.grpo_config["numGenerations"]
        at = step * run["problemsPerStep"]
        asked = self.workload["problems"][at : at + run["problemsPerStep"]]
        texts = [a["prompt"] for a in asked]
        ids = self.tokenizer(texts, add_special_tokens=False)["input_ids"]
        prompts = [p for p in ids for _ in range(group)]
        with torch.inference_mode():
            sampler = Sampler(self.policy, self.grpo_config["temperature"])
            out = sampler.generate(prompts, self.grpo_config["maxCompletionLength"], self.tokenizer.eos_token_id)
        sampled = time.perf_counter()
        decoded = self.tokenizer.batch_decode(out)
        rewards = [self.rewards(asked[i // group]["problem"]["question"], text) for i, text in enumerate(decoded)]
        self.update(prompts, out, advantages(rewards, group).tolist())
        end = time.perf_counter()
        return {"seconds": end - start, "tokens": sum(map(len, out)), "samplingSeconds": sampled - start}

    def update(self, prompts: list, completions: list, weights: list[float]) -> None:
        """One AdamW step on the token mean of -A ratio, clipped."""
        config = self.grpo_config
        denominator = sum(map(len, completions))
        rows = [row for row in range(len(prompts)) if weights[row] != 0]
        rows.sort(key=lambda row: len(prompts[row]) + len(completions[row]))
        for at in range(0, len(rows), TRAIN_ROWS):
            batch = rows[at : at + TRAIN_ROWS]
            sequences = [prompts[row] + completions[row] for row in batch]
            width = max(map(len, sequences))
            ids = torch.tensor([s + [0] * (width - len(s)) for s in sequences])
            # Where completion tokens are predicted from, as places in the flat [rows x width].
            places, targets, signs = [], [], []
            for i, row in enumerate(batch):
                first, n = len(prompts[row]), len(completions[row])
                places.extend(range(i * width + first - 1, i * width + first - 1 + n))
                targets.extend(completions[row])
                signs.extend([weights[row]] * n)
            hidden = self.policy.forward(ids)
            picked = hidden.view(-1, hidden.shape[-1])[torch.tensor(places)]
            logits = F.linear(picked, self.policy.head) / config["temperature"]
            logp = -F.cross_entropy(logits, torch.tensor(targets), reduction="none")
            sign = torch.tensor(signs)
            ratio = (logp - logp.detach()).exp()
            low, high = 1 - config["epsilon"], 1 + config["epsilon"]
            loss = -torch.min(ratio * sign, ratio.clamp(low, high) * sign).sum() / denominator
            loss.backward()
        torch.nn.utils.clip_grad_norm_(self.policy.parameters(), config["maxGradNorm"])
        self.optimizer.step()
        self.optimizer.zero_grad()
