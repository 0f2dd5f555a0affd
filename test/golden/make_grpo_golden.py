"""Makes grpo.json, the golden of test/grpo: what TRL, torch and transformers compute, for the TypeScript to match.

    python make_grpo_golden.py

Needs torch, transformers and trl with their dependencies; no network. Everything is float64 with fixed seeds.
The losses come out of TRL's own `GRPOTrainer._compute_loss`, called on a stand-in that holds its options and hands
it given log-probs; advantages repeat the few lines of `_generate_and_score_completions`, which cannot be called alone.
"""
import json
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import torch
import transformers
import trl
from transformers.generation.logits_process import TopPLogitsWarper
from trl.trainer.grpo_trainer import GRPOTrainer
from trl.trainer.utils import entropy_from_logits, nanstd, selective_log_softmax

OUT = Path(__file__).resolve().parent / "grpo.json"
MAX_COMPLETION_LENGTH = 8


def numbers(tensor: torch.Tensor) -> list:
    return [None if isinstance(x, float) and x != x else x for x in tensor.flatten().tolist()]


def sequences() -> dict:
    """Six completions of different lengths, far enough off policy that every clip happens."""
    generator = torch.Generator().manual_seed(11)
    lengths = [1, 3, 8, 5, 2, 7]
    rows, width = len(lengths), max(lengths)
    draw = lambda: torch.randn(rows, width, generator=generator, dtype=torch.float64)
    logps = -draw().abs() - 0.1
    old = logps + 0.4 * draw()
    ref = logps + 0.5 * draw()
    mask = torch.tensor([[int(t < n) for t in range(width)] for n in lengths])
    advantages = torch.tensor([1.2, -0.7, 0.4, -1.5, 0.0, 0.9], dtype=torch.float64)
    truncated = torch.tensor([False, False, True, False, True, False])
    return {"lengths": lengths, "logps": logps, "old": old, "ref": ref, "mask": mask, "advantages": advantages, "truncated": truncated}


def trl_loss(case: dict, loss_type: str, epsilon: float, epsilon_high: float, beta: float, mask_truncated: bool) -> dict:
    logps = case["logps"].clone().requires_grad_(True)
    mask = case["mask"] * (~case["truncated"])[:, None] if mask_truncated else case["mask"]
    accelerator = SimpleNamespace(num_processes=1, gather=lambda x: x, reduce=lambda x, reduction: x)
    stand_in = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (logps, torch.zeros_like(logps), None),
        accelerator=accelerator, args=SimpleNamespace(delta=None, use_bias_correction_kl=False, steps_per_generation=1),
        model=SimpleNamespace(training=True), _metrics={"train": defaultdict(list)},
        loss_type=loss_type, epsilon_low=epsilon, epsilon_high=epsilon_high, beta=beta,
        max_completion_length=MAX_COMPLETION_LENGTH, current_gradient_accumulation_steps=1,
        importance_sampling_level="token", top_entropy_quantile=1.0, off_policy_mask_threshold=None,
        use_vllm=False, aux_loss_enabled=False, _entropy_bonus_enabled=False,
    )
    one = torch.ones(len(case["lengths"]), 1, dtype=torch.long)
    inputs = {
        "prompt_ids": one, "prompt_mask": one, "completion_ids": torch.ones_like(case["mask"]), "completion_mask": mask,
        "advantages": case["advantages"], "old_per_token_logps": case["old"], "ref_per_token_logps": case["ref"],
        "num_items_in_batch": mask.sum(),
    }
    loss = GRPOTrainer._compute_loss(stand_in, None, inputs)
    loss.backward()
    metrics = {name: values[0] for name, values in stand_in._metrics["train"].items() if name in WANTED}
    return {
        "lossType": loss_type, "epsilon": epsilon, "epsilonHigh": epsilon_high, "beta": beta, "maskTruncated": mask_truncated,
        "loss": loss.item(), "dLogProbs": [row[:n].tolist() for row, n in zip(logps.grad, case["lengths"])], "metrics": metrics,
    }


WANTED = ("kl", "clip_ratio/low_mean", "clip_ratio/high_mean", "clip_ratio/region_mean")


def losses() -> dict:
    case = sequences()
    ragged = lambda name: [row[:n].tolist() for row, n in zip(case[name], case["lengths"])]
    cases = [
        trl_loss(case, loss_type, 0.2, high, beta, masked)
        for loss_type in ("grpo", "bnpo", "dr_grpo", "dapo")
        for high, beta in ((0.2, 0.0), (0.5, 0.04))
        for masked in (False, True)
    ]
    return {
        "maxCompletionLength": MAX_COMPLETION_LENGTH, "logProbs": ragged("logps"), "oldLogProbs": ragged("old"),
        "refLogProbs": ragged("ref"), "advantages": numbers(case["advantages"]), "truncated": case["truncated"].tolist(),
        "cases": cases,
    }


def advantages() -> list[dict]:
    """TRL's scale_rewards on groups of 4: mixed, equal, partly and wholly not applicable (NaN)."""
    nan = float("nan")
    groups = [[1, 1, 0, 0], [2.5, 0.5, 2.5, 0], [0.5, 0.5, 0.5, 0.5], [1, nan, 0.25, 3], [nan] * 4, [nan, nan, nan, 2]]
    rewards = torch.tensor(groups, dtype=torch.float64).flatten()
    out = []
    for scale in ("group", "batch", "none"):
        mean = torch.nanmean(rewards.view(-1, 4), dim=1).repeat_interleave(4)
        std = nanstd(rewards.view(-1, 4), dim=1).repeat_interleave(4)
        if scale == "batch":
            std = nanstd(rewards).expand_as(rewards)
        result = rewards - mean
        if scale != "none":
            result = result / (std + 1e-4)
        out.append({"scaleRewards": scale, "rewards": numbers(rewards), "advantages": numbers(torch.nan_to_num(result, nan=0.0))})
    return out


def adamw() -> dict:
    """20 steps of torch.optim.AdamW after clip_grad_norm_, at a rate that changes."""
    generator = torch.Generator().manual_seed(13)
    draw = lambda n, std: std * torch.randn(n, generator=generator, dtype=torch.float32)
    start = {"a": draw(5, 0.3), "b": draw(7, 0.3)}
    params = {name: torch.nn.Parameter(p.double()) for name, p in start.items()}
    optimizer = torch.optim.AdamW(params.values(), lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    steps = []
    for step in range(20):
        optimizer.param_groups[0]["lr"] = rate = 0.01 * (1 - step / 20)
        grads = {name: draw(p.numel(), 0.05 if step % 3 == 0 else 1.0) for name, p in params.items()}
        for name, p in params.items():
            p.grad = grads[name].double()
        norm = torch.nn.utils.clip_grad_norm_(params.values(), 1.0)
        optimizer.step()
        steps.append({
            "learningRate": rate, "gradNorm": norm.item(), "grads": {name: numbers(g) for name, g in grads.items()},
            "params": {name: numbers(p.detach()) for name, p in params.items()},
        })
    return {
        "start": {name: numbers(p) for name, p in start.items()}, "steps": steps,
        "options": {"adamBeta1": 0.9, "adamBeta2": 0.95, "adamEpsilon": 1e-8, "weightDecay": 0.1}, "maxGradNorm": 1.0,
    }


def schedules() -> list[dict]:
    """transformers' learning-rate factors at the steps 0 to 11."""
    out = []
    for name in ("constant_with_warmup", "linear", "cosine"):
        for warmup in (0, 4):
            optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
            scheduler = transformers.get_scheduler(name, optimizer, num_warmup_steps=warmup, num_training_steps=12)
            factors = []
            for _ in range(12):
                factors.append(scheduler.get_last_lr()[0])
                optimizer.step()
                scheduler.step()
            out.append({"lrSchedulerType": name.split("_")[0], "warmupSteps": warmup, "maxSteps": 12, "factors": factors})
    return out


def log_probs() -> dict:
    """TRL's selected log-probs and entropies at temperature 0.6, and the gradient of a weighted sum of the former."""
    generator = torch.Generator().manual_seed(17)
    logits = (3 * torch.randn(5, 9, generator=generator)).double().requires_grad_(True)
    targets = torch.tensor([0, 8, 3, 3, 5])
    weights = torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0], dtype=torch.float64)
    scaled = logits / 0.6
    selected = selective_log_softmax(scaled, targets)
    (selected * weights).sum().backward()
    return {
        "temperature": 0.6, "logits": logits.tolist(), "targets": targets.tolist(), "weights": weights.tolist(),
        "logProbs": selected.tolist(), "entropies": entropy_from_logits(scaled).tolist(), "dLogits": logits.grad.tolist(),
    }


def nuclei() -> list[dict]:
    """The tokens that transformers' top-p keeps."""
    generator = torch.Generator().manual_seed(19)
    out = []
    for top_p in (0.05, 0.5, 0.9, 0.95, 0.999):
        logits = 2 * torch.randn(1, 12, generator=generator)
        kept = TopPLogitsWarper(top_p)(None, logits.double())[0] > -float("inf")
        out.append({"topP": top_p, "logits": numbers(logits), "kept": kept.nonzero().flatten().tolist()})
    return out


if __name__ == "__main__":
    golden = {
        "versions": {"trl": trl.__version__, "torch": torch.__version__, "transformers": transformers.__version__},
        "losses": losses(), "advantages": advantages(), "adamw": adamw(), "schedules": schedules(),
        "logProbs": log_probs(), "nuclei": nuclei(),
    }
    OUT.write_text(json.dumps(golden, allow_nan=False) + "\n")
