#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A stand-in for gradring on a machine with two GPUs: answers what scripts/gpu_check.sh asks, at once and without computing.
#
# FAULT names what it does wrong; with FAULT=hang its process ID is written to the file HUNG.
# FAULT also plants, in the JSON of `bench kernels`, a library that is wrong (wrong_peer), or nothing but a library (no_variant).
# With --simulate-gpu its GPUs are simulated, unless FAULT=real_gpu.
# VALIDATE names the real program, which then has to accept each command line.
set -euo pipefail

# option NAME DEFAULT: the value of an option in `words`.
option() {
  local i
  for i in "${!words[@]}"; do
    if [[ ${words[i]} == "$1" ]]; then echo "${words[i + 1]}"; return; fi
  done
  echo "$2"
}

# On the CPU, whatever GPU is asked for or simulated, and without much memory; --variant is checked last of all.
validate() {
  local line=("${words[@]/#cuda*/cpu}") said
  line=("${line[@]/#h100/none}")
  line=("${line[@]/#elements=16777216/elements=64}")
  case ${words[0]} in
    bench)
      said=$("$VALIDATE" "${line[@]}" --variant none-such 2>&1) || true
      [[ $said == *"--variant names 'none-such'"* ]] || { echo "refused: ${words[*]}: $said" >&2; exit 2; }
      ;;
    train) "$VALIDATE" "${line[@]}" --print-config >/dev/null ;;
    launch) "$VALIDATE" "${line[@]}" --print-config </dev/null >/dev/null ;;
    *) "$VALIDATE" "${line[@]}" >/dev/null ;;
  esac
}

# simulates: whether its GPUs are simulated.
simulates() { [[ $(option --simulate-gpu none) != none && ${FAULT-} != real_gpu ]]; }

doctor() {
  echo "LD_LIBRARY_PATH=${LD_LIBRARY_PATH-}"
  local device="cuda:0: NVIDIA H100 80GB HBM3"
  ! simulates || device="cuda:0: simulated NVIDIA H100 80GB HBM3"
  [[ ${FAULT-} != no_device ]] || device="cpu: AMD EPYC"
  printf '{\n  "Found": {\n    "cuDNN": {\n      "found": "9.19.0"\n    },\n    "NCCL": {\n      "found": "2.28.9"\n    }\n  },\n'
  printf '  "Used": {\n    "device": {\n      "found": "%s"\n    }\n  }\n}\n' "$device"
}

# result KIND RIGHT: as `bench kernels` writes it.
result() { printf '    {\n      "kind": "%s",\n      "name": "flat",\n      "right": %s\n    }' "$1" "$2"; }

bench() {
  local json right=true peer=true
  json=$(option -J /dev/null)
  echo "  flat  0.10  12.5"
  case ${FAULT-} in
    no_json) return ;;
    wrong_kernel) right=false ;;
    wrong_peer) peer=false ;;
    bench_fails) echo "gradring bench: an illegal memory access was encountered" >&2; return 1 ;;
  esac
  {
    printf '{\n  "variants": [\n'
    if [[ ${FAULT-} != no_variant ]]; then
      result variant true
      printf ',\n'
      result variant "$right"
      printf ',\n'
    fi
    result peer "$peer"
    printf '\n  ]\n}\n'
  } >"$json"
}

# trace FILE: as `train --trace` writes it.
trace() {
  local graph=3
  case ${FAULT-} in
    no_cupti) echo "--trace: the trace has no GPU activities: libcupti.so.13: cannot open shared object file"; return ;;
    no_kernels) return ;;
    no_graph_kernels) graph=0 ;;
    dropped_activities) echo '{"ph":"X","cat":"note","name":"7 GPU activities were dropped"},' >>"$1" ;;
  esac
  echo "{\"ph\":\"X\",\"cat\":\"kernel\",\"args\":{\"blocks\":1,\"graph\":$graph}}" >>"$1"
}

train() {
  local run device steps epochs step loss accuracy=0.981 key
  run=$(option --run-dir "") device=$(option --device cpu) steps=$(option --steps 0) epochs=$(option --epochs 0)
  ((steps)) || steps=$((4 * epochs))
  case ${FAULT-} in
    hang)
      echo $$ >"${HUNG:-/dev/null}"
      exec sleep 60
      ;;
    train_fails) echo "gradring train: out of memory on cuda:0" >&2; return 3 ;;
    low_accuracy) [[ $device == cpu ]] || accuracy=0.113 ;;
    other_accuracy) [[ $device == cpu ]] || accuracy=0.988 ;;
  esac
  case $(option --inject "") in
    kill:*)
      [[ ${FAULT-} != survives_kill ]] || return 0
      echo "gradring launch: rank 1 of 2 (pid 7 on host) was killed by signal 9 (SIGKILL), the first to fail" >&2
      return 137
      ;;
    stop:*)
      [[ ${FAULT-} != blames_itself ]] || { echo "gradring launch: rank 0 of 2 exited with code 162" >&2; return 162; }
      echo "gradring launch: rank 0 of 2 exited with code 162: rank 0 waited 10.0 s for rank 1 in all_reduce 41" >&2
      return 162
      ;;
  esac
  # What the weights depend on, and what they must not depend on.
  key="$(option --precision fp16) $steps $(option --global-batch "")"
  case ${FAULT-} in
    resume_changes_weights) key+=$(option --resume "") ;;
    graph_changes_weights) key+=$(option --cuda-graph "") ;;
    ranks_change_weights) key+=$(option --nproc-per-node "") ;;
    runs_differ) [[ "${words[*]}" != *--reproducible* ]] || key+=$run ;;
  esac
  mkdir -p "$run"
  trace "$(option --trace /dev/null)"
  for ((step = 1; step <= steps; ++step)); do
    loss=2.3e+0
    if [[ $device != cpu ]]; then
      [[ ${FAULT-} != other_losses ]] || loss=2.301
      [[ ${FAULT-} != nan_loss || $step != 3 ]] || loss=null
    fi
    echo "{\"event\":\"train\",\"step\":$step,\"epoch\":$(((step - 1) / 4 + 1)),\"loss\":$loss,\"lr\":0.001,\"seconds\":0.25,\"data_wait\":0}"
  done >"$run/metrics.jsonl"
  ! simulates || echo '{"event":"run","device":"simulated NVIDIA H100 80GB HBM3"}' >>"$run/metrics.jsonl"
  [[ ${FAULT-} != no_summary ]] || return 0
  [[ $device != cuda* || ${FAULT-} == runs_on_cpu ]] || device=${device%:*}:0
  [[ ${FAULT-} != runs_on_cpu ]] || device=cpu
  {
    printf '{\n  "outcome": "finished",\n  "accuracy": %s,\n  "loss": 0.1,\n  "train_loss": 0.2,\n  "steps": %d,\n' "$accuracy" "$steps"
    printf '  "seconds": 1.5,\n  "samples_per_second": 100.0,\n  "device": "%s",\n' "$device"
    [[ ${FAULT-} == no_hash ]] || printf '  "parameters_sha256": "%s",\n' "$(sha256sum <<<"$key" | cut -c 1-64)"
    printf '  "memory": {\n    "total": {\n      "planned_bytes": 104857600\n    }\n  }\n}\n'
  } >"$run/summary.json"
}

words=("$@")
[[ -z ${VALIDATE-} ]] || validate
case $1 in
  version) echo "gradring 0.1.0 (commit 01234567)" ;;
  doctor | bench | train) "$1" ;;
  launch) train ;;
  *) exit 2 ;;
esac
