# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# For check_portability.sh: one file a cell, of lines "name<TAB>value", and the tables that are made of them.

results=build/portability/results

# result_of COMPILER ARCH NAME: empty where there is none.
result_of() { sed -n "s/^$3\t//p" "$results/$1_$2" 2>/dev/null || true; }

version_of() { in_system "$1" "$1" --version | head -n 1; }

save_result() {
  mkdir -p "$results"
  printf '%s\t%s\n' key "$(key_of "$1")" commit "$commit" date "$(date -I)" outcome "$outcome" detail "$detail" seconds "$3" \
    version "$(version_of "$1")" machine "$(machine)" >"$results/.new"
  mv "$results/.new" "$results/$1_$2"
}

machine() {
  awk -F': *' '/^model name/ { model = $2 } /^cpu family/ { family = $2 } /^model\t/ { number = $2 } END { printf "%s (family %s, model %s)", model, family, number }' /proc/cpuinfo
  printf ', %s processors' "$(nproc)"
}

# outcome_of COMPILER ARCH: the text of a cell.
outcome_of() {
  local outcome
  outcome=$(result_of "$1" "$2" outcome)
  if [[ $1 == aarch64-* && $2 != portable ]]; then outcome=-; fi
  echo "${outcome:-not run yet}"
}

# table: in Markdown, which is also what the terminal shows.
table() {
  local compiler arch
  printf '| compiler |'; printf ' %s |' "${all_archs[@]}"; echo
  printf '|---|'; printf '%.0s---|' "${all_archs[@]}"; echo
  for compiler in "${all_compilers[@]}"; do
    printf '| %s |' "$compiler"
    for arch in "${all_archs[@]}"; do printf ' %s |' "$(outcome_of "$compiler" "$arch")"; done
    echo
  done
}

details() {
  local compiler arch
  echo '| compiler | GRADRING_ARCH | result | tests, or what the processor lacks | seconds | commit | date |'
  echo '|---|---|---|---|---|---|---|'
  for compiler in "${all_compilers[@]}"; do
    for arch in "${all_archs[@]}"; do
      [[ -f $results/${compiler}_$arch ]] || continue
      result() { result_of "$compiler" "$arch" "$1"; }
      echo "| $compiler | $arch | $(result outcome) | $(result detail) | $(result seconds) | $(result commit) | $(result date) |"
    done
  done
}

print_results() {
  table
  echo
  details
}

# each NAME: the distinct values of it in all results.
each() { sed -n "s/^$1\t//p" "$results"/*_* | sort -u; }

# write_results FILE
write_results() {
  compgen -G "$results/*_*" >/dev/null || die "no results in $results: run scripts/check_portability.sh first"
  {
    cat <<'TEXT'
# Portability: compilers and processors

Made by `scripts/check_portability.sh --write` from results of `scripts/check_portability.sh`.

TEXT
    echo "**Machine**  $(each machine | paste -sd';')."
    echo "**Compilers**  $(each version | paste -sd';' | sed 's/;/; /g')."
    cat <<'TEXT'
**Flags**  `-DCMAKE_BUILD_TYPE=Release -DCMAKE_COMPILE_WARNING_AS_ERROR=ON -DGRADRING_CUDA=OFF`, `-DGRADRING_ARCH` as in the table.

TEXT
    table
    cat <<'TEXT'

* **green**: builds without warnings and links; all suites of kernels, nn and comm pass; the losses of 50 training steps are PyTorch's
  (1e-4 for the first 20 steps, 1e-2 after; tests/train/app/commands/reference_losses_test.cpp), on one rank, on two, and with our own
  kernels instead of oneDNN.
* **built (not run: processor)**: builds without warnings and links, suites included. This machine's processor lacks instructions that
  the code may use.
* **program built**: the same for the program; the suites were not built.
* **unsupported**: the compiler does not know the processor.
* **green (qemu)**: the program and the suites kernels_simt, comm and data are cross-compiled without warnings and link; the suites pass
  under qemu-aarch64. qemu on x86-64 runs them in x86-64's stronger memory order: it has not been tested
  on a real aarch64 processor.
* The portable build has copies of its hot code for x86-64-v3 and x86-64-v4. reference_losses runs those that this machine's
  processor has; the others are compiled and linked only. The rest of the program is disassembled: it has no instruction above
  x86-64-v2.

## Cells

TEXT
    details
  } >"$1"
  say "Wrote $1"
}
