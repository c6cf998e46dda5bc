#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# From a clone to a trained network: installs what is missing, builds gradring, trains a ConvNet on two ranks.
#
# Usage: scripts/quickstart.sh [--data-dir DIR]
#
# Trains on MNIST if its four files are in DIR, in GRADRING_DATA_DIR, or in datasets/, where `gradring data fetch mnist` puts
# them; else on `digits`, which the program generates. GRADRING_CUDA=ON builds the CUDA side and the simulated GPU, which is
# otherwise done where a GPU has its driver. Safe to run again: what is there is neither installed nor built twice.

# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# Prints the first of the given folders, or of their mnist/, that holds MNIST.
find_mnist() {
  local folder candidate
  for folder in "$@"; do
    for candidate in "$folder" "$folder/mnist"; do
      if [[ -f $candidate/train-images-idx3-ubyte || -f $candidate/train-images-idx3-ubyte.gz ]]; then
        realpath "$candidate"
        return
      fi
    done
  done
}

data_dir=
while (($#)); do
  case $1 in
    --data-dir) data_dir=${2:?"--data-dir needs a folder"}; shift 2 ;;
    --data-dir=*) data_dir=${1#*=}; shift ;;
    -h | --help) usage; exit ;;
    *) die "unknown argument '$1'; --help lists what there is" ;;
  esac
done

if [[ -n $data_dir ]]; then
  mnist=$(find_mnist "$(from_here "$data_dir")")
  [[ -n $mnist ]] || die "no train-images-idx3-ubyte(.gz) in $data_dir or $data_dir/mnist"
else
  mnist=$(find_mnist ${GRADRING_DATA_DIR:+"$(from_here "$GRADRING_DATA_DIR")"} datasets)
fi
data=(--dataset digits)
[[ -z $mnist ]] || data=(--dataset mnist --data-dir "$mnist")

need_packages "${build_packages[@]}"
# What scripts/test.sh has configured stays: switching it off would build it anew next time.
configure release "-DGRADRING_TESTS=$(cached release GRADRING_TESTS | grep . || echo OFF)" \
  "-DGRADRING_CPU_LEVELS=$(cached release GRADRING_CPU_LEVELS | grep . || echo native)" "-DGRADRING_CUDA=$(cuda_choice)"
say "Building build/release/gradring"
cmake --build --preset release --target gradring

train=(build/release/gradring launch --nproc-per-node 2 train "${data[@]}" --epochs 2)
say "Training on two ranks: ${train[*]}"
"${train[@]}"

say "Done in $(elapsed)"
cat <<END
Worth trying next:
  build/release/gradring launch --nproc-per-node 2 train ${data[*]} --epochs 3 --optimizer sgd --lr 0.05 --momentum 0.9
  build/release/gradring train --help
  scripts/test.sh
END
