# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# For gpu_check.sh: how long epochs and kernels take, beside PyTorch and NVIDIA's libraries. Nothing fails for being slow.

# speed_epoch BATCH: the median of the epochs after the first two, which PyTorch's measurement leaves out, too.
speed_epoch() {
  [[ -n $data ]] || not_made "no MNIST: name its folder by --data-dir"
  train "epoch_$1" --device cuda --precision fp16 --batch-size "$1" --epochs 7
  local metrics=$work/epoch_$1/metrics.jsonl seconds
  seconds=$(sed -nE 's/^\{"event":"train",.*"epoch":([0-9]+),.*"seconds":([0-9.e+-]+),.*/\1 \2/p' "$metrics" |
    awk '$1 >= 3 { sum[$1] += $2 } END { for (epoch in sum) print sum[epoch] }' | sort -g | sed -n 3p)
  [[ -n $seconds ]] || fail "metrics.jsonl has fewer than 3 epochs after the first two, expected 5"
  passed "$seconds s an epoch, accuracy $(number "epoch_$1" accuracy)"
}
check_speed_epoch_512() { speed_epoch 512; }
check_speed_epoch_2048() { speed_epoch 2048; }

speed_pytorch() {
  local json=$out/speed_pytorch_$1.json
  [[ -n $data ]] || not_made "no MNIST: name its folder by --data-dir"
  "$GRADRING_PYTHON" -c 'import torch' 2>/dev/null || not_made "$GRADRING_PYTHON does not import torch"
  "$GRADRING_PYTHON" -c 'import torch; raise SystemExit(not torch.cuda.is_available())' ||
    not_made "this PyTorch finds no GPU"
  must "$GRADRING_PYTHON" train/bench/pytorch_gpu.py --batch-size "$1" --epochs 5 --data-dir "$data" --json "$json"
  [[ -f $json ]] || fail "pytorch_gpu.py ended with 0 and wrote no $json"
  local times
  times=$(sed -nE "s/^([a-z_]+) \{'seconds': ([0-9.e-]+),.*/\1 \2 s/p" "$work/output" | paste -sd, | sed 's/,/, /g')
  [[ -n $times ]] || fail "no variant ran: $(last_message)"
  passed "$times an epoch"
}
check_speed_pytorch_512() { speed_pytorch 512; }
check_speed_pytorch_2048() { speed_pytorch 2048; }

speed_kernels() {
  kernels "speed_kernels_$1" --dtype "$1"
  passed "$right variants, in speed_kernels_$1.json"
}
check_speed_kernels_fp16() { speed_kernels fp16; }
check_speed_kernels_fp32() { speed_kernels fp32; }

check_speed_adam() {
  kernels speed_adam --op adam --shape elements=16777216
  passed "$(grep -aE '^ +[a-z_]+ +[0-9]' "$work/output" | tail -n 1 | tr -s ' ')"
}
