"""What the peers share: reading a workload, the countdown reward, the rate of matrix products, AdamW's settings."""

import math
import time

import torch

OPERATORS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "x": lambda a, b: a * b}
LARGEST = 60


def is_number(word: str) -> bool:
    return word.isdecimal()


def use(left: list[int], operands: list[int]) -> list[int] | None:
    """The numbers that are left when the operands are taken away; None where one is not there."""
    rest = list(left)
    for operand in operands:
        if operand not in rest:
            return None
        rest.remove(operand)
    return rest


def verify(question: str, text: str) -> bool:
    """Countdown, as lib/tasks/countdown/verify.ts judges it."""
    words = question.split()
    left, target = [int(w) for w in words[1:5]], int(words[6])
    _, closed, rest = text.partition("</think>")
    if not closed:
        return False
    start, end = rest.rfind("<answer>"), rest.rfind("</answer>")
    if start < 0 or end < start:
        return False
    summary = rest[: rest.find("<answer>")].split()
    answer = rest[start + len("<answer>") : end].split()
    if summary.count("path") != 1:
        return False
    path = summary[summary.index("path") + 1 :]
    if len(path) != 11 or path[5] != "then" or len(answer) != 3:
        return False
    for a, op, b, equals, c in (path[:5], path[6:]):
        if not (is_number(a) and is_number(b) and is_number(c) and op in OPERATORS and equals == "="):
            return False
        result = OPERATORS[op](int(a), int(b))
        rest_of_numbers = use(left, [int(a), int(b)])
        if result != int(c) or not 1 <= result <= LARGEST or rest_of_numbers is None:
            return False
        left = [*rest_of_numbers, result]
    a, op, b = answer
    if not (is_number(a) and is_number(b) and op in OPERATORS):
        return False
    return OPERATORS[op](int(a), int(b)) == target and use(left, [int(a), int(b)]) == []


class Rewards:
    """2 for a right answer and 0.5 for one that is there; or, for a random model, in turn."""

    def __init__(self, workload: dict):
        self.alternate = workload["alternateRewards"]
        self.count = 0

    def __call__(self, question: str, text: str) -> float:
        self.count += 1
        if self.alternate:
            return 2.0 * (self.count % 2)
        return 2.0 * verify(question, text) + 0.5 * text.rstrip().endswith(("</answer>", "</answer> <|im_end|>"))


def advantages(rewards: list[float], group: int) -> torch.Tensor:
    """(r - mean) / (std + 1e-4) inside each group."""
    r = torch.tensor(rewards).view(-1, group)
    return ((r - r.mean(1, keepdim=True)) / (r.std(1, keepdim=True) + 1e-4)).view(-1)


def adamw(parameters, workload: dict) -> torch.optim.Optimizer:
    grpo = workload["run"]["grpo"]
    return torch.optim.AdamW(
        parameters,
        lr=grpo["learningRate"],
        betas=(grpo["adamBeta1"], grpo["adamBeta2"]),
        eps=grpo["adamEpsilon"],
        weight_decay=grpo["weightDecay"],
        foreach=True,
    )


def product_seconds(products: list[dict]) -> list[float]:
    """Seconds of one product of each shape, each measured for about 40 ms."""
    seconds = []
    for p in products:
        batch = [p["batch"]] if p["batch"] > 1 else []
        a, b = torch.randn(*batch, p["m"], p["k"]), torch.randn(*batch, p["k"], p["n"])
        out = a @ b
        repeats, elapsed = 1, 0.0
        while elapsed < 0.04:
            repeats = math.ceil(min(16, 0.048 / max(elapsed, 1e-5)) * repeats) if elapsed else 2
            start = time.perf_counter()
            for _ in range(repeats):
                torch.matmul(a, b, out=out)
            elapsed = time.perf_counter() - start
        seconds.append(elapsed / repeats)
    return seconds


class Peer:
    """Answers requests by the method of the same name."""

    versions: dict[str, str] = {}
    measures: list[str] = []

    def serve(self, stream, reply) -> None:
        for request in stream:
            reply(getattr(self, request.pop("ask"))(**request))

    def rates(self, products: list[dict]) -> dict:
        return {"seconds": product_seconds(products)}
