#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Plants bugs in the code for GPUs, one at a time, and reports which of them a simulated GPU finds. Needs nvcc and no GPU.
#
# Usage: scripts/planted_bugs.sh [--seeds N] [--time-limit N] [--jobs N] [FOLDER|FILE.patch...]
#
#   --seeds N        orders to try besides the default one, until one finds the bug: --simulate-seed 1 to N (default 5)
#   --time-limit N   seconds for one command (default 300)
#   --jobs N         compilations at once (default 1)
#
# Without a folder or patch it takes scripts/planted_bugs, whose patches are for the commit in docs/results/planted_bugs.md;
# later changes of the code make some of them not apply.
#
# A patch is one bug. git ignores what stands before its first "diff --git"; there it has these lines:
#
#   title: what was done wrong
#   category: its kind
#   why: what happens on a GPU (for the reader)
#   command: gradring bench kernels --device cuda --simulate-gpu h100 --op gemm
#
# HEAD, without uncommitted changes, is checked out and built in build/planted_bugs/tree. Each command first runs unchanged and
# must end with 0 and without a word from the simulator. Then its patch is applied, what it changes is compiled, for compute
# capability 9.0 alone, the command runs again, and the patch is taken back.
# build/planted_bugs/NUMBER-NAME.result has the verdict and what the command printed:
#
#   caught and named   the command fails, and a message names a kernel and its source line, or a call of CUDA or NCCL
#   caught, not named  the command fails, for instance because a result is wrong
#   hangs              the command was stopped at the time limit
#   missed             the command ends with 0 and in silence, with every seed; of a training, the result says with which
#                      seeds its weights are not those of the unchanged code, which no seed changes
#   did not build      also if the patch does not apply
#   false alarm        the command fails on unchanged code, too
#
# Prints a table at the end. Exit status: 0 if every bug was caught, else 1.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

seeds=5
time_limit=300
jobs=1
patches=()
while (($#)); do
  case $1 in
    -h | --help) usage; exit ;;
    --seeds) seeds=${2:?--seeds needs a number}; shift 2 ;;
    --time-limit) time_limit=${2:?--time-limit needs a number}; shift 2 ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift 2 ;;
    -*) die "unknown option '$1', expected --seeds, --time-limit or --jobs" ;;
    *) patches+=("$(from_here "$1")"); shift ;;
  esac
done
((${#patches[@]})) || patches=("$PWD/scripts/planted_bugs")
for path in "${patches[@]}"; do
  [[ -e $path ]] || die "$path does not exist: give a folder of patches, or patches"
done
mapfile -t patches < <(for path in "${patches[@]}"; do
  if [[ -d $path ]]; then find "$path" -maxdepth 1 -name '*.patch' | sort; else echo "$path"; fi
done)
((${#patches[@]})) || die "found no patch: give a folder of *.patch, or patches"

tree=$PWD/build/planted_bugs/tree
built=$tree/build/release
unchanged=$PWD/build/planted_bugs/unchanged
program_files=(gradring libgradring_simulated_gpu.so)
targets=(gradring gradring_simulated_gpu_module)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# field NAME PATCH: of the lines at its head.
field() { sed -n "/^diff --git/q;s/^$1: //p" "$2"; }

build() { nice cmake --build "$built" -j "$jobs" --target "${targets[@]}"; }

# run PROGRAM-FOLDER SEED COMMAND: its exit status; output in $folder/out and $folder/err, and the hash of the weights that a
# training ended with in $folder/weights.
run() {
  local words
  read -ra words <<<"$3"
  words[0]=$1/gradring
  (($2 == 0)) || words+=(--simulate-seed "$2")
  rm -rf "$folder/cwd"
  mkdir "$folder/cwd"
  local status=0
  (cd "$folder/cwd" && timeout --kill-after=10 "$time_limit" "${words[@]}") >"$folder/out" 2>"$folder/err" </dev/null ||
    status=$?
  grep -ho '"parameters_sha256": *"[0-9a-f]*"' "$folder"/cwd/runs/*/summary.json >"$folder/weights" 2>/dev/null || true
  return "$status"
}

# fails PROGRAM-FOLDER SEED COMMAND: whether it ends otherwise than with 0, or the simulator says something; sets `code`.
fails() {
  code=0
  run "$@" || code=$?
  ((code != 0)) || grep -q 'simulated GPU:' "$folder/err"
}

# naming_lines: what the simulator said first, and the first line that names a kernel and its source line, or a call other than
# those that report errors of earlier work. Nothing if no line does.
naming_lines() {
  local call='(cuda|cuTensorMap|nccl)[A-Z][A-Za-z]+' named
  named=$(grep -hE "_kernel\b.*\.(cu|cuh|h|cpp):[0-9]+|\b$call failed|simulated GPU:.*\b$call" "$folder/err" "$folder/out" |
    grep -vE -m 1 '^[^_]*(Query|Synchronize) failed' || true)
  [[ -n $named ]] || return 0
  { grep -h -m 1 '^simulated GPU:' "$folder/err" || true; echo "$named"; } | uniq |
    sed -E 's/^(simulated GPU:)? *//; s|[^ ]*/\.\./||g' | paste -sd ' ' | cut -c1-300
}

# try_seeds COMMAND: the changed program, until it fails where the unchanged one does not. Sets verdict, seed, code, and
# `differing`: the seeds with which a training ended with other weights than `expected`.
try_seeds() {
  for ((seed = 0; seed <= seeds; ++seed)); do
    if ! fails "$built" "$seed" "$1"; then
      [[ $(<"$folder/weights") == "$expected" ]] || differing+=("$seed")
      continue
    fi
    cp "$folder/out" "$folder/err" "$folder/kept"
    if ((code == 124 || code == 137)); then verdict=hangs; return; fi
    local found=$code
    if ((seed > 0)) && fails "$unchanged" "$seed" "$1"; then continue; fi
    code=$found
    cp "$folder/kept"/* "$folder"
    if [[ -n $(naming_lines) ]]; then verdict='caught and named'; else verdict='caught, not named'; fi
    return
  done
  seed=$seeds
  verdict=missed
}

# check PATCH: sets verdict, seed, code, expected and differing.
check() {
  local command
  expected=
  command=$(field command "$1")
  seed=0 code=0 differing=()
  : >"$folder/out"
  : >"$folder/err"
  if [[ $command != 'gradring '* ]]; then die "$1 has no line 'command: gradring ...' before its first 'diff --git'"; fi
  if fails "$unchanged" 0 "$command"; then verdict='false alarm'; return; fi
  expected=$(<"$folder/weights")
  git -C "$tree" checkout -q -- .
  if ! git -C "$tree" apply "$1" 2>"$folder/err" || ! build >"$folder/out" 2>&1; then
    verdict='did not build' code=-
  else
    try_seeds "$command"
  fi
  git -C "$tree" checkout -q -- .
}

# short_output: what tells why, without the lines that are right.
short_output() {
  grep -hvE ' [a-z_]+: an error of|^\[[0-9]+/[0-9]+\]|^$' "$folder/err" "$folder/out" | head -n 60 | cut -c1-400 || true
}

need_packages "${build_packages[@]}" "${test_packages[@]}"
mkdir -p "$(dirname "$tree")" "$unchanged" "$folder/kept"
git worktree prune
[[ -e $tree/.git ]] || git worktree add --detach "$tree" HEAD
git -C "$tree" checkout -q -- .
git -C "$tree" checkout -q --detach "$(git rev-parse HEAD)"
(cd "$tree" && CUDAARCHS=90 configure release -DGRADRING_CUDA=ON -DGRADRING_TESTS=ON -DGRADRING_CPU_LEVELS=all)
say "Building $(git -C "$tree" describe --always --abbrev=8 --exclude='*') unchanged"
build >"$folder/log" || { tail -n 30 "$folder/log" >&2; die "the unchanged code does not build"; }
for file in "${program_files[@]}"; do cp "$built/$file" "$unchanged/$file"; done

rows=()
failed=0
for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  began=$SECONDS
  check "$patch"
  named=$(naming_lines)
  {
    printf '%s: %s\n' verdict "$verdict" title "$(field title "$patch")" category "$(field category "$patch")" \
      command "$(field command "$patch")" commit "$(git -C "$tree" rev-parse --short=8 HEAD)" seed "$seed" 'exit code' "$code" \
      seconds "$((SECONDS - began))" 'named by' "${named:-nothing}"
    [[ -z $expected ]] || echo "other weights with seeds: ${differing[*]:-none}"
    printf '\n'
    [[ $verdict == missed ]] || short_output
  } >"build/planted_bugs/$name.result"
  [[ $verdict == caught* ]] || failed=1
  say "$name: $verdict ($(elapsed))"
  rows+=("$(printf '%-3s %-30s %-17s %4s %4s  %s' "${name%%-*}" "$(field category "$patch")" "$verdict" "$seed" "$code" \
    "${named:-$name}")")
done
printf '\n%-3s %-30s %-17s %4s %4s  %s\n' no. category verdict seed exit 'named by, or the name'
printf '%s\n' "${rows[@]}"
exit "$failed"
