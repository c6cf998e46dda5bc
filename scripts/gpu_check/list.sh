# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034
# For gpu_check.sh: the checks in their order, each "NAME LIMIT WHAT" with its time limit in seconds. check_NAME is in one of
# the files beside this one. The cheapest and those that others depend on come first, speeds last.

checks=(
  'doctor 60 the program finds the GPU'
  'first_kernel 120 one kernel runs and is right'
  'tests_kernels_runtime_cuda 120 tests of streams, events and memory on the GPU'
  'tests_kernels_runtime 120 tests that every device must pass'
  'tests_cuda_module 60 tests of the loaded CUDA module'
  'kernels_fp16 180 every kernel variant against its reference, at the shapes of the ConvNet'
  'kernels_fp32 180 the same in FP32'
  'kernels_bf16 180 the same in BF16'
  'first_losses 180 the losses of 20 steps in FP32, on the GPU and on the CPU'
  'train_fp32 180 two epochs: accuracy, every loss a finite number'
  'graph_bits 180 the same weights with and without CUDA graphs and resident data'
  'window_bits 180 the same with accumulation, clipping and a schedule'
  'tail_bits 180 epochs that end with an odd batch: the same weights without CUDA graphs, and the losses of the CPU'
  'resumed_bits 180 the same weights after a resume as without it'
  'reproducible_bits 180 the same weights from two runs with --reproducible'
  'train_fp16 180 two epochs in FP16'
  'train_bf16 180 two epochs in BF16'
  'train_autotune 180 two epochs with cuDNN algorithms that were measured'
  'trace 180 the trace of a training has the kernels of its CUDA graphs, and no note'
  'cpu_accuracy 300 the accuracy of each precision beside that of the CPU'
  'models 240 the losses of 3 steps of every built-in model in FP32, on the GPU and on the CPU'
  'odd_shapes 240 every kernel variant at shapes that divide by nothing'
  'tests_nn_cuda 300 tests of the CUDA backend, most of them on plans of cuDNN'
  'memory 120 memory of GPU 0 beside the plan'
  'shared_gpu 240 2 and 4 ranks on one GPU keep the same weights'
  'layout_bits 240 the same weights from 1 and 2 ranks with --reproducible'
  'zero_bits 240 ZeRO 3 with accumulation: the same weights with and without CUDA graphs'
  'lost_rank 120 a killed rank is named, and the others end'
  'stopped_rank 120 so is a rank that is stopped by a signal'
  'two_gpus 240 2 ranks on 2 GPUs over NCCL keep the same weights'
  'contexts 120 of 2 ranks on 2 GPUs one has memory on GPU 0'
  'memcheck 600 compute-sanitizer finds no invalid access in our kernels'
  'racecheck 600 compute-sanitizer finds no race in shared memory'
  'speed_epoch_512 180 median epoch in FP16 at batch size 512'
  'speed_pytorch_512 300 the same by PyTorch, in seven variants'
  'speed_epoch_2048 180 median epoch in FP16 at batch size 2048'
  'speed_pytorch_2048 300 the same by PyTorch'
  'speed_kernels_fp16 300 kernels beside cuDNN and cuBLASLt'
  'speed_kernels_fp32 300 the same in FP32'
  'speed_adam 120 Adam on 16 Mi elements'
)

# The test programs of the checks tests_*.
test_suites=(kernels_runtime_cuda kernels_runtime cuda_module nn_cuda)

# test_binary_path BUILD SUITE: empty where it is not built.
test_binary_path() { find "$1/tests" -type f -name "test_$2" -perm -u+x -print -quit 2>/dev/null || true; }

list_checks() {
  local entry name limit what
  for entry in "${checks[@]}"; do
    read -r name limit what <<<"$entry"
    printf '%-28s %4d  %s\n' "$name" "$limit" "$what"
  done
}

# select_checks [PATTERN...]: sets `selected` to the entries of `checks` that a pattern names; without patterns to all.
select_checks() {
  local entry pattern found
  (($#)) || set -- '*'
  for pattern in "$@"; do
    found=0
    # shellcheck disable=SC2053  # a pattern, not a string
    for entry in "${checks[@]}"; do [[ ${entry%% *} != $pattern ]] || found=1; done
    ((found)) || usage_error "no check is called '$pattern'; --list prints their names"
  done
  selected=()
  for entry in "${checks[@]}"; do
    # shellcheck disable=SC2053
    for pattern in "$@"; do
      if [[ ${entry%% *} == $pattern ]]; then selected+=("$entry"); break; fi
    done
  done
}
