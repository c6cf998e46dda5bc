#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tests scripts/gpu_check.sh with stand-ins for the program, the test binaries, nvidia-smi, Python and compute-sanitizer.
#
# Usage: gpu_check_test.sh REPOSITORY all_pass|faults|not_made|machines|pack|time_limits|simulated|commands [PROGRAM]
set -euo pipefail
repository=$1
here=$repository/tests/rules/gpu_check
python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null || true)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

mkdir -p "$place/data/mnist" "$place/build/tests" "$place/commands"
cp "$here/program.sh" "$place/build/gradring"
touch "$place/build/libgradring_cuda.so" "$place/build/libgradring_simulated_gpu.so"
for suite in kernels_runtime_cuda kernels_runtime cuda_module nn_cuda kernels_runtime_simulated simulated_gpu_module; do
  cp "$here/test_binary.sh" "$place/build/tests/test_$suite"
done
cp "$here/nvidia_smi.sh" "$place/commands/nvidia-smi"
cp "$here/python.sh" "$place/commands/python3"
cp "$here/compute_sanitizer.sh" "$place/commands/compute-sanitizer"
printf '#!/bin/sh\n' | tee "$place/commands/ldconfig" >"$place/commands/strip" # the one lists nothing, the other does nothing
chmod +x "$place/commands"/{ldconfig,strip}

# This machine's commands, but for those of its own GPU and its compilers.
mkdir "$place/system"
ln -sf /bin/* /usr/bin/* "$place/system"
rm -f "$place/system"/{nvidia-smi,compute-sanitizer,nvcc,cmake}
export PATH=$place/commands:$place/system
unset FAULT VALIDATE GPUS GRADRING_PYTHON CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER LD_LIBRARY_PATH PYTHONPATH

fail() {
  printf '%s\n' "$*" "--- what gpu_check.sh printed" >&2
  cat "$place/printed" >&2
  exit 1
}

# gpu_check OPTION...: sets `code`; its output is in $place/printed.
gpu_check() {
  code=0
  "$repository/scripts/gpu_check.sh" --build-dir "$place/build" --out "$place/out" "$@" >"$place/printed" 2>&1 || code=$?
}

report=gpu_check.md
# expect CODE PATTERN...: how it ended, and lines of its report.
expect() {
  local pattern
  ((code == $1)) || fail "exit code $code, expected $1"
  for pattern in "${@:2}"; do
    grep -qE -- "$pattern" "$place/out/$report" || fail "no line in $report matches '$pattern'"
  done
}

# fault NAME CHECK TEXT: this check fails with this text, and another check passes after it.
fault() {
  FAULT=$1 gpu_check --data-dir "$place/data" "$2" speed_pytorch_512
  expect 1 "^\| $2 \| FAILED \| [0-9]+ \| .*$3" '^\| speed_pytorch_512 \| passed ' '^1 passed, 1 failed, 0 not made;' \
    "^FAILED: $2\$"
  echo "$1: $2 failed"
}

# absent FAULT CHECK TEXT [OPTION...]: this check is not made, for this reason, and does not count as passed.
absent() {
  FAULT=$1 gpu_check "${@:4}" "$2"
  expect 3 "^\| $2 \| not made \| [0-9]+ \| .*$3" '^0 passed, 0 failed, 1 not made;' "^NOT MADE: $2\$"
  echo "$2: not made, $3"
}

# all_pass: every check that --list names passes.
all_pass() {
  local checks
  checks=$("$repository/scripts/gpu_check.sh" --list | wc -l)
  ((checks > 30)) || { echo "--list names $checks checks" >&2; exit 1; }
  gpu_check --data-dir "$place/data"
  expect 0 "^$checks passed, 0 failed, 0 not made;" '^gradring 0.1.0 \(commit 01234567\)' '^\* GPU 1, NVIDIA H100, 580.10'
  ! grep -E '^(FAILED|NOT MADE)' "$place/out/gpu_check.md" || fail "checks are named as failed or not made"
  ! grep -v '| passed |' "$place/out/gpu_check.md" | grep '^| [a-z]' | grep -v '^| check |' || fail "a row is not passed"
  echo "$checks checks passed"
}

# all_simulated: with --simulated, every check that --list names has its row, in the same order.
all_simulated() {
  local missing=(train_autotune trace tests_nn_cuda memory shared_gpu contexts memcheck racecheck speed_epoch_512
    speed_pytorch_512 speed_epoch_2048 speed_pytorch_2048 speed_kernels_fp16 speed_kernels_fp32 speed_adam) names
  report=simulated_gpu_check.md
  rm -rf "$place/out"
  gpu_check --simulated
  names=$("$repository/scripts/gpu_check.sh" --list | awk '{ print $1 }')
  expect 4 "^On a simulated GPU: $(($(wc -w <<<"$names") - ${#missing[@]})) ok, 0 failed, ${#missing[@]} not simulated;" \
    'The GPU is simulated on the CPU: nothing here was checked on a GPU'
  [[ ! -e $place/out/gpu_check.md ]] || fail "a simulated run wrote gpu_check.md, which is for a GPU"
  [[ $(sed -n 's/^| \([a-z][a-z0-9_]*\) | [onF].*/\1/p' "$place/out/$report") == "$names" ]] || fail "other rows than --list"
  [[ $(sed -n 's/^| \([a-z0-9_]*\) | not simulated | [0-9]* | [a-zA-Z].*/\1/p' "$place/out/$report") == "$(printf '%s\n' "${missing[@]}")" ]] ||
    fail "other checks are not simulated than ${missing[*]}"
  echo "$(wc -w <<<"$names") checks, ${#missing[@]} not simulated"
}

# simulated_fault NAME CHECK TEXT: with --simulated, this check fails with this text.
simulated_fault() {
  FAULT=$1 gpu_check --simulated "$2" doctor
  expect 1 "^\| $2 \| FAILED \| [0-9]+ \| .*$3" '^\| doctor \| ok ' '^On a simulated GPU: 1 ok, 1 failed, 0 not simulated;' \
    "^FAILED: $2\$"
  echo "$1: $2 failed"
}

case ${2-} in
  all_pass) all_pass ;;

  simulated)
    rm "$place/commands"/{nvidia-smi,compute-sanitizer} # it needs neither
    all_simulated
    simulated_fault wrong_kernel kernels_fp16 '1 variants are wrong'
    simulated_fault graph_changes_weights graph_bits 'the weights differ'
    simulated_fault failed_test tests_cuda_module 'exit code 1: .*OnGpu.Runs'
    simulated_fault survives_kill lost_rank 'exit code 0, expected 137'
    # What ran on a GPU, or on none, is no result of a simulated one.
    FAULT=real_gpu gpu_check --simulated doctor train_fp32
    expect 1 "^\| doctor \| FAILED .*expected a simulated GPU" '^\| train_fp32 \| FAILED .*does not say that the GPU was simulated'
    # What needs cuDNN is never ok, and no run without a failure ends as one on a GPU does.
    gpu_check --simulated train_autotune
    expect 4 '^\| train_autotune \| not simulated \| [0-9]+ \| cuDNN is not opened' '^On a simulated GPU: 0 ok, 0 failed, 1 not'
    gpu_check --simulated doctor
    expect 4 '^On a simulated GPU: 1 ok, 0 failed, 0 not simulated;'
    for options in "--data-dir $place/data" "--build-dir $place/build --pack $place/packed.tar.gz"; do
      # shellcheck disable=SC2086  # its words
      gpu_check --simulated $options
      ((code == 2)) || fail "exit code $code, expected 2 for --simulated $options"
    done
    echo "refused: with --data-dir, with --pack"
    ;;

  # The real program accepts every command line, and this would show if it did not.
  commands)
    export VALIDATE=$3
    all_pass
    all_simulated
    for line in 'train --device cuda --no-such-option' 'bench kernels --device cuda --op no_such_operation' \
      'launch --nproc-per-node 2 train --cuda-graph sometimes' 'doctor --no-such-option'; do
      # shellcheck disable=SC2086  # its words
      ! "$place/build/gradring" $line >/dev/null 2>&1 || { echo "accepted: $line" >&2; exit 1; }
    done
    # And its variants are found in the JSON that it writes.
    "$VALIDATE" bench kernels --op relu --shape elements=64 --seconds 0 -J "$place/relu.json" >/dev/null
    # shellcheck source=scripts/gpu_check/kernels.sh
    found=$(source "$repository/scripts/gpu_check/kernels.sh" && count_variants "$place/relu.json" true)
    expected=$(grep -c '"kind": "variant"' "$place/relu.json")
    ((found == expected && found > 0)) || { echo "$found of $expected variants found in the JSON" >&2; exit 1; }
    ;;

  faults)
    fault no_device doctor "the program uses 'cpu: AMD EPYC'"
    fault bench_fails first_kernel 'exit code 1: gradring bench: an illegal memory access'
    fault wrong_kernel kernels_fp32 '1 variants are wrong'
    fault wrong_kernel odd_shapes '([0-9]+) of \1 failed: .*1 variants right, 1 wrong'
    fault no_variant kernels_fp16 'no variant in'
    fault no_variant odd_shapes 'exit code 0, 0 variants right'
    fault no_variant memcheck 'exit code 0, 0 variants right'
    fault skipped_test tests_nn_cuda '1 tests were skipped: OnGpu.Runs: no CUDA device'
    fault failed_test tests_cuda_module 'exit code 1: .*OnGpu.Runs'
    fault no_test tests_kernels_runtime 'no test passed'
    fault train_fails train_fp16 'exit code 3: gradring train: out of memory'
    fault no_summary train_fp32 'wrote no summary.json'
    fault runs_on_cpu train_fp32 'it ran on "cpu", expected cuda'
    fault nan_loss train_fp16 'finite losses of 7 steps, expected 8'
    fault low_accuracy train_bf16 'accuracy 0.113, expected at least'
    fault other_accuracy cpu_accuracy 'accuracies differ by more than'
    fault other_losses first_losses 'losses of first differ by 4.3e-04'
    fault graph_changes_weights graph_bits 'the weights differ'
    fault graph_changes_weights window_bits 'the weights differ'
    fault graph_changes_weights tail_bits 'the weights differ'
    fault other_losses tail_bits 'losses of tail differ by 4.3e-04'
    fault graph_changes_weights zero_bits 'the weights differ'
    fault no_kernels trace 'wrote no trace'
    fault no_graph_kernels trace 'none of 1 kernels is in a CUDA graph'
    fault dropped_activities trace '7 GPU activities were dropped'
    fault resume_changes_weights resumed_bits 'the weights differ'
    fault no_hash graph_bits 'has no parameters_sha256'
    fault runs_differ reproducible_bits 'the weights differ'
    fault ranks_change_weights layout_bits 'the weights differ'
    fault survives_kill lost_rank 'exit code 0, expected 137'
    fault blames_itself stopped_rank 'not about rank 1: .*rank 0 of 2'
    fault much_memory memory '3896 MiB beyond'
    fault second_context contexts '2 processes of the training have a context on GPU 0'
    fault invalid_access memcheck 'ERROR SUMMARY: 1 error'
    # JSON of the run before is no result of this one.
    gpu_check --data-dir "$place/data" kernels_bf16
    expect 0
    [[ -s $place/out/kernels_bf16.json ]] || fail "no kernels_bf16.json"
    FAULT=no_json gpu_check --data-dir "$place/data" kernels_bf16 speed_pytorch_512
    expect 1 '^\| kernels_bf16 \| FAILED .*wrote no ' '^\| speed_pytorch_512 \| FAILED .*wrote no '
    # What a library computes is no result of ours.
    FAULT=wrong_peer gpu_check --data-dir "$place/data" speed_kernels_fp16
    expect 0 '^\| speed_kernels_fp16 \| passed \| [0-9]+ \| 2 variants'
    # A training that failed is not begun again by the next check that needs it.
    FAULT=nan_loss gpu_check --data-dir "$place/data" train_fp32 cpu_accuracy
    expect 1 '^\| cpu_accuracy \| FAILED .*the training fp32 failed in an earlier check' '^0 passed, 2 failed, 0 not made;'
    ! grep -qF -- '--device cpu' "$place/out/gpu_check.log" || fail "it trained on the CPU after the GPU had failed"
    ;;

  not_made)
    absent no_torch speed_pytorch_512 'python3 does not import torch' --data-dir "$place/data"
    absent "" speed_epoch_512 'no MNIST'
    absent unsupported_gpu racecheck "does not support this machine's GPU"
    absent no_cupti trace 'no GPU activities: libcupti.so.13: cannot open'
    absent no_libraries tests_nn_cuda '2 tests were skipped without a library: Engine.IsThere: libcudnn.so.9'
    absent other_system tests_nn_cuda 'does not start here: .*libfmt.so.9'
    absent no_processes contexts 'nvidia-smi lists no process'
    GPUS=1 absent "" two_gpus 'needs 2 GPUs; of those that nvidia-smi lists, the program sees 1'
    rm "$place/commands/compute-sanitizer"
    absent "" memcheck 'compute-sanitizer is not in PATH'
    rm "$place/build/tests/test_nn_cuda"
    absent "" tests_nn_cuda 'no test_nn_cuda'
    rm -r "$place/build/tests"
    absent "" tests_kernels_runtime 'no test binaries'
    code=0
    "$repository/scripts/gpu_check.sh" --program "$place/build/gradring" --out "$place/out" doctor tests_nn_cuda \
      >"$place/printed" 2>&1 || code=$?
    expect 3 '^\| doctor \| passed' '^\| tests_nn_cuda \| not made .*no --build-dir' '^1 passed, 0 failed, 1 not made;' \
      '^NOT MADE: tests_nn_cuda$'
    if [[ -e /proc/driver/nvidia/version ]]; then
      echo "not tested: a machine without a driver"
      exit
    fi
    rm "$place/commands/nvidia-smi"
    gpu_check
    ((code == 1)) || fail "exit code $code without a GPU"
    grep -q 'no NVIDIA driver here' "$place/printed" || fail "no message says that there is no driver"
    ;;

  machines)
    # Another cuDNN than the recorded one leaves out the comparison alone.
    FAULT=other_cudnn gpu_check tests_nn_cuda
    expect 0 '^\| tests_nn_cuda \| passed \| [0-9]+ \| 17 tests\. 1 were skipped, .*Engine.IsRecorded: libcudnn is 9.20.0'
    # CUDA_VISIBLE_DEVICES, by index and by UUID: the training's memory and processes are looked for on that GPU alone.
    for visible in 2,0 GPU-2,GPU-0; do
      GPUS=3 TRAINS_ON=2 CUDA_VISIBLE_DEVICES=$visible gpu_check memory contexts two_gpus
      expect 0 '^\| memory \| passed \| [0-9]+ \| 696 MiB' '^\* GPU 2, ' '^\* GPU 0, '
      ! grep -q '^\* GPU 1' "$place/out/gpu_check.md" || fail "the report lists a GPU that the program does not see"
    done
    GPUS=3 CUDA_VISIBLE_DEVICES=1,7,0 absent "" two_gpus 'the program sees 1'
    CUDA_VISIBLE_DEVICES='' absent "" memory 'the program sees 0'
    # The libraries in every folder where Python looks for packages are for the program, too.
    if [[ -n $python ]]; then
      mkdir -p "$place/packages/nvidia/cudnn/lib"
      PYTHONPATH=$place/packages GRADRING_PYTHON=$python gpu_check doctor
      expect 0
      grep -q "^LD_LIBRARY_PATH=.*$place/packages/nvidia/cudnn/lib" "$place/out/gpu_check.log" ||
        fail "the program does not get the folder of a wheel's library"
    fi
    ;;

  # The packed file holds all that the checks need, without this repository and without the build.
  pack)
    touch "$place/build/not_needed" "$place/build/tests/libgradring_no_module.so"
    gpu_check --pack "$place/packed.tar.gz"
    ((code == 0)) || fail "exit code $code"
    grep -qE 'packed.tar.gz: [0-9.]+K, unpacked [0-9.]+K' "$place/printed" || fail "no line tells the size"
    mkdir "$place/elsewhere"
    tar -xzf "$place/packed.tar.gz" -C "$place/elsewhere"
    packed=$place/elsewhere/gradring-gpu-check
    [[ ! -e $packed/build/packed/not_needed ]] || fail "a file is packed that no check needs"
    [[ -e $packed/build/packed/tests/libgradring_no_module.so ]] || fail "the module that a test rejects is not packed"
    mv "$place/build" "$place/gone"
    code=0
    (cd "$place" && "$packed/scripts/gpu_check.sh" --out "$place/out" --data-dir "$place/data") >"$place/printed" 2>&1 || code=$?
    expect 0 '^[0-9]+ passed, 0 failed, 0 not made;'
    mv "$place/gone" "$place/build"
    rm "$place/build/tests/test_nn_cuda"
    gpu_check --pack "$place/packed.tar.gz"
    ((code == 1)) || fail "exit code $code for a build without a test program"
    grep -q 'no test_nn_cuda below' "$place/printed" || fail "no message names the test program that is missing"
    ;;

  time_limits)
    FAULT=hang gpu_check --check-limit 5 train_fp32 doctor
    expect 1 '^\| train_fp32 \| FAILED \| [1-9] \| it did not end within 5 s' '^1 passed, 1 failed, 0 not made;'
    FAULT=hang gpu_check --time-limit 8 doctor train_fp32 train_fp16
    expect 3 '^\| train_fp32 \| not made .*was reached in it' '^\| train_fp16 \| not made .*was reached before it' \
      '^1 passed' '^NOT MADE: train_fp32, train_fp16$'
    # A signal ends the check that runs, too.
    FAULT=hang HUNG=$place/hung "$repository/scripts/gpu_check.sh" --build-dir "$place/build" --out "$place/out" train_fp32 \
      >"$place/printed" 2>&1 &
    script=$!
    for ((i = 0; i < 100; ++i)); do
      [[ ! -s $place/hung ]] || break
      sleep 0.1
    done
    kill "$script"
    ! wait "$script" || fail "exit code 0 after SIGTERM"
    grep -q 'interrupted; the results so far' "$place/printed" || fail "no message says that it was interrupted"
    [[ -s $place/hung ]] || fail "the training that hangs never began"
    sleep 2
    ! grep -q sleep "/proc/$(<"$place/hung")/cmdline" 2>/dev/null || fail "a training runs on after SIGTERM"
    gpu_check --check-limit nothing doctor
    ((code == 2)) || fail "exit code $code for a limit that is no number"
    gpu_check no_such_check
    ((code == 2)) || fail "exit code $code for an unknown check"
    ;;

  *) echo "unknown test '${2-}'" >&2; exit 2 ;;
esac
