#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks gradring on a machine with an NVIDIA GPU: kernels, training, ranks, memory, speed. Writes each result at once.
#
# Usage: scripts/gpu_check.sh [OPTION...] [CHECK...]
#
#   --build-dir DIR    finished build (preset portable or cuda); default: the one that --pack packed, or else build/cuda, built
#                      here for this GPU
#   --program FILE     program to check (default DIR/gradring)
#   --data-dir DIR     folder with mnist/; without it the generated digits are trained on
#   --out DIR          folder for gpu_check.md, gpu_check.log and the benchmarks' JSON files (default build/gpu_check);
#                      results of an earlier run in it are removed
#   --time-limit N     seconds after which no check begins and a running one is ended (default none)
#   --check-limit N    seconds for each check at most (default its own, see --list)
#   --list             the checks in their order, with their limits in seconds
#   --simulated        every check at a reduced size on a simulated H100 (docs/simulated_gpu.md), on a machine with or without
#                      a GPU. What needs cuDNN, PyTorch, a clock or a driver is reported as not simulated, with the reason.
#                      Writes simulated_gpu_check.md and .log, by default in build/simulated_gpu_check
#   --pack FILE        checks nothing: writes this script and the build in --build-dir, without symbols, into a .tar.gz for a
#                      machine that has a GPU and no compiler
#
# CHECK is a name or a pattern such as 'speed_*'; default: all, cheap ones first. A failed check does not end the run. A
# check that cannot be made here (no test binaries, one GPU only, no PyTorch, no compute-sanitizer) is reported as not made,
# with the reason. The last lines of the report name the checks that failed and those that were not made. Exit status:
#   0  every check passed
#   1  a check failed, or the run could not begin or was interrupted
#   2  usage error
#   3  no check failed, but some were not made
#   4  with --simulated: no check failed, and none was made on a GPU
#
# Needs no network, and with --build-dir no compiler. cuDNN, cuBLAS and NCCL are found in a CUDA root, in system folders,
# or in pip's packages of the python3 that GRADRING_PYTHON names (default python3), which is also asked for PyTorch.
# CUDA_VISIBLE_DEVICES chooses the GPUs; its numbers are those of nvidia-smi.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/gpu_check/list.sh
source scripts/gpu_check/list.sh
# shellcheck source=scripts/gpu_check/gpus.sh
source scripts/gpu_check/gpus.sh
# shellcheck source=scripts/gpu_check/pack.sh
source scripts/gpu_check/pack.sh
# shellcheck source=scripts/gpu_check/simulated.sh
source scripts/gpu_check/simulated.sh

usage_error() {
  printf 'gpu_check.sh: %s\n' "$*" >&2
  exit 2
}

build="" program="" data="" out="" packed="" simulated="" time_limit=0 check_limit=0 patterns=()
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --list) list_checks; exit ;;
    --simulated) simulated=1; shift ;;
    --build-dir | --program | --data-dir | --out | --pack)
      [[ -n ${2-} ]] || usage_error "$1 needs a path"
      path=$(from_here "$2")
      case $1 in
        --build-dir) build=$path ;;
        --program) program=$path ;;
        --data-dir) data=$path ;;
        --out) out=$path ;;
        --pack) packed=$path ;;
      esac
      shift 2
      ;;
    --time-limit | --check-limit)
      [[ ${2-} =~ ^[1-9][0-9]*$ ]] || usage_error "$1 is '${2-}', expected a number of seconds"
      case $1 in --time-limit) time_limit=$2 ;; --check-limit) check_limit=$2 ;; esac
      shift 2
      ;;
    -*) usage_error "unknown option '$1'; --help lists the options" ;;
    *) patterns+=("$1"); shift ;;
  esac
done
select_checks "${patterns[@]}"
[[ -z $simulated || -z $packed ]] || usage_error "--pack packs for a machine with a GPU: leave --simulated out"
[[ -z $simulated || -z $data ]] || usage_error "--simulated trains on generated images: leave --data-dir out"
if [[ -n $packed ]]; then
  [[ -n $build ]] || usage_error "--pack needs --build-dir"
  pack "$build" "$packed"
  exit
fi
[[ -z $data || -d $data/mnist ]] || usage_error "--data-dir $data has no folder mnist"
[[ -n $simulated ]] || nvidia-smi -L >/dev/null 2>&1 || has_gpu_driver ||
  die "no NVIDIA driver here: this script is for machines with a GPU; --simulated checks on a simulated one"

# Everything but results is in a fresh folder: no check can read what another run of this script left.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=${simulated:+simulated_}gpu_check
out=${out:-build/$name}
mkdir -p "$out"
rm -f "$out/$name".{md,log} "$out"/{kernels,speed}_*.json
report=$out/$name.md log=$out/$name.log
: >"$log"

export GRADRING_PYTHON=${GRADRING_PYTHON:-python3}
export XDG_CACHE_HOME=$work/cache # of --autotune: measured here, not taken from an earlier run
export CUDA_DEVICE_ORDER=PCI_BUS_ID # nvidia-smi's
gpus="" pip_libraries="" passed_word=passed missing_word='not made'
if [[ -n $simulated ]]; then
  passed_word=ok missing_word='not simulated'
  write_images "$work/images"
else
  gpus=$(visible_gpus | paste -sd,)
  pip_libraries=$("$GRADRING_PYTHON" 2>/dev/null -c '
import glob, sys
print(":".join(path for root in sys.path for path in sorted(glob.glob(root + "/nvidia/*/lib"))))') || true
fi
[[ -z $pip_libraries ]] || export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$pip_libraries

passed=() failed=() not_made=() child=""
# row NAME OUTCOME SECONDS TEXT
row() {
  local text shown
  text=$(tr '\n|' ' /' <<<"$4" | cut -c 1-240 | sed 's/ *$//')
  case $2 in
    passed) passed+=("$1") shown=$passed_word ;;
    FAILED) failed+=("$1") shown=FAILED ;;
    *) not_made+=("$1") shown=$missing_word ;;
  esac
  printf '| %s | %s | %s | %s |\n' "$1" "$shown" "$3" "$text" | tee -a "$report"
}

stop() {
  [[ -z $child ]] || kill "$child" 2>/dev/null || true
  wait
  die "interrupted; the results so far are in $report"
}
trap stop INT TERM HUP

# limited SECONDS COMMAND...: sets `code`, 124 or 137 after the limit. In the background, so that a signal to this script
# ends it.
limited() {
  code=0
  timeout -k 5 "$@" >>"$log" 2>&1 </dev/null &
  child=$!
  wait "$child" || code=$?
  child=""
}

# check NAME LIMIT: runs it in a process of its own and adds its row.
check() {
  local name=$1 limit=$2 began=$SECONDS left=$((time_limit - SECONDS)) outcome=FAILED text="" cut=0
  [[ -z $simulated ]] || limit=$simulated_limit
  ((check_limit == 0 || limit < check_limit)) || limit=$check_limit
  if ((time_limit)); then
    ((left > 0)) || { row "$name" 'not made' 0 "--time-limit $time_limit was reached before it"; return; }
    ((limit <= left)) || { limit=$left; cut=1; }
  fi
  printf '\n==> %s, at most %d s\n' "$name" "$limit" >>"$log"
  limited "$limit" scripts/gpu_check/run.sh "$name"
  if [[ -f $work/$name.outcome ]]; then
    IFS='|' read -r outcome text <"$work/$name.outcome"
  elif ((code == 124 || code == 137)); then
    text="it did not end within $limit s"
    ((!cut)) || { outcome='not made'; text="--time-limit $time_limit was reached in it"; }
  else
    text="it ended with exit code $code and without a result: $(tail -n 1 "$log")"
  fi
  [[ $outcome != passed || $code == 0 ]] || { outcome=FAILED; text="it ended with exit code $code after: $text"; }
  row "$name" "$outcome" $((SECONDS - began)) "$text"
}

if [[ -z $build && -z $program && -d build/packed ]]; then
  [[ -z $simulated ]] || die "build/packed has no simulated GPU: run --simulated where the build was made"
  build=build/packed
fi
if [[ -z $build && -z $program ]]; then
  build=build/cuda architectures=native
  [[ -z $simulated ]] || architectures=90
  command -v cmake >/dev/null || die "no cmake here: name a finished build by --build-dir"
  say "Building $build; the output is in $log"
  cmake --preset cuda -DGRADRING_TESTS=ON -DCMAKE_CUDA_ARCHITECTURES=$architectures >>"$log" 2>&1 ||
    die "the configuration failed: see $log"
  cmake --build --preset cuda >>"$log" 2>&1 || die "the build failed: see $log"
fi
program=${program:-$build/gradring}
[[ -x $program ]] || die "there is no program $program"
version=$("$program" version 2>&1) || die "$program does not start: $version"
export GPU_CHECK_PROGRAM=$program GPU_CHECK_BUILD=$build GPU_CHECK_WORK=$work GPU_CHECK_OUT=$out
export GPU_CHECK_DATA=${data:+$data/mnist} GPU_CHECK_GPUS=$gpus GPU_CHECK_SIMULATED=$simulated

# what_is_checked: the GPUs and the data.
what_is_checked() {
  if [[ -n $simulated ]]; then
    echo "* **The GPU is simulated on the CPU: nothing here was checked on a GPU.** gradring --simulate-gpu $simulated_card"
    echo '* data: generated images, batches and steps of a reduced size'
    return
  fi
  nvidia-smi ${gpus:+-i "$gpus"} --query-gpu=index,name,driver_version,memory.total --format=csv,noheader | sed 's/^/* GPU /' ||
    echo '* nvidia-smi lists no GPU'
  printf '* data: %s\n' "$([[ -n $data ]] && echo MNIST || echo 'generated digits')"
}

{
  printf '%s; %s; %s\n\n' "$version" "$(uname -sr)" "$(date -u '+%F %R UTC')"
  what_is_checked
  printf '\n| check | result | seconds | |\n|---|---|---|---|\n'
} 2>/dev/null | tee "$report"
for entry in "${selected[@]}"; do
  read -r name limit _ <<<"$entry"
  check "$name" "$limit"
done

# names_line TITLE NAME...: nothing without a name.
names_line() {
  local names=${*:2}
  (($# == 1)) || printf '%s: %s\n' "$1" "${names// /, }"
}
{
  printf '\n%s%d %s, %d failed, %d %s; %s\n' "${simulated:+On a simulated GPU: }" ${#passed[@]} "$passed_word" \
    ${#failed[@]} ${#not_made[@]} "$missing_word" "$(elapsed)"
  names_line FAILED "${failed[@]}"
  names_line "${missing_word^^}" "${not_made[@]}"
} | tee -a "$report"
((${#failed[@]} == 0)) || exit 1
[[ -z $simulated ]] || exit 4
((${#not_made[@]} == 0)) || exit 3
