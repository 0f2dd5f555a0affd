"""Checks that folders written by the TypeScript library load in transformers, peft and safetensors.

    python check_export.py FOLDER

FOLDER holds model folders `qwen3-tied`, `qwen3-untied`, `llama-tied` and `llama-untied` (config.json,
model.safetensors, adapter/, expected.json with token ids and the logits computed in TypeScript) and `numbers` (the same
tensor as F32, F16 and BF16). Exits non-zero on the first difference. test/model/checkpoint.test.ts runs it where
GOLDEN_PYTHON names a Python with those packages.
"""
import json
import sys
from pathlib import Path

import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


def main(folder: Path) -> None:
    for name in (f"{family}-{head}" for family in ("qwen3", "llama") for head in ("tied", "untied")):
        expected = json.loads((folder / name / "expected.json").read_text())
        model, info = AutoModelForCausalLM.from_pretrained(
            folder / name, dtype=torch.float32, attn_implementation="eager", output_loading_info=True
        )
        assert not any(info[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys")), info
        assert model.config.model_type == name.split("-")[0], name
        model.eval()
        ids = torch.tensor(expected["ids"])
        with torch.no_grad():
            plain = model(input_ids=ids).logits
            adapted = PeftModel.from_pretrained(model, folder / name / "adapter").eval()(input_ids=ids).logits
        for what, found, want in (("model", plain, "logits"), ("adapter", adapted, "adapterLogits")):
            worst = (found - torch.tensor(expected[want])).abs().max().item()
            assert worst < 1e-4, f"{name}: {what} logits differ by {worst}"
            print(f"{name}: {what} logits differ by at most {worst:.1e}")
        assert (plain - adapted).abs().max() > 1e-2, "the adapter does nothing"
    full = load_file(folder / "numbers" / "F32.safetensors")["x"]
    for name, dtype in (("F16", torch.float16), ("BF16", torch.bfloat16)):
        half = load_file(folder / "numbers" / f"{name}.safetensors")["x"]
        assert half.dtype == dtype and torch.equal(half, full.to(dtype)), name
        print(f"{name}: rounded as torch rounds")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
