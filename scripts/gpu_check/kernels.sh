# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# For gpu_check.sh: whether the GPU is found, the test binaries, every kernel variant against its reference.

check_doctor() {
  must "$program" doctor --json
  local device libraries name
  device=$(found_by_doctor device)
  [[ $device == cuda* ]] ||
    fail "the program uses '$device', expected a GPU: $(grep -A 2 '"device"' "$work/output" | tail -n 1)"
  libraries=$(for name in driver cuDNN cuBLAS NCCL PyTorch; do printf '%s %s; ' "$name" "$(found_by_doctor "$name")"; done)
  passed "$device; $libraries"
}

# found_by_doctor KEY: what `gradring doctor --json` found.
found_by_doctor() { grep -A 1 "^ *\"[A-Z a-z]*$1\": {" "$work/output" | sed -n 's/^ *"found": "\(.*\)",\{0,1\}$/\1/p'; }

# kernels NAME OPTION...: benches kernels in NAME.json; every variant that was measured must be right.
kernels() {
  local json=$out/$1.json
  shift
  must "$program" bench kernels --device cuda "$@" -J "$json"
  [[ -f $json ]] || fail "the program ended with 0 and wrote no $json"
  right=$(grep -c '"right": true' "$json" || true)
  ! grep -q '"right": false' "$json" || fail "$(grep -c '"right": false' "$json") variants are wrong: see $json"
  ((right > 0)) || fail "no variant in $json"
}

check_first_kernel() {
  kernels kernels_first --op relu --seconds 0 --no-peers
  rm "$out/kernels_first.json"
  passed "$right passes of relu are right"
}

kernels_of_dtype() {
  kernels "kernels_$1" --dtype "$1" --seconds 0 --no-peers
  passed "$right variants are right"
}
check_kernels_fp32() { kernels_of_dtype fp32; }
check_kernels_fp16() { kernels_of_dtype fp16; }
check_kernels_bf16() { kernels_of_dtype bf16; }

# shellcheck disable=SC2054  # OPERATION:EXTENT=N,...
odd_shapes=(
  conv2d:batch=3,height=13,width=11,in=5,out=7 conv2d:batch=1,height=9,width=9,in=8,out=24
  conv_relu_pool:batch=3,height=13,width=11,in=5,out=7
  gemm:batch=33,in=17,out=65 gemm:batch=1,in=40,out=129 gemm:batch=72,in=200,out=136 gemm:batch=8,in=8,out=8
  gemm:batch=200,in=1000,out=72 gemm:batch=1024,in=2048,out=1024
  relu:elements=1001 max_pool2d:batch=3,height=9,width=7,channels=5
)

check_odd_shapes() {
  local entry dtype wrong=() made=0
  for entry in "${odd_shapes[@]}"; do
    for dtype in fp32 fp16 bf16; do
      run "$program" bench kernels --device cuda --op "${entry%%:*}" --shape "${entry#*:}" --dtype "$dtype" --seconds 0 \
        --no-peers
      made=$((made + 1))
      ((code == 0)) || wrong+=("$entry in $dtype: exit code $code")
    done
  done
  ((${#wrong[@]} == 0)) || fail "${#wrong[@]} of $made failed: ${wrong[*]}"
  passed "$made shapes are right"
}

# test_binary SUITE: every test must pass; skipped may be what says that it needs a machine without a GPU.
test_binary() {
  local binary skipped
  [[ -n $build && -d $build/tests ]] || not_made "no test binaries: ${build:-no --build-dir}${build:+ has no folder tests}"
  binary=$(find "$build/tests" -type f -name "test_$1" -perm -u+x -print -quit)
  [[ -n $binary ]] || not_made "no test_$1 below $build/tests"
  run "$binary"
  if ((code == 127)); then not_made "test_$1 does not start here: $(last_message)"; fi
  ((code == 0)) ||
    fail "exit code $code: $(grep -aE '^\[  FAILED  \] [^ ]*\.' "$work/output" | sort -u | head -n 3 | tr '\n' ' ')"
  skipped=$(skipped_tests "$work/output" | grep -v 'only without a GPU' || true)
  if [[ -n $skipped ]] && ! grep -qv libcudnn <<<"$skipped"; then
    not_made "skipped without cuDNN: ${skipped%%$'\n'*}"
  fi
  [[ -z $skipped ]] || fail "$(wc -l <<<"$skipped") tests were skipped: $(head -n 2 <<<"$skipped" | tr '\n' ' ')"
  grep -qE '^\[  PASSED  \] [1-9]' "$work/output" || fail "no test passed"
  passed "$(sed -n 's/^\[  PASSED  \] //p' "$work/output")"
}

# skipped_tests LOG: "NAME: REASON" of each skipped test in GoogleTest's output.
skipped_tests() {
  awk '/: Skipped$/ { getline reason; next }
    /^\[  SKIPPED \] .* \([0-9]+ ms\)$/ { print $4 ": " (reason == "" ? "no reason" : reason); reason = "" }' "$1"
}

# test_of_module SUITE: the same, of a binary that opens the CUDA module where it was built.
test_of_module() {
  local built_in
  built_in=$(sed -n 's/^CMAKE_CACHEFILE_DIR:INTERNAL=//p' "$build/CMakeCache.txt" 2>/dev/null || true)
  [[ -z $build || -n $built_in ]] || not_made "no CMakeCache.txt in $build says where it was built"
  [[ -z $build || -f $built_in/libgradring_cuda.so ]] ||
    not_made "test_$1 opens $built_in/libgradring_cuda.so, which is not here: link $built_in to $build"
  test_binary "$1"
}

check_tests_kernels_runtime_cuda() { test_binary kernels_runtime_cuda; }
check_tests_kernels_runtime() { test_of_module kernels_runtime; }
check_tests_cuda_module() { test_of_module cuda_module; }
check_tests_nn_cuda() { test_binary nn_cuda; }

# Operations with shared memory, synchronisation or atomics, at shapes of a few blocks of threads: compute-sanitizer is slow.
# shellcheck disable=SC2054
sanitized_shapes=(
  conv2d:batch=4 conv_relu_pool:batch=4 gemm:batch=128,in=256,out=128 softmax_cross_entropy:rows=64
  linear_cross_entropy:rows=64 sum_of_squares:elements=100003 gather_batch:batch=16 adam:elements=4099 step_state:
)

sanitized() {
  local entry shape=() wrong=()
  command -v compute-sanitizer >/dev/null || not_made "compute-sanitizer is not in PATH"
  for entry in "${sanitized_shapes[@]}"; do
    shape=()
    [[ -z ${entry#*:} ]] || shape=(--shape "${entry#*:}")
    run compute-sanitizer --tool "$1" --error-exitcode 9 "$program" bench kernels --device cuda --op "${entry%%:*}" \
      "${shape[@]}" --dtype fp16 --seconds 0 --no-peers
    ! grep -q 'Device not supported' "$work/output" || not_made "compute-sanitizer does not support this machine's GPU"
    ((code == 0)) && grep -qE 'SUMMARY: 0 (errors|hazards)' "$work/output" ||
      wrong+=("${entry%%:*}: exit code $code, $({ grep -a SUMMARY "$work/output" || echo "no summary"; } | tail -n 1)")
  done
  ((${#wrong[@]} == 0)) || fail "${wrong[*]}"
  passed "${#sanitized_shapes[@]} operations, nothing found"
}
check_memcheck() { sanitized memcheck; }
check_racecheck() { sanitized racecheck; }
