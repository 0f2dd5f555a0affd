"""Makes the goldens of test/model: what transformers and peft compute, for the TypeScript model to match.

    python make_model_golden.py                      the small random models beside this file
    python make_model_golden.py --arena data/base    logits of a trained model folder -> arena-model.json

Needs torch, transformers, peft, safetensors, numpy. No network: models are built from a config, seeds are fixed.
Each golden is a Hugging Face folder, and golden.json with token ids, attention masks, logits (float32) and the tokens
that greedy decoding goes on with.
"""
import argparse
import json
import shutil
from pathlib import Path

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, LlamaConfig, PretrainedConfig, Qwen3Config

HERE = Path(__file__).resolve().parent
SMALL = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48,
    vocab_size=40, max_position_embeddings=64, bos_token_id=None, eos_token_id=1, pad_token_id=0,
)
GREEDY_TOKENS = 16
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def batches(vocab: int) -> list[dict]:
    """Two batches of the same three sequences, padded left and right."""
    generator = torch.Generator().manual_seed(7)
    rows = [torch.randint(0, vocab, (n,), generator=generator).tolist() for n in (9, 4, 7)]
    width = max(map(len, rows))
    out = []
    for side in ("left", "right"):
        ids, mask = [], []
        for row in rows:
            pad = width - len(row)
            ids.append([0] * pad + row if side == "left" else row + [0] * pad)
            mask.append([0] * pad + [1] * len(row) if side == "left" else [1] * len(row) + [0] * pad)
        out.append({"side": side, "ids": ids, "mask": mask})
    return out


@torch.no_grad()
def logits(model, ids: list[list[int]], mask: list[list[int]]) -> list:
    """Logits at the real tokens of each row, from the row alone without padding: what every batch must give."""
    out = []
    for row, seen in zip(ids, mask):
        real = torch.tensor([[i for i, m in zip(row, seen) if m]])
        out.append([[round(v, 7) for v in token] for token in model(input_ids=real).logits[0].float().tolist()])
    return out


@torch.no_grad()
def check_padding(model, batch: dict, expected: list) -> None:
    """transformers itself gives the same numbers for the padded batch (position ids from the mask)."""
    ids, mask = torch.tensor(batch["ids"]), torch.tensor(batch["mask"])
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    padded = model(input_ids=ids, attention_mask=mask, position_ids=positions).logits
    for row, seen, want in zip(padded, mask, expected):
        assert torch.allclose(row[seen.bool()], torch.tensor(want), atol=1e-5)


@torch.no_grad()
def greedy(model, ids: list[list[int]], mask: list[list[int]]) -> list:
    """The tokens of highest logit after each row, each from a full pass without a cache; none is an end."""
    out = []
    for row, seen in zip(ids, mask):
        tokens = [i for i, m in zip(row, seen) if m]
        for _ in range(GREEDY_TOKENS):
            best = model(input_ids=torch.tensor([tokens])).logits[0, -1].topk(2)
            assert best.values[0] - best.values[1] > 2e-4, "too close to call"
            tokens.append(best.indices[0].item())
        out.append(tokens[-GREEDY_TOKENS:])
    return out


def randomise(model, std: float) -> None:
    """Weights large enough that attention and norms matter; norms away from one."""
    generator = torch.Generator().manual_seed(3)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data = 1 + 0.3 * noise if "norm" in name else std * noise


def make(folder: Path, config: PretrainedConfig, dtype: torch.dtype, shard: str | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(config)
    randomise(model, 0.25)
    model = model.to(dtype)
    model.save_pretrained(folder, **({"max_shard_size": shard} if shard else {}))
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    golden = []
    for batch in batches(config.vocab_size):
        expected = logits(model, batch["ids"], batch["mask"])
        check_padding(model, batch, expected)
        golden.append({**batch, "logits": expected})
    result = {"batches": golden, "parameters": sum(p.numel() for p in model.parameters())}
    if config.model_type == "llama":
        result["greedy"] = greedy(model, golden[0]["ids"], golden[0]["mask"])
    if config.tie_word_embeddings:
        lora = LoraConfig(r=4, lora_alpha=8, target_modules=TARGETS, lora_dropout=0.0, task_type="CAUSAL_LM")
        adapted = get_peft_model(model, lora).eval()
        generator = torch.Generator().manual_seed(5)
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.data = 0.1 * torch.randn(parameter.shape, generator=generator)
        adapted.save_pretrained(folder / "adapter")
        first = golden[0]
        result["adapterLogits"] = logits(adapted, first["ids"], first["mask"])
        # Round trip: peft's own files give peft's own numbers on a fresh base.
        base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
        again = PeftModel.from_pretrained(base, folder / "adapter").eval()
        assert logits(again, first["ids"], first["mask"]) == result["adapterLogits"]
        (folder / "adapter" / "README.md").unlink(missing_ok=True)
        config_file = folder / "adapter" / "adapter_config.json"
        adapter_config = json.loads(config_file.read_text())
        adapter_config["base_model_name_or_path"] = folder.name
        config_file.write_text(json.dumps(adapter_config, indent=2) + "\n")
    (folder / "golden.json").write_text(json.dumps(result) + "\n")


def arena(model_folder: Path, out: Path) -> None:
    """Logits of a trained folder for a few fixed token sequences."""
    model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32, attn_implementation="eager").eval()
    golden = []
    for batch in batches(model.config.vocab_size):
        expected = logits(model, batch["ids"], batch["mask"])
        check_padding(model, batch, expected)
        golden.append({**batch, "logits": expected})
    out.write_text(json.dumps({"batches": golden, "parameters": model.num_parameters()}) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arena", type=Path, help="a trained model folder")
    parser.add_argument("--out", type=Path, default=HERE / "arena-model.json")
    options = parser.parse_args()
    if options.arena:
        arena(options.arena, options.out)
    else:
        near, far = {"rope_theta": 10000.0}, {"rope_theta": 1e6}
        tied = Qwen3Config(**SMALL, head_dim=16, rope_parameters=near, tie_word_embeddings=True)
        make(HERE / "qwen3-tied", tied, dtype=torch.float32, shard=None)
        untied = Qwen3Config(**SMALL, head_dim=16, rope_parameters=far, tie_word_embeddings=False)
        make(HERE / "qwen3-untied-bf16", untied, dtype=torch.bfloat16, shard="20KB")
        # Four heads of 16 are not the hidden size; of 8, which is what the family takes by itself, they are.
        tied = LlamaConfig(**SMALL, head_dim=16, rope_parameters=near, tie_word_embeddings=True)
        make(HERE / "llama-tied", tied, dtype=torch.float32, shard=None)
        untied = LlamaConfig(**SMALL, rope_parameters=far, tie_word_embeddings=False)
        make(HERE / "llama-untied", untied, dtype=torch.float32, shard=None)
