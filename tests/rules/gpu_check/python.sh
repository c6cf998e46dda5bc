#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A stand-in for a python3 with PyTorch. FAULT as in program.sh.
set -euo pipefail
case "$*" in
  *"import torch"*) [[ ${FAULT-} != no_torch ]] ;;
  *pytorch_gpu.py*--json*)
    [[ -f $1 && -f ${1%/*}/pytorch_training.py ]] # which the first imports
    for variant in eager graph; do echo "$variant {'seconds': 0.5, 'least': 0.4, 'loss': 0.1}"; done
    [[ ${FAULT-} == no_json ]] || echo '{}' >"${*: -1}"
    ;;
esac
