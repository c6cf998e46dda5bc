# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154
# For gpu_check.sh --pack: what it needs on another machine, as one file.

# pack BUILD FILE: writes the .tar.gz of these scripts, of what they run, and of a finished build, without symbols.
pack() {
  local build=$1 file=$2 folder name=gradring-gpu-check binary suite
  [[ -x $build/gradring ]] || die "there is no program $build/gradring"
  [[ -f $build/libgradring_cuda.so ]] || die "there is no $build/libgradring_cuda.so: build with GRADRING_CUDA=ON"
  command -v strip >/dev/null || die "no strip here: install binutils"
  folder=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$folder'" EXIT
  {
    printf '%s\n' gradring libgradring_cuda.so
    for suite in "${test_suites[@]}"; do
      binary=$(test_binary_path "$build" "$suite")
      [[ -n $binary ]] || die "no test_$suite below $build/tests: build it with GRADRING_TESTS=ON"
      echo "${binary#"$build/"}"
    done
    (cd "$build" && find tests -name 'libgradring_*_module.so') # which the tests of the CUDA module reject
  } >"$folder/built"
  mkdir -p "$folder/$name/build/packed"
  tar -cf - -C "$build" -T "$folder/built" | tar -xf - -C "$folder/$name/build/packed"
  find "$folder/$name" -type f -exec strip {} +
  tar -cf - scripts/gpu_check.sh scripts/gpu_check scripts/lib.sh train/bench/pytorch_{gpu,training}.py |
    tar -xf - -C "$folder/$name"
  mkdir -p "$(dirname "$file")"
  tar -czf "$file" --owner=0 --group=0 -C "$folder" "$name"
  printf '%s: %s, unpacked %s\n' "$file" "$(du -h --apparent-size "$file" | cut -f 1)" \
    "$(du -sh --apparent-size "$folder/$name" | cut -f 1)"
  echo "On a machine with a GPU: tar -xzf ${file##*/} && $name/scripts/gpu_check.sh --data-dir DIR"
}
