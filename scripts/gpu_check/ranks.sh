# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# For gpu_check.sh: several ranks, and the memory that a training takes on GPU 0.

shared+=(--batch-size "$batch_of_rank")

check_shared_gpu() {
  local ranks
  for ranks in 2 4; do
    launch "shared_$ranks" "$ranks" --steps "$rank_steps" --check-replicas "$replica_steps" "${shared[@]}"
  done
  passed "2 ranks: loss $(number shared_2 loss); 4 ranks: loss $(number shared_4 loss)"
}

check_layout_bits() {
  local options=(--steps "$rank_steps" --global-batch $((2 * batch_of_rank)) --reproducible --precision fp32)
  launch layout_1 1 "${options[@]}" --batch-size "$batch_of_rank" "${on_first_gpu[@]}"
  launch layout_2 2 "${options[@]}" "${shared[@]}"
  same_bits layout_1 layout_2
  passed "$(sha256 layout_1)"
}

# Graphs that end without a join.
check_zero_bits() {
  local graph
  for graph in on off; do
    launch "zero_$graph" 2 --steps "$rank_steps" --zero 3 --accumulate 3 --cuda-graph "$graph" "${shared[@]}"
  done
  same_bits zero_on zero_off
  passed "$(sha256 zero_on)"
}

# injected FAULT CODE PATTERN: rank 1 of 2 has a fault; the launcher ends with this code and a message about rank 1.
injected() {
  run "$program" launch --nproc-per-node 2 train "${dataset[@]}" --steps "$fault_steps" "${shared[@]}" \
    --progress none --timeout "$fault_patience" --run-dir "$work/injected_$1" --inject "$1:rank=1,step=$fault_step"
  ((code == $2)) || fail "exit code $code, expected $2: $(last_message)"
  last_message | grep -q "$3" || fail "the last message is not about rank 1: $(last_message)"
  passed "$(last_message)"
}
check_lost_rank() { injected kill 137 'rank 1 of 2 .*was killed'; }
check_stopped_rank() { injected stop 162 'waited .* for rank 1'; }

gpu_0=${gpus%%,*}

# listed_gpus COUNT: the check is not made where the program sees fewer GPUs.
listed_gpus() {
  local count
  [[ -z $simulated ]] || return 0
  count=$(tr ',' '\n' <<<"$gpus" | grep -c . || true)
  ((count >= $1)) || not_made "needs $1 GPUs; of those that nvidia-smi lists, the program sees $count"
}

check_two_gpus() {
  listed_gpus 2
  launch two_gpus 2 --steps "$steps" --batch-size "$batch" --check-replicas "$replica_steps" "${on_gpu[@]}"
  passed "loss $(number two_gpus loss)$(time_text ", $(number two_gpus samples_per_second) samples a second")"
}

# while_training QUERY COMMAND...: runs the command and adds the output of QUERY to $work/samples until it has ended.
while_training() {
  local query=$1 training ended=0
  shift
  : >"$work/samples"
  ("$@") &
  training=$!
  while "$query" >>"$work/samples" && kill -0 "$training" 2>/dev/null; do sleep 0.1; done
  wait "$training" || ended=$?
  ((ended == 0)) || exit "$ended"
}

memory_of_gpu_0() { nvidia-smi -i "$gpu_0" --query-gpu=memory.used --format=csv,noheader,nounits; }

# A context with the modules of cuDNN and cuBLAS takes several hundred MiB besides what the plan counts.
check_memory() {
  local before peak planned beyond
  listed_gpus 1
  before=$(memory_of_gpu_0)
  [[ $before =~ ^[0-9]+$ ]] || not_made "nvidia-smi does not tell the memory in use: $before"
  while_training memory_of_gpu_0 train memory --device cuda --precision fp32 --batch-size 512 --epochs 3
  peak=$(sort -n "$work/samples" | tail -n 1)
  planned=$(($(number memory planned_bytes) / 1048576))
  ((peak > before)) || not_made "nvidia-smi shows $before MiB before the training and at most $peak MiB in it"
  beyond=$((peak - before - planned))
  result="$((peak - before)) MiB on GPU 0, $planned MiB planned"
  ((beyond <= 1536)) || fail "$result: $beyond MiB beyond, expected at most 1536"
  passed "$result"
}

processes_on_gpu_0() {
  echo sample
  nvidia-smi --query-compute-apps=gpu_uuid,pid --format=csv,noheader | grep -F "$gpu_0" | sort -u || true
}

# Each rank opens a context on its own GPU only.
check_contexts() {
  listed_gpus 2
  local before most
  before=$(processes_on_gpu_0 | grep -vc sample || true)
  while_training processes_on_gpu_0 launch contexts 2 --epochs 3 --batch-size 512 --device cuda
  most=$(awk '/^sample$/ { n = 0; next } { if (++n > most) most = n } END { print most + 0 }' "$work/samples")
  ((most > before)) || not_made "nvidia-smi lists no process of the training on GPU 0"
  ((most - before == 1)) || fail "$((most - before)) processes of the training have a context on GPU 0, expected 1"
  passed "one process has a context on GPU 0"
}
