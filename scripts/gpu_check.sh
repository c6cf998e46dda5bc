#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Proves on a machine with a GPU what no other can: tests, kernels, training, and how fast all of it is.
#
# Usage: scripts/gpu_check.sh [--build-dir DIR] [--data-dir DIR] [--out DIR] [--quick]
#
#   --build-dir  a build made elsewhere (preset cuda or portable, with tests) instead of building here for this card
#   --data-dir   a folder with mnist/ in it; without it the made-up digits are trained on
#   --out        where logs, gpu_check.json and gpu_check.md go (default build/gpu_check)
#   --quick      checks without benchmarks
#
# Needs no network. cuDNN, cuBLAS and NCCL are found in a CUDA root, in system folders, or in pip's packages. PyTorch is
# measured in the same run where a python3 imports it. Ends with an error if a check fails; a test that is skipped for want of
# a GPU is a failure here.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

build=
data=
out=build/gpu_check
quick=0
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --build-dir) build=$(from_here "${2-}"); shift ;;
    --data-dir) data=$(from_here "${2-}"); shift ;;
    --out) out=$(from_here "${2-}"); shift ;;
    --quick) quick=1 ;;
    *) die "unknown option '$1'" ;;
  esac
  shift
done
mkdir -p "$out"
rows=()
failures=0

# check NAME COMMAND...: runs it, keeps its output in $out/NAME.log, notes the outcome.
check() {
  local name=$1 began=$SECONDS outcome=ok
  shift
  say "$name"
  "$@" >"$out/$name.log" 2>&1 || outcome=FAILED
  if [[ $outcome == FAILED ]]; then
    failures=$((failures + 1))
    tail -n 15 "$out/$name.log"
  fi
  rows+=("$name|$outcome|$((SECONDS - began)) s|$(what_it_says "$out/$name.log")")
}

# The line of a log that says most: a failed test, else the last line with a number in it.
what_it_says() {
  { grep -m 1 -E 'FAILED TEST|WRONG|^gradring: |tests ran|Test accuracy' "$1" || grep -E '[0-9]' "$1" | tail -n 1; } |
    tr -d '|"' | tr '\134' / | cut -c 1-100
}

# A GoogleTest binary in which nothing may be skipped.
no_skips() {
  local log
  log=$("$@" 2>&1) || { echo "$log"; return 1; }
  echo "$log"
  ! grep -q '\[  SKIPPED \]' <<<"$log"
}

# last NUMBER of a key in a JSON file
json_number() { grep -oE "\"$2\": *[-0-9.e+]+" "$1" | tail -n 1 | sed 's/.*: *//'; }

# accuracy_within POINTS A B: whether two accuracies (0..1) differ by at most so many points
accuracy_within() {
  echo "accuracy $2 against $3, $1 points allowed"
  awk -v points="$1" -v a="$2" -v b="$3" 'BEGIN { d = 100 * (a - b); exit !(a != "" && b != "" && d * d <= points * points) }'
}

has_gpu_driver || die "no NVIDIA driver here: this script is for machines with a GPU"
card=$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>/dev/null | head -n 1 || true)

if [[ -z $build ]]; then
  build=build/cuda
  [[ -n $data ]] || { [[ ! -d ../shared/data ]] || data=$(realpath ../shared/data); }
  check build bash -c "cmake --preset cuda -DGRADRING_TESTS=ON -DCMAKE_CUDA_ARCHITECTURES=native && cmake --build --preset cuda"
fi
gradring=$build/gradring
[[ -x $gradring ]] || die "there is no $gradring: see $out/build.log"
# What pip's packages hold, for the module's libraries.
if command -v python3 >/dev/null; then
  pip_libraries=$(python3 - <<'PYTHON'
import glob, site
print(":".join(sorted(path for root in site.getsitepackages() for path in glob.glob(root + "/nvidia/*/lib"))))
PYTHON
  ) || pip_libraries=
  export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$pip_libraries
fi

check doctor "$gradring" doctor
while read -r binary; do
  check "$(basename "$binary")" no_skips "$binary"
done < <(find "$build/tests" -type f -perm -u+x \( -name 'test_kernels_runtime*' -o -name 'test_cuda_module' -o \
  -name 'test_nn_cuda*' -o -name 'test_comm_nccl*' \) | sort)

# Every variant of every operation against its reference: the ConvNet's shapes, then awkward ones.
for dtype in f32 f16 bf16; do
  check "kernels_$dtype" "$gradring" bench kernels --device cuda --dtype "$dtype" --seconds 0 --no-peers \
    -J "$out/kernels_$dtype.json"
done
odd=('conv2d:batch=3,height=13,width=11,in=5,out=7' 'conv2d:batch=1,height=9,width=9,in=8,out=24'
  'conv_relu_pool:batch=3,height=13,width=11,in=5,out=7' 'gemm:batch=33,in=17,out=65' 'gemm:batch=1,in=40,out=129'
  'gemm:batch=72,in=200,out=136' 'gemm:batch=8,in=8,out=8' 'gemm:batch=200,in=1000,out=72' 'gemm:batch=1024,in=2048,out=1024'
  'relu:elements=1001' 'max_pool2d:batch=3,height=9,width=7,channels=5')
for entry in "${odd[@]}"; do
  for dtype in f32 f16; do
    check "odd_${entry//[:,=]/_}_$dtype" "$gradring" bench kernels --device cuda --op "${entry%%:*}" --shape "${entry#*:}" \
      --dtype "$dtype" --seconds 0 --no-peers
  done
done
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    for op in conv2d conv_relu_pool gemm softmax_cross_entropy linear_cross_entropy step_state adam; do
      check "${tool}_$op" compute-sanitizer --tool "$tool" --error-exitcode 9 "$gradring" bench kernels --device cuda --op "$op" \
        --dtype f16 --seconds 0 --no-peers
    done
  done
else
  rows+=("compute-sanitizer|not run||not on this machine")
fi

dataset=(--dataset digits)
[[ ! -d $data/mnist ]] || dataset=(--dataset mnist --data-dir "$data/mnist")
# train NAME OPTION...: two epochs; NAME.json is its summary
train() {
  local name=$1
  shift
  rm -rf "${out:?}/run_$name"
  "$gradring" train "${dataset[@]}" --epochs 2 --batch-size 64 --progress plain --run-dir "$out/run_$name" "$@" &&
    cp "$out/run_$name/summary.json" "$out/$name.json"
}
check train_cpu train cpu --device cpu --precision fp32
check train_fp32 train fp32 --device cuda --precision fp32
check train_fp16 train fp16 --device cuda --precision fp16
check train_bf16 train bf16 --device cuda --precision bf16
for precision in fp32 fp16 bf16; do
  [[ ! -f $out/$precision.json ]] || check "accuracy_$precision" accuracy_within 0.3 \
    "$(json_number "$out/$precision.json" accuracy)" "$(json_number "$out/cpu.json" accuracy)"
done

# The step in one graph out of the card's memory, and launch by launch out of the loader's, must give the same bits.
check train_no_graph train no_graph --device cuda --precision fp32 --cuda-graph off --resident off
check same_bits bash -c "diff <(grep sha256 $out/fp32.json) <(grep sha256 $out/no_graph.json)"

# Windows of batches, a schedule and clipping, in graphs and without.
for graph in on off; do
  check "train_windows_$graph" train "windows_$graph" --device cuda --precision fp32 --accumulate 3 --clip-norm 1 \
    --schedule cosine --cuda-graph "$graph"
done
check same_windows bash -c "diff <(grep sha256 $out/windows_on.json) <(grep sha256 $out/windows_off.json)"

# Several ranks on the one card, joined by NCCL over loopback: right, not fast.
rm -rf "$out"/run_ranks_*
for ranks in 2 4; do
  check "ranks_$ranks" "$gradring" launch --nproc-per-node "$ranks" train "${dataset[@]}" --steps 40 --batch-size 32 \
    --device cuda:0 --allow-shared-gpu --check-replicas 10 --progress plain --run-dir "$out/run_ranks_$ranks"
done

# ZeRO with windows of batches: recordings that end without a join.
for graph in on off; do
  rm -rf "$out/run_zero_$graph"
  check "zero3_windows_$graph" "$gradring" launch --nproc-per-node 2 train "${dataset[@]}" --steps 40 --batch-size 32 --zero 3 \
    --accumulate 3 --device cuda:0 --allow-shared-gpu --cuda-graph "$graph" --progress plain --run-dir "$out/run_zero_$graph"
done
check same_zero bash -c "diff <(grep sha256 $out/run_zero_on/summary.json) <(grep sha256 $out/run_zero_off/summary.json)"

if ((!quick)); then
  for dtype in f32 f16; do
    check "bench_kernels_$dtype" "$gradring" bench kernels --device cuda --dtype "$dtype" -J "$out/bench_kernels_$dtype.json"
  done
  check bench_adam_large "$gradring" bench kernels --device cuda --op adam --shape elements=67108864 -J "$out/bench_adam.json"
  for batch in 512 2048; do
    check "epoch_fp16_$batch" train "epoch_$batch" --device cuda --precision fp16 --batch-size "$batch" --epochs 5
    check "pytorch_$batch" python3 train/bench/pytorch_gpu.py --batch-size "$batch" --data-dir "$data/mnist" --json "$out/pytorch_$batch.json"
  done
fi

{
  printf '{"card": "%s", "machine": "%s", "date": "%s", "commit": "%s", "failures": %d, "checks": [\n' "$card" "$(uname -sr)" \
    "$(date -u +%F)" "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" "$failures"
  for i in "${!rows[@]}"; do
    IFS='|' read -r name outcome took words <<<"${rows[i]}"
    printf '  {"name": "%s", "outcome": "%s", "took": "%s", "says": "%s"}%s\n' "$name" "$outcome" "$took" "$words" \
      "$( ((i + 1 == ${#rows[@]})) || echo ,)"
  done
  printf ']}\n'
} >"$out/gpu_check.json"
{
  printf '%s; %s; %s; commit %s\n\n| check | outcome | took | |\n|---|---|---|---|\n' "$card" "$(uname -sr)" "$(date -u +%F)" \
    "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
  printf '| %s |\n' "${rows[@]//|/ | }"
} | tee "$out/gpu_check.md"
((failures == 0)) || die "$failures checks failed: logs are in $out"
