#!/usr/bin/env bash
# Makes a virtual environment with the pinned peers, apart from every other Python of the machine.
#
#   bench/peers/setup.sh [folder]      default: .bench-venv at the repository's root
#
# Needs Python 3.10 or later (PYTHON=... names one) and about 1.5 GB of disk; the CPU build of PyTorch is taken where
# there is one. The file `ready` in the folder says that it is complete; what was broken off goes on where it was.
# Undo: remove the folder.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
venv="${1:-$here/../../.bench-venv}"
python="${PYTHON:-python3}"

if [ -e "$venv/ready" ]; then
  echo "$venv is complete already; remove it to make it anew"
  exit 0
fi
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
  echo "the peers need Python 3.10 or later, and $python is $("$python" --version); PYTHON=... names another" >&2
  exit 1
}
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
# PyTorch's own index first: on Linux the package index serves the build with CUDA, several gigabytes.
torch="$(grep '^torch==' "$here/requirements.txt")"
"${install[@]}" --retries 0 --no-deps --extra-index-url https://download.pytorch.org/whl/cpu "$torch"
"${install[@]}" -r "$here/requirements.txt"
"$venv/bin/python" -c '
import peft, torch, transformers, trl
for package in torch, transformers, peft, trl:
    print(package.__name__, package.__version__)
'
touch "$venv/ready"
echo "the peers are in $venv"
