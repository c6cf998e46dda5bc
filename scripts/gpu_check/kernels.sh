# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# For gpu_check.sh: whether the GPU is found, the test binaries, every kernel variant against its reference.

check_doctor() {
  must "$program" doctor --json ${simulated:+--simulate-gpu "$simulated_card"}
  local device libraries name
  device=$(found_by_doctor device)
  [[ $device == cuda* ]] ||
    fail "the program uses '$device', expected a GPU: $(grep -A 2 '"device"' "$work/output" | tail -n 1)"
  if [[ -n $simulated ]]; then
    [[ $device == *simulated* ]] || fail "the program uses '$device', expected a simulated GPU"
    passed "$device"
  fi
  libraries=$(for name in driver cuDNN cuBLAS NCCL PyTorch; do printf '%s %s; ' "$name" "$(found_by_doctor "$name")"; done)
  passed "$device; $libraries"
}

# found_by_doctor KEY: what `gradring doctor --json` found.
found_by_doctor() { grep -A 1 "^ *\"[A-Z a-z]*$1\": {" "$work/output" | sed -n 's/^ *"found": "\(.*\)",\{0,1\}$/\1/p'; }

# bench JSON COMMAND...: runs a bench of kernels that writes JSON; sets `code`, and `right` and `wrong`, the numbers of our
# variants. Of the libraries beside them, whose tolerances are others, nothing is expected.
bench() {
  local json=$1
  rm -f "$json"
  run "${@:2}" -J "$json"
  right=$(count_variants "$json" true)
  wrong=$(count_variants "$json" false)
}

# count_variants JSON true|false: our variants that are right, or wrong. 0 without the file.
count_variants() {
  [[ -f $1 ]] || { echo 0; return; }
  awk -v right="\"right\": $2" '/"kind":/ { ours = /"variant"/ } ours && index($0, right) { n++ } END { print n + 0 }' "$1"
}

# kernels NAME OPTION...: benches kernels in NAME.json; every variant that was measured must be right.
kernels() {
  local json=$out/$1.json
  shift
  bench "$json" "$program" bench kernels "${on_gpu[@]}" "$@"
  ((wrong == 0)) || fail "$wrong variants are wrong: see $json"
  ((code == 0)) || fail "exit code $code: $(last_message)"
  [[ -f $json ]] || fail "the program ended with 0 and wrote no $json"
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

check_odd_shapes() {
  local entry dtype failures=() shapes=0 variants=0
  for entry in "${odd_shapes[@]}"; do
    for dtype in fp32 fp16 bf16; do
      bench "$work/odd.json" "$program" bench kernels "${on_gpu[@]}" --op "${entry%%:*}" --shape "${entry#*:}" \
        --dtype "$dtype" --seconds 0 --no-peers
      shapes=$((shapes + 1)) variants=$((variants + right))
      ((code == 0 && right > 0 && wrong == 0)) ||
        failures+=("$entry in $dtype: exit code $code, $right variants right, $wrong wrong")
    done
  done
  ((${#failures[@]} == 0)) || fail "${#failures[@]} of $shapes failed: ${failures[*]}"
  passed "$shapes shapes, $variants variants are right"
}

# test_binary SUITE [FILTER]: every test that GoogleTest's FILTER selects must pass. Skipped may be what needs a machine
# without a GPU, what needs another cuDNN than this one, as comparisons with the recorded version do, what is about choosing
# among CPU levels in a build for one, and what a simulated GPU does otherwise than a real one.
test_binary() {
  local suite=$1 filter=${2-*} gpu=real binary skipped other_cudnn expected='only without a GPU|this build has one level'
  [[ -n $build && -d $build/tests ]] || not_made "no test binaries: ${build:-no --build-dir}${build:+ has no folder tests}"
  if [[ -n $simulated ]]; then suite=$(simulated_suite "$1") gpu=h100 expected+='|: a simulated GPU '; fi
  binary=$(test_binary_path "$build" "$suite")
  [[ -n $binary ]] || not_made "no test_$suite below $build/tests"
  run env GRADRING_TEST_GPU="$gpu" "$binary" --gtest_filter="$filter"
  if ((code == 127)); then not_made "test_$suite does not start here: $(last_message)"; fi
  ((code == 0)) ||
    fail "exit code $code: $(grep -aE '^\[  FAILED  \] [^ ]*\.' "$work/output" | sort -u | head -n 3 | tr '\n' ' ')"
  skipped=$(skipped_tests "$work/output" | grep -vE "$expected" || true)
  other_cudnn=$(grep ': libcudnn is ' <<<"$skipped" || true)
  skipped=$(grep -v ': libcudnn is ' <<<"$skipped" || true)
  if [[ -n $skipped ]] && ! grep -qvE 'lib(cudnn|cublasLt)\.so' <<<"$skipped"; then
    not_made "$(wc -l <<<"$skipped") tests were skipped without a library: ${skipped%%$'\n'*}"
  fi
  [[ -z $skipped ]] || fail "$(wc -l <<<"$skipped") tests were skipped: $(head -n 2 <<<"$skipped" | tr '\n' ' ')"
  grep -qE '^\[  PASSED  \] [1-9]' "$work/output" || fail "no test passed"
  passed "$(sed -n 's/^\[  PASSED  \] //p' "$work/output")" \
    "${other_cudnn:+$(wc -l <<<"$other_cudnn") were skipped, of which the first: ${other_cudnn%%$'\n'*}}"
}

# skipped_tests LOG: "NAME: REASON" of each skipped test in GoogleTest's output.
skipped_tests() {
  awk '/: Skipped$/ { getline reason; next }
    /^\[  SKIPPED \] .* \([0-9]+ ms\)$/ { print $4 ": " (reason == "" ? "no reason" : reason); reason = "" }' "$1"
}

check_tests_kernels_runtime_cuda() { test_binary kernels_runtime_cuda; }
check_tests_kernels_runtime() { test_binary kernels_runtime; }
check_tests_cuda_module() { test_binary cuda_module; }
# Without plans for GPUs that are only described: CI makes them, which takes minutes.
check_tests_nn_cuda() { test_binary nn_cuda '-*CudnnPlans.*'; }

# Operations with shared memory, synchronisation or atomics, at shapes of a few blocks of threads: compute-sanitizer is slow.
# shellcheck disable=SC2054
sanitized_shapes=(
  conv2d:batch=4 conv_relu_pool:batch=4 gemm:batch=128,in=256,out=128 softmax_cross_entropy:rows=64
  linear_cross_entropy:rows=64 gradient_statistics:elements=100003 gather_batch:batch=16 adam:elements=4099 step_state: tally:
)

sanitized() {
  local entry shape=() failures=() variants=0
  command -v compute-sanitizer >/dev/null || not_made "compute-sanitizer is not in PATH"
  for entry in "${sanitized_shapes[@]}"; do
    shape=()
    [[ -z ${entry#*:} ]] || shape=(--shape "${entry#*:}")
    bench "$work/sanitized.json" compute-sanitizer --tool "$1" --error-exitcode 9 "$program" bench kernels --device cuda \
      --op "${entry%%:*}" "${shape[@]}" --dtype fp16 --seconds 0 --no-peers
    ! grep -q 'Device not supported' "$work/output" || not_made "compute-sanitizer does not support this machine's GPU"
    variants=$((variants + right))
    ((code == 0 && right > 0)) && grep -qE 'SUMMARY: 0 (errors|hazards)' "$work/output" ||
      failures+=("${entry%%:*}: exit code $code, $right variants right," \
        "$({ grep -a SUMMARY "$work/output" || echo "no summary"; } | tail -n 1)")
  done
  ((${#failures[@]} == 0)) || fail "${failures[*]}"
  passed "${#sanitized_shapes[@]} operations, $variants variants, nothing found"
}
check_memcheck() { sanitized memcheck; }
check_racecheck() { sanitized racecheck; }
