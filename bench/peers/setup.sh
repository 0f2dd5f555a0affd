#!/usr/bin/env bash
# Makes a virtual environment with the pinned peers, apart from every other Python of the machine.
#
#   bench/peers/setup.sh [folder]      default: .bench-venv at the repository's root
#
# Needs Python 3.10 or later (PYTHON=... names one) and about 1.5 GB of disk; the CPU build of PyTorch is taken where
# there is one. The folder appears only when it is complete. Undo: remove the folder.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="${1:-$here/../../.bench-venv}"
python="${PYTHON:-python3}"

if [ -x "$venv/bin/python" ]; then
  echo "$venv is there already; remove it to make it anew"
  exit 0
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
  echo "the peers need Python 3.10 or later; $("$python" --version) is $(command -v "$python"). PYTHON=... names another" >&2
  exit 1
}
trap 'rm -rf "$venv"' ERR INT TERM
"$python" -m venv "$venv.tmp" && rm -rf "$venv.tmp" # says early when the venv module is missing
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  --extra-index-url https://download.pytorch.org/whl/cpu -r "$here/requirements.txt"
"$venv/bin/python" -c 'import torch, transformers, trl, peft; print("torch", torch.__version__, "transformers", transformers.__version__, "trl", trl.__version__, "peft", peft.__version__)'
echo "the peers are in $venv"
