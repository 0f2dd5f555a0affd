"""One peer of the bench as a process: requests as JSON lines on stdin, replies on file descriptor 3.

    serve.py transformers | trl | pytorch

What is asked and answered is described in lib/bench/protocol.ts. Left out: how the peers work (their own files).
"""

import json
import os
import sys
import traceback
import warnings


def main() -> None:
    name = sys.argv[1]
    warnings.filterwarnings("ignore")
    replies = os.fdopen(3, "w")

    def reply(value: dict) -> None:
        replies.write(json.dumps(value) + "\n")
        replies.flush()

    def requests():
        while line := sys.stdin.readline():
            yield json.loads(line)

    stream = requests()
    try:
        import torch

        workload = next(stream)["workload"]
        torch.set_num_threads(workload["threads"])
        torch.set_num_interop_threads(1)
        peer = {"transformers": transformers_peer, "trl": trl_peer, "pytorch": pytorch_peer}[name](workload)
        versions = {"python": sys.version.split()[0], "torch": torch.__version__, **peer.versions}
        device = f"CPU, {torch.get_num_threads()} threads (PyTorch {torch.__version__})"
        reply({"versions": versions, "device": device, "measures": peer.measures})
        peer.serve(stream, reply)
    except Exception:
        reply({"error": traceback.format_exc()})
        raise


def transformers_peer(workload: dict):
    from hugging_face import TransformersPeer

    return TransformersPeer(workload)


def trl_peer(workload: dict):
    from hugging_face import TrlPeer

    return TrlPeer(workload)


def pytorch_peer(workload: dict):
    from loop import LoopPeer

    return LoopPeer(workload)


if __name__ == "__main__":
    main()
