"""The Hugging Face peers: transformers.generate with a loop over peft, and TRL's GRPOTrainer with peft.

Both as their documentation shows them, with what helps on a CPU: no gradient checkpointing, float32, no logging,
no saving, right batch sizes. Left out: vLLM, which needs a GPU to be itself.
"""

import shutil
import tempfile
import time

import peft
import torch
import transformers
from common import Peer, Rewards, adamw
from transformers import AutoModelForCausalLM, AutoTokenizer

# Rows per forward and backward pass: the fastest of 12, 24, 48, 96 and 192 for transformers, of 16, 24, 48, 96 and 192
# for TRL, on the arena's base.
TRAIN_ROWS = 24
TRL_ROWS = 96


def lora_config(workload: dict) -> peft.LoraConfig:
    lora = workload["run"]["lora"]
    return peft.LoraConfig(
        r=lora["r"], lora_alpha=lora["alpha"], target_modules=lora["targetModules"], task_type="CAUSAL_LM"
    )


class TransformersPeer(Peer):
    measures = ["sample", "train"]
    versions = {"transformers": transformers.__version__, "peft": peft.__version__}

    def __init__(self, workload: dict):
        self.workload = workload
        base = workload["base"]
        self.model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32).eval()
        self.model.generation_config.eos_token_id = None  # every row gets all its tokens
        self.model.generation_config.pad_token_id = 0
        self.trained = peft.get_peft_model(
            AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), lora_config(workload)
        )
        self.optimizer = adamw([p for p in self.trained.parameters() if p.requires_grad], workload)

    @torch.inference_mode()
    def sample(self, rows: int, completion: int) -> dict:
        prompts = self.workload["prompts"][:rows]
        width = max(map(len, prompts))
        start = time.perf_counter()
        ids = torch.tensor([[0] * (width - len(p)) + p for p in prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        out = self.model.generate(
            input_ids=ids,
            attention_mask=mask,
            max_new_tokens=completion,
            do_sample=True,
            temperature=self.workload["run"]["grpo"]["temperature"],
            top_k=0,
            top_p=1.0,
        )
        seconds = time.perf_counter() - start
        assert out.shape == (rows, width + completion), out.shape
        return {"seconds": seconds, "tokens": rows * completion}

    def train(self, rows: int, completion: int) -> dict:
        start = time.perf_counter()
        prompts = self.workload["prompts"][:rows]
        temperature = self.workload["run"]["grpo"]["temperature"]
        tokens = 0
        self.trained.train()
        for at in range(0, rows, TRAIN_ROWS):
            batch = range(at, min(rows, at + TRAIN_ROWS))
            ids = [prompts[row] + self.workload["completions"][row][:completion] for row in batch]
            tokens += sum(map(len, ids))
            ids = torch.tensor(ids)  # the prompts of a workload are equally long
            sign = torch.tensor([1.0 if row % 2 == 0 else -1.0 for row in batch])[:, None]
            logits = self.trained(input_ids=ids, logits_to_keep=completion + 1).logits[:, :-1] / temperature
            logp = torch.gather(logits.log_softmax(-1), 2, ids[:, -completion:, None])[..., 0]
            ratio = (logp - logp.detach()).exp()
            loss = -torch.min(ratio * sign, ratio.clamp(0.8, 1.2) * sign).sum() / (rows * completion)
            loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained.parameters(), self.workload["run"]["grpo"]["maxGradNorm"])
        self.optimizer.step()
        self.optimizer.zero_grad()
        return {"seconds": time.perf_counter() - start, "tokens": tokens}


class Gate(transformers.TrainerCallback):
    """Holds the trainer between two steps until the next one is asked for, and times it."""

    def __init__(self, stream, reply):
        self.stream, self.reply = stream, reply
        self.started = 0.0
        self.tokens = 0

    def on_step_begin(self, args, state, control, **_):
        request = next(self.stream, None)
        if request is None:
            raise KeyboardInterrupt
        assert request == {"ask": "grpo", "step": state.global_step}, request
        self.tokens = 0
        self.started = time.perf_counter()

    def on_step_end(self, args, state, control, **_):
        self.reply({"seconds": time.perf_counter() - self.started, "tokens": self.tokens})


class TrlPeer(Peer):
    measures = ["grpo"]

    def __init__(self, workload: dict):
        import trl

        self.workload = workload
        self.versions = {
            "trl": trl.__version__,
            "transformers": transformers.__version__,
            "peft": peft.__version__,
        }

    def serve(self, stream, reply) -> None:
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer

        run = self.workload["run"]
        grpo = run["grpo"]
        group = 2 * grpo["numGenerations"]
        rollouts = run["problemsPerStep"] * group
        tokenizer = AutoTokenizer.from_pretrained(self.workload["base"])
        rewards = Rewards(self.workload)
        gate = Gate(stream, reply)

        def reward(completion_ids, question, **_) -> list[float]:
            gate.tokens += sum(map(len, completion_ids))
            return [rewards(q, tokenizer.decode(ids)) for q, ids in zip(question, completion_ids, strict=True)]

        rows = min(TRL_ROWS, rollouts)
        config = GRPOConfig(
            output_dir=tempfile.mkdtemp(prefix="agon-bench-trl-"),
            per_device_train_batch_size=rows,
            gradient_accumulation_steps=rollouts // rows,
            num_generations=group,
            max_completion_length=grpo["maxCompletionLength"],
            temperature=grpo["temperature"],
            top_k=0,
            beta=grpo["beta"],
            learning_rate=grpo["learningRate"],
            lr_scheduler_type="constant",
            adam_beta1=grpo["adamBeta1"],
            adam_beta2=grpo["adamBeta2"],
            max_grad_norm=grpo["maxGradNorm"],
            max_steps=run["maxSteps"],
            shuffle_dataset=False,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            dataloader_pin_memory=False,
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        rows_of_data = [
            {"prompt": asked["prompt"], "question": asked["problem"]["question"]}
            for asked in self.workload["problems"]
        ]
        trainer = GRPOTrainer(
            model=AutoModelForCausalLM.from_pretrained(self.workload["base"], dtype=torch.float32),
            reward_funcs=reward,
            args=config,
            train_dataset=Dataset.from_list(rows_of_data),
            processing_class=tokenizer,
            peft_config=lora_config(self.workload),
            callbacks=[gate],
        )
        shutil.rmtree(config.output_dir)  # nothing is saved
        trainer.train()
