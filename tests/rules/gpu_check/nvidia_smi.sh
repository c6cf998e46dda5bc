#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A stand-in for nvidia-smi: $GPUS GPUs (default 2), of which -i names some by their UUIDs. A training begins on GPU
# $TRAINS_ON (default 0) after the first query. FAULT as in program.sh.
set -euo pipefail
wanted=""
if [[ $1 == -i ]]; then wanted=,$2,; shift 2; fi

# Whether this query has been made before, in this run of gpu_check.sh.
before() { ! mkdir "$GPU_CHECK_WORK/asked_$1" 2>/dev/null; }
training=0
[[ "$*" != *--query-compute-apps* ]] || ! before processes || training=1

for ((gpu = 0; gpu < ${GPUS:-2}; ++gpu)); do
  [[ -z $wanted || $wanted == *,GPU-$gpu,* ]] || continue
  case "$*" in
    -L) echo "GPU $gpu: NVIDIA H100 (UUID: GPU-$gpu)" ;;
    *--query-gpu=index*) echo "$gpu, NVIDIA H100, 580.10, 81559 MiB" ;;
    *--query-gpu=uuid*) echo "GPU-$gpu" ;;
    *--query-gpu=memory.used*)
      if ((gpu != ${TRAINS_ON:-0})) || ! before memory; then
        echo 4
      elif [[ ${FAULT-} == much_memory ]]; then
        echo 4000
      else
        echo 700
      fi
      ;;
    *--query-compute-apps*)
      if [[ ${FAULT-} == no_processes ]]; then exit; fi
      echo "GPU-$gpu, 17"
      ((training)) || continue
      echo "GPU-$gpu, $((100 + gpu))"
      if [[ ${FAULT-} == second_context && $gpu == 0 ]]; then echo "GPU-0, 101"; fi
      ;;
    *) exit 2 ;;
  esac
done
