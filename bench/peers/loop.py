"""The honest rival: GRPO on a Qwen3 model in plain PyTorch, written for speed on a CPU.

Sampling: the adapter merged, q/k/v and gate/up in one product each, a preallocated key-value cache, each distinct
prompt read once and its cache repeated, scaled-dot-product attention, one token tensor per step and nothing per
row in Python. Training: LoRA beside frozen weights, rows without an advantage skipped, like lengths together,
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
TRAIN_ROWS = 24
# Finished rows leave the batch when they are at least this share of it; the fastest of never, 1/2, 1/4 and 1/8.
COMPACT_SHARE = 0.25
MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


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

    def merged(self) -> list[dict[str, torch.Tensor]]:
        """Each layer's weights with the adapter added, products of the same input joined."""
        out = []
        for layer, A, B in zip(self.base, self.A, self.B, strict=True):
            w = {m: torch.addmm(layer[m], B[m], A[m], alpha=self.scale) for m in MODULES}
            out.append(
                {
                    **layer,
                    "qkv": torch.cat([w["q_proj"], w["k_proj"], w["v_proj"]]),
                    "gate_up": torch.cat([w["gate_proj"], w["up_proj"]]),
                    "o_proj": w["o_proj"],
                    "down_proj": w["down_proj"],
                }
            )
        return out

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Normalised hidden states [R, T, d]. Padding is on the right, where no real token looks."""
        c = self.config
        R, T = ids.shape
        cos, sin = self.cos[:T], self.sin[:T]
        x = self.embedding[ids]
        for layer, A, B in zip(self.base, self.A, self.B, strict=True):

            def linear(x, name, layer=layer, A=A, B=B):
                return F.linear(x, layer[name]) + F.linear(F.linear(x, A[name]), B[name] * self.scale)

            normed = rms(x, layer["input_layernorm"], c.eps)
            q = rms(linear(normed, "q_proj").view(R, T, c.heads, c.head_dim), layer["q_norm"], c.eps)
            k = rms(linear(normed, "k_proj").view(R, T, c.kv_heads, c.head_dim), layer["k_norm"], c.eps)
            v = linear(normed, "v_proj").view(R, T, c.kv_heads, c.head_dim)
            q, k = rotate(q.transpose(1, 2), cos, sin), rotate(k.transpose(1, 2), cos, sin)
            mixed = F.scaled_dot_product_attention(q, k, v.transpose(1, 2), is_causal=True, enable_gqa=True)
            x = x + linear(mixed.transpose(1, 2).reshape(R, T, -1), "o_proj")
            normed = rms(x, layer["post_attention_layernorm"], c.eps)
            x = x + linear(F.silu(linear(normed, "gate_proj")) * linear(normed, "up_proj"), "down_proj")
        return rms(x, self.norm, c.eps)


def kaiming(rows: int, columns: int) -> torch.Tensor:
    bound = 1 / math.sqrt(columns)
    return torch.empty(rows, columns).uniform_(-bound, bound).requires_grad_()


def rms(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return F.rms_norm(x, (x.shape[-1],), weight, eps)


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """The sine's first half carries the minus sign of rotate-half."""
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin


class Sampler:
    """Merged weights and the cache [layers, rows, kv heads, length, head size] of one batch."""

    def __init__(self, policy: Policy, temperature: float):
        self.policy, self.config, self.temperature = policy, policy.config, temperature
        self.layers = policy.merged()

    def step(self, ids: torch.Tensor, start: int, mask: torch.Tensor | None) -> torch.Tensor:
        """Ids [R, T] at cache places from `start`; logits [R, V] after the last."""
        c, policy = self.config, self.policy
        R, T = ids.shape
        cos, sin = policy.cos[self.positions], policy.sin[self.positions]
        if self.positions.dim() == 2:  # [R, T, hd] -> [R, 1, T, hd]
            cos, sin = cos[:, None], sin[:, None]
        split = [c.heads * c.head_dim, c.kv_heads * c.head_dim, c.kv_heads * c.head_dim]
        x = policy.embedding[ids]
        for i, w in enumerate(self.layers):
            qkv = F.linear(rms(x, w["input_layernorm"], c.eps), w["qkv"])
            q, k, v = qkv.split(split, -1)
            q = rms(q.view(R, T, c.heads, c.head_dim), w["q_norm"], c.eps).transpose(1, 2)
            k = rms(k.view(R, T, c.kv_heads, c.head_dim), w["k_norm"], c.eps).transpose(1, 2)
            self.keys[i][:, :, start : start + T] = rotate(k, cos, sin)
            self.values[i][:, :, start : start + T] = v.view(R, T, c.kv_heads, c.head_dim).transpose(1, 2)
            q = rotate(q, cos, sin)
            keys, values = self.keys[i][:, :, : start + T], self.values[i][:, :, : start + T]
            if T == 1:
                # The query heads of one key head as the rows of one query matrix: no key is repeated.
                q = q.reshape(R, c.kv_heads, c.heads // c.kv_heads, c.head_dim)
                mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
                mixed = mixed.reshape(R, 1, c.heads * c.head_dim)
            else:
                mixed = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, is_causal=mask is None, enable_gqa=True)
                mixed = mixed.transpose(1, 2).reshape(R, T, c.heads * c.head_dim)
            x = x + F.linear(mixed, w["o_proj"])
            gate, up = F.linear(rms(x, w["post_attention_layernorm"], c.eps), w["gate_up"]).chunk(2, -1)
            x = x + F.linear(F.silu(gate) * up, w["down_proj"])
        return F.linear(rms(x[:, -1], policy.norm, c.eps), policy.head)

    def draw(self, logits: torch.Tensor) -> torch.Tensor:
        """One id per row: the largest of p / exponential noise is a draw from p."""
        p = torch.softmax(logits / self.temperature, -1)
        return p.div_(torch.empty_like(p).exponential_()).argmax(-1)

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
        seen = places[None] >= pad[:, None] if padded else None
        R = len(distinct)
        self.keys = [torch.empty(R, c.kv_heads, width, c.head_dim) for _ in range(c.layers)]
        self.values = [torch.empty_like(k) for k in self.keys]
        self.positions = (places[:width][None] - pad[:, None]).clamp(min=0) if padded else places[:width]
        causal = places[None, :width] <= places[:width, None]
        mask = (causal[None] & seen[:, None, :width])[:, None] if padded else None
        logits = self.step(ids, 0, mask)

        R = len(prompts)
        for cache in (self.keys, self.values):
            for i, block in enumerate(cache):
                cache[i] = torch.empty(R, c.kv_heads, width + new_tokens, c.head_dim)
                cache[i][:, :, :width] = block.repeat_interleave(counts, 0)
        last = self.draw(logits.repeat_interleave(counts, 0))
        pad = pad.repeat_interleave(counts)
        seen = seen.repeat_interleave(counts, 0) if padded else None
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
                    rows, last, pad, done = rows[kept], last[kept], pad[kept], done[kept]
                    seen = seen[kept] if padded else None
                    for cache in (self.keys, self.values):
                        for i, block in enumerate(cache):
                            cache[i] = block[kept]
            place = width + t - 1
            self.positions = (place - pad)[:, None] if padded else torch.tensor([place])
            mask = seen[:, None, None, : place + 1] if padded else None
            last = self.draw(self.step(last[:, None], place, mask))
            tokens[rows, t] = last if done is None else torch.where(done, -1, last)
            if done is not None:
                done |= last == eos
        return [[token for token in row if token >= 0] for row in tokens.tolist()]


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
