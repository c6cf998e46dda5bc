#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and tests with several compilers for several processors, and prints a table of compilers and processors.
#
# Usage: scripts/check_portability.sh [OPTION...]
#
#   --compiler NAME   g++-12, g++-14, clang++-19 or aarch64-linux-gnu-g++; may be repeated (default all)
#   --arch ARCH       value of GRADRING_ARCH, such as portable or znver4; may be repeated (default all of the table)
#   --jobs N          compilations and tests at a time (default: number of processors)
#   --again           repeats cells that have a result of these sources
#   --program-only    for processors other than this one: builds the program without the suites
#   --keep            keeps the build folder of a compiler none of whose cells failed
#   --list            prints the table of the results so far; builds nothing
#   --write           the same, into docs/results/portability.md
#
# A cell configures, builds the program and the suites of kernels, nn and comm with -Werror, and links them. Where this
# processor has the instructions, the suites run, and reference_losses compares 50 training steps with PyTorch's; the
# portable build is disassembled to find newer instructions outside its copies of hot code. aarch64 is a cross build, whose
# suites kernels_simt, comm and data run under qemu-aarch64. The cells of a compiler share a build folder: only what computes
# is compiled for each ARCH.
#
# Results are kept in build/portability/results, one file a cell; a cell with a result of the same sources, compiler and
# machine is not built again unless it failed, so that an interrupted matrix goes on where it was. g++-14 runs in a Debian 13 system that debootstrap makes in
# build/portability, the others on Debian 12, in a system of the same kind where this machine is another; these systems, and
# the libraries for aarch64, need root. The exit status is 1 if a cell failed.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
# shellcheck source=scripts/check_fresh/debian.sh
source scripts/check_fresh/debian.sh
# shellcheck source=scripts/check_portability/systems.sh
source scripts/check_portability/systems.sh
# shellcheck source=scripts/check_portability/results.sh
source scripts/check_portability/results.sh

all_compilers=(g++-12 g++-14 clang++-19 aarch64-linux-gnu-g++)
all_archs=(portable x86-64-v2 x86-64-v3 x86-64-v4 znver3 znver4 sapphirerapids)
compilers=() archs=()
jobs=$(nproc)
again=0 program_only=0 keep=0 list=0 write=0
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --compiler)
      [[ " ${all_compilers[*]} " == *" ${2-} "* ]] || die "$1 is '${2-}': expected one of ${all_compilers[*]}"
      compilers+=("$2")
      shift 2
      ;;
    --arch)
      [[ " ${all_archs[*]} " == *" ${2-} "* ]] || die "$1 is '${2-}': expected one of ${all_archs[*]}"
      archs+=("$2")
      shift 2
      ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift 2 ;;
    --again) again=1; shift ;;
    --program-only) program_only=1; shift ;;
    --keep) keep=1; shift ;;
    --list) list=1; shift ;;
    --write) write=1; shift ;;
    *) die "unknown argument '$1'; --help lists the options" ;;
  esac
done
((${#compilers[@]})) || compilers=("${all_compilers[@]}")
((${#archs[@]})) || archs=("${all_archs[@]}")

if ((list)); then print_results; exit; fi
if ((write)); then write_results docs/results/portability.md; exit; fi

sources=(CMakeLists.txt scripts/cmake kernels nn comm data train tests)
[[ -z $(git status --porcelain -- "${sources[@]}") ]] || die "there are uncommitted changes, and results are kept by commit: commit them"
tree=$(git ls-tree -r HEAD -- "${sources[@]}")
commit=$(git rev-parse --short=8 HEAD)

# key_of COMPILER: of what a result depends on.
key_of() { printf '%s\n' "$tree" "$(version_of "$1")" "$(machine)" | sha256sum | cut -c1-16; }

# has_result COMPILER ARCH: of these sources, this compiler and this machine, and no failure.
has_result() {
  local outcome
  outcome=$(result_of "$1" "$2" outcome)
  [[ $(result_of "$1" "$2" key) == "$(key_of "$1")" && $outcome != FAILED* ]] || return 1
  ((program_only)) || [[ $outcome != program* ]]
}

# The instruction sets, of those that compilers use by themselves, that code for $1 may use and this processor lacks.
lacking() {
  local compiler=$1 march=$2
  macros() { in_system "$compiler" "$compiler" -march="$1" -dM -E -x c++ /dev/null | sed -nE 's/^#define __((AVX|AMX|SSE|FMA|BMI|F16C|LZCNT|POPCNT|MOVBE|GFNI|VAES|SHA|XOP|TBM)[A-Z0-9_]*)__ 1$/\1/p' | sort; }
  comm -23 <(macros "$march") <(macros native) | paste -sd' '
}

log_of() { echo "build/portability/${1//+/}/$2.log"; }

# step NAME COMMAND...: runs it in the compiler's system with the output in the cell's log; says what failed.
step() {
  local name=$1
  shift
  printf '\n$ %s\n' "$*" >>"$log"
  if ! in_system "$compiler" "$@" >>"$log" 2>&1; then
    grep -E 'error:|warning:|FAILED|\*\*\*Failed|Subprocess aborted' "$log" | head -n 20 || true
    outcome="FAILED: $name"
    return 1
  fi
}

# cell COMPILER ARCH: sets outcome and detail.
cell() {
  local compiler=$1 arch=$2 march=$2 folder=build/portability/${1//+/}/build log
  local options=() targets label='^(kernels.*|nn|comm.*|reference_losses)$' lacks=''
  detail=''
  log=$(log_of "$compiler" "$arch")
  mkdir -p "$folder"
  : >"$log"
  case $compiler in
    aarch64-*)
      options=(--toolchain scripts/cmake/aarch64-linux-gnu.cmake "-DGRADRING_SYSROOT=$PWD/build/portability/arm64"
        -DGRADRING_ONEDNN=OFF -DGRADRING_PNG=OFF -DGRADRING_JPEG=OFF)
      label='^(kernels_simt|comm.*|data)$'
      ;;
    *)
      options=("-DCMAKE_CXX_COMPILER=$(command_of "$compiler")")
      if [[ $arch == portable ]]; then march=x86-64-v2; fi
      if ! in_system "$compiler" "$compiler" -march="$march" -fsyntax-only -x c++ /dev/null 2>>"$log"; then
        step compiler "$compiler" -march=x86-64 -fsyntax-only -x c++ /dev/null || return 1
        outcome=unsupported
        return
      fi
      lacks=$(lacking "$compiler" "$march")
      ;;
  esac
  # Tests are listed when they run, not when they are linked: this processor may be unable to.
  step configure cmake -G Ninja -S . -B "$folder" -DCMAKE_BUILD_TYPE=Release -DCMAKE_COMPILE_WARNING_AS_ERROR=ON \
    -DGRADRING_CUDA=OFF "-DGRADRING_ARCH=$arch" -DCMAKE_GTEST_DISCOVER_TESTS_DISCOVERY_MODE=PRE_TEST "${options[@]}" || return 1
  mapfile -t targets < <(in_system "$compiler" ninja -C "$folder" -t targets all | suite_names | grep -E "$label" | sed 's/^/test_/')
  ((${#targets[@]})) || { outcome='FAILED: no suites'; return 1; }
  if [[ -n $lacks ]] && ((program_only)); then targets=(); fi
  step build ninja -C "$folder" -j "$jobs" -k 0 gradring "${targets[@]}" || return 1
  if [[ -n $lacks ]]; then
    outcome="built (not run: processor)"
    detail="lacks ${lacks//_/.}"
    if ((program_only)); then outcome="program built (not run: processor)"; fi
    return
  fi
  step suites env OMP_NUM_THREADS=1 ctest --test-dir "$folder" -j "$jobs" --no-tests=error --output-on-failure -L "$label" || return 1
  detail=$(count_tests "$log")
  if [[ $arch == portable && $compiler != aarch64-* ]]; then
    step "instructions of the portable build" ctest --test-dir "$folder" --no-tests=error --output-on-failure -R '^rules\.newer_instructions' || return 1
  fi
  outcome=green
  if [[ $compiler == aarch64-* ]]; then outcome="green (qemu)"; fi
}

# An interrupted cell has no result.
trap 'exit 130' INT
trap 'exit 143' TERM
failures=0
for compiler in "${compilers[@]}"; do
  own_archs=("${archs[@]}") own_failures=0
  if [[ $compiler == aarch64-* ]]; then own_archs=(portable); fi
  need_system "$compiler"
  for arch in "${own_archs[@]}"; do
    if ((!again)) && has_result "$compiler" "$arch"; then
      say "$compiler, $arch: $(result_of "$compiler" "$arch" outcome), as at $(result_of "$compiler" "$arch" commit)"
      continue
    fi
    say "$compiler, $arch: see $(log_of "$compiler" "$arch")"
    began=$SECONDS
    cell "$compiler" "$arch" || own_failures=$((own_failures + 1))
    save_result "$compiler" "$arch" $((SECONDS - began))
    say "$compiler, $arch: $outcome${detail:+: $detail}"
  done
  failures=$((failures + own_failures))
  if ((!keep && !own_failures)); then rm -rf "build/portability/${compiler//+/}/build"; fi
done
print_results
((failures == 0)) || die "$failures cells failed"
