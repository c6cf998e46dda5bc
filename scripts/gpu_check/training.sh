# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# For gpu_check.sh: trainings on one GPU: losses, accuracy, and the bits of the weights.

# train NAME OPTION...: a training in the run directory $work/NAME, once: a later check with the same name takes its results.
train() {
  local name=$1 run=$work/$1
  shift
  [[ ! -e $run.passed ]] || return 0
  [[ ! -e $run.begun ]] || fail "the training $name failed in an earlier check"
  touch "$run.begun"
  must "$program" train "${dataset[@]}" --batch-size "$batch" --progress plain --run-dir "$run" "$@"
  verify "$name" "$(device_of "$@")"
  mv "$run.begun" "$run.passed"
}

# launch NAME RANKS OPTION...: the same under the launcher.
launch() {
  local name=$1 ranks=$2
  shift 2
  must "$program" launch --nproc-per-node "$ranks" train "${dataset[@]}" --progress plain \
    --timeout "$patience" --run-dir "$work/$name" "$@"
  verify "$name" "$(device_of "$@")"
}

# device_of OPTION...: cpu or cuda, as --device says.
device_of() {
  while [[ $1 != --device ]]; do shift; done
  echo "${2%%:*}"
}

# verify NAME DEVICE: the run finished on this device, and every loss is a finite number.
verify() {
  local summary=$work/$1/summary.json device steps
  [[ -f $summary ]] || fail "the program ended with 0 and wrote no summary.json"
  device=$(value "$1" device)
  [[ $device == "\"$2"* ]] || fail "it ran on $device, expected $2"
  if [[ -n $simulated && $2 == cuda ]]; then
    grep -q '"device":"simulated ' "$work/$1/metrics.jsonl" || fail "metrics.jsonl does not say that the GPU was simulated"
  fi
  [[ $(value "$1" outcome) == '"finished"' ]] || fail "the outcome is $(value "$1" outcome), expected finished"
  steps=$(losses "$1" | wc -l)
  ((steps == $(number "$1" steps))) ||
    fail "metrics.jsonl has finite losses of $steps steps, expected $(value "$1" steps)"
  number "$1" loss >/dev/null
  number "$1" train_loss >/dev/null
}

# value NAME KEY: the last value of a key in a run's summary.json, with its quotation marks.
value() {
  local found
  found=$(sed -n "s/^ *\"$2\": \(.*[^,]\),\{0,1\}\$/\1/p" "$work/$1/summary.json" | tail -n 1)
  [[ -n $found ]] || fail "summary.json of $1 has no $2"
  echo "$found"
}

number() {
  local found
  found=$(value "$1" "$2")
  [[ $found =~ ^-?[0-9][0-9.e+-]*$ ]] || fail "$2 of $1 is $found, expected a finite number"
  echo "$found"
}

# losses NAME: the finite losses of its steps, one a line.
losses() { sed -nE 's/^\{"event":"train",.*"loss":(-?[0-9][0-9.e+-]*),.*/\1/p' "$work/$1/metrics.jsonl"; }

# sha256 NAME: of the final weights.
sha256() {
  local found
  found=$(value "$1" parameters_sha256)
  [[ $found =~ ^\"[0-9a-f]{64}\"$ ]] || fail "the hash of the weights of $1 is $found, expected 64 hexadecimal digits"
  echo "${found:1:16}"
}

# same_bits NAME NAME...: the final weights are the same.
same_bits() {
  local first other name
  first=$(sha256 "$1")
  for name in "${@:2}"; do
    other=$(sha256 "$name")
    [[ $other == "$first" ]] || fail "the weights differ: $1 $first, $name $other"
  done
}

# as_on_the_cpu NAME MOST OPTION...: trains on both; their losses may differ by MOST of them. Sets `most`, what they do.
as_on_the_cpu() {
  local name=$1 expected=$2
  shift 2
  train "${name}_gpu" "${on_gpu[@]}" --precision fp32 "$@"
  train "${name}_cpu" --device cpu --precision fp32 "$@"
  most=$(paste <(losses "${name}_gpu") <(losses "${name}_cpu") |
    awk '{ d = ($1 - $2) / $2; if (d < 0) d = -d; if (d > most) most = d } END { printf "%.1e", most }')
  awk -v d="$most" -v e="$expected" 'BEGIN { exit !(d <= e) }' ||
    fail "losses of $name differ by $most of them, expected at most $expected"
}

# Rounding in another order moves a loss by 1e-6 of it in 20 steps; TF32 or a wrong kernel by far more.
check_first_losses() {
  as_on_the_cpu first 1e-4 --steps 20
  passed "20 losses differ by at most $most of them"
}

# Batch normalization enlarges differences, and Adam those of gradients near 0.
check_models() {
  local model text=""
  for model in "${models[@]}"; do
    as_on_the_cpu "$model" 1e-3 --model "$model" --optimizer sgd --lr 1e-3 --steps 3
    text+="${text:+, }$model $most"
  done
  passed "3 losses differ by at most: $text"
}

# time_text TEXT: nothing on a simulated GPU, which has no times.
time_text() { [[ -n $simulated ]] || echo "$1"; }

# two_epochs NAME OPTION...: with the accuracy of a training that learned.
two_epochs() {
  train "$@" --epochs 2
  local accuracy
  accuracy=$(number "$1" accuracy)
  awk -v a="$accuracy" -v least="$least_accuracy" 'BEGIN { exit !(a >= least) }' ||
    fail "accuracy $accuracy, expected at least $least_accuracy"
  result="accuracy $accuracy, loss $(number "$1" loss)$(time_text ", $(number "$1" seconds) s")"
}

check_train_fp32() { two_epochs fp32 "${on_gpu[@]}" --precision fp32; passed "$result"; }
check_train_fp16() { two_epochs fp16 "${on_gpu[@]}" --precision fp16; passed "$result"; }
check_train_bf16() { two_epochs bf16 "${on_gpu[@]}" --precision bf16; passed "$result"; }
check_train_autotune() { two_epochs autotune "${on_gpu[@]}" --precision fp16 --autotune; passed "$result"; }

check_cpu_accuracy() {
  local precision cpu gpu text
  for precision in fp32 fp16 bf16; do two_epochs "$precision" "${on_gpu[@]}" --precision "$precision"; done
  two_epochs cpu --device cpu --precision fp32
  cpu=$(number cpu accuracy)
  text="CPU $cpu"
  for precision in fp32 fp16 bf16; do
    gpu=$(number "$precision" accuracy)
    text+=", $precision $gpu"
    awk -v d="$(awk -v a="$gpu" -v b="$cpu" 'BEGIN { print 100 * (a - b) }')" -v most="$most_points" \
      'BEGIN { exit !(d * d <= most * most) }' || fail "accuracies differ by more than $most_points points: $text"
  done
  passed "$text"
}

# One graph and the data set on the GPU; the same launched kernel by kernel; the same with batches from the host.
check_graph_bits() {
  local precision
  for precision in fp32 fp16; do
    train "graph_$precision" "${on_gpu[@]}" --precision "$precision" --steps "$steps"
    train "launched_$precision" "${on_gpu[@]}" --precision "$precision" --steps "$steps" --cuda-graph off
    train "loaded_$precision" "${on_gpu[@]}" --precision "$precision" --steps "$steps" --cuda-graph off --resident off
    same_bits "graph_$precision" "launched_$precision" "loaded_$precision"
  done
  passed "FP32 $(sha256 graph_fp32), FP16 $(sha256 graph_fp16)"
}

# Every slice of a trace is a line.
check_trace() {
  local file=$work/trace.json kernels in_graphs
  train traced "${on_gpu[@]}" --precision fp16 --steps 30 --trace "$file" --trace-steps 11:20
  ! grep -q 'the trace has no GPU activities' "$work/output" ||
    not_made "$(grep -o 'the trace has no GPU activities.*' "$work/output")"
  [[ -f $file ]] || fail "the program ended with 0 and wrote no trace"
  ! grep -q '"cat":"note"' "$file" || fail "a note: $(grep -m 1 '"cat":"note"' "$file")"
  kernels=$(grep -c '"cat":"kernel"' "$file") || fail "the trace has no kernel"
  in_graphs=$(grep '"cat":"kernel"' "$file" | grep -vc '"graph":0') || fail "none of $kernels kernels is in a CUDA graph"
  passed "$kernels kernels in 10 steps, $in_graphs of them in CUDA graphs"
}

check_window_bits() {
  local graph
  for graph in on off; do
    train "window_$graph" "${on_gpu[@]}" --precision fp32 --steps "$window_steps" --accumulate 3 --clip-norm 1 --schedule cosine \
      --cuda-graph "$graph"
  done
  same_bits window_on window_off
  passed "$(sha256 window_on)"
}

# What a graph or a plan keeps of full batches must not be used for the last one of an epoch. By SGD, as in check_models.
check_tail_bits() {
  local batch=$tail_batch settings=(--epochs 2 --optimizer sgd --lr 1e-2)
  as_on_the_cpu tail 1e-4 "${settings[@]}"
  train tail_launched "${on_gpu[@]}" --precision fp32 "${settings[@]}" --cuda-graph off
  same_bits tail_gpu tail_launched
  passed "batches of $batch, losses differ by at most $most of them, $(sha256 tail_gpu)"
}

check_resumed_bits() {
  local precision
  for precision in fp32 fp16; do
    train "straight_$precision" "${on_gpu[@]}" --precision "$precision" --steps "$steps"
    train "stopped_$precision" "${on_gpu[@]}" --precision "$precision" --steps $((steps / 2))
    cp -r "$work/stopped_$precision" "$work/resumed_$precision"
    train "resumed_$precision" "${on_gpu[@]}" --precision "$precision" --steps "$steps" --resume auto
    same_bits "straight_$precision" "resumed_$precision"
  done
  passed "FP32 $(sha256 resumed_fp32), FP16 $(sha256 resumed_fp16)"
}

check_reproducible_bits() {
  local precision
  for precision in fp32 fp16; do
    train "first_run_$precision" "${on_gpu[@]}" --precision "$precision" --steps "$steps" --reproducible
    train "second_run_$precision" "${on_gpu[@]}" --precision "$precision" --steps "$steps" --reproducible
    same_bits "first_run_$precision" "second_run_$precision"
  done
  passed "FP32 $(sha256 first_run_fp32), FP16 $(sha256 first_run_fp16)"
}
