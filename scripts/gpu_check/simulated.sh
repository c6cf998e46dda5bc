# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2034,SC2154
# For gpu_check.sh --simulated: what a simulated GPU cannot be checked for, and the images that it learns.

simulated_card=h100
simulated_limit=600 # seconds for each check at most: a simulated GPU is slow

# Checks without a counterpart on a simulated GPU, and why.
declare -A not_simulated=(
  [train_autotune]='cuDNN is not opened: a simulated GPU executes our own kernels only'
  [trace]='CUPTI needs a driver'
  [tests_nn_cuda]='cuDNN and cuBLASLt are not opened: a simulated GPU executes our own kernels only'
  [memory]='no driver tells the memory in use'
  [shared_gpu]='each process has simulated GPUs of its own: ranks cannot share one'
  [contexts]='no driver lists the processes with a context'
  [memcheck]='compute-sanitizer needs a driver; the simulated GPU checks each access itself, and a fault fails a check'
  [racecheck]='compute-sanitizer needs a driver; the simulated GPU looks for races itself, and a fault fails a check'
)
for name in speed_epoch_512 speed_epoch_2048 speed_kernels_fp16 speed_kernels_fp32 speed_adam; do
  not_simulated[$name]='a simulated GPU has no times'
done
for name in speed_pytorch_512 speed_pytorch_2048; do not_simulated[$name]='PyTorch sees no simulated GPU'; done
unset name

# simulated_suite SUITE: the test program that makes the same tests on a simulated GPU.
simulated_suite() {
  case $1 in
    kernels_runtime_cuda) echo kernels_runtime_simulated ;;
    cuda_module) echo simulated_gpu_module ;;
    *) echo "$1" ;;
  esac
}

# big_endian NUMBER: its four bytes, as escapes of printf.
big_endian() { printf '\\x%02x' $(($1 >> 24 & 255)) $(($1 >> 16 & 255)) $(($1 >> 8 & 255)) $(($1 & 255)); }

# pixels COUNT SEED: images of 28 x 28 with a light block on noise, an image a line, as escapes of printf. The class, which is
# the line's number modulo 10, is where the block is.
pixels() {
  awk -v count="$1" -v seed="$2" 'BEGIN {
    srand(seed)
    for (image = 0; image < count; ++image) {
      top = int(image % 10 / 5) * 14 + 2 + int(3 * rand())
      left = image % 5 * 5 + 1 + int(3 * rand())
      line = ""
      for (y = 0; y < 28; ++y)
        for (x = 0; x < 28; ++x) {
          light = y >= top && y < top + 8 && x >= left && x < left + 5
          line = line sprintf("\\%03o", light ? 160 + int(90 * rand()) : int(60 * rand()))
        }
      print line
    }
  }'
}

# write_set PREFIX COUNT SEED: images and labels as IDX files, as MNIST has them.
# shellcheck disable=SC2059  # escapes
write_set() {
  local line
  {
    printf "$(big_endian 2051)$(big_endian "$2")$(big_endian 28)$(big_endian 28)"
    while read -r line; do printf "$line"; done < <(pixels "$2" "$3")
  } >"$1-images-idx3-ubyte"
  {
    printf "$(big_endian 2049)$(big_endian "$2")"
    for ((line = 0; line < $2; ++line)); do printf "\\x0$((line % 10))"; done
  } >"$1-labels-idx1-ubyte"
}

# write_images FOLDER: a data set that is learned in two epochs, and evaluated within seconds.
write_images() {
  mkdir -p "$1"
  write_set "$1/train" 160 1
  write_set "$1/t10k" 100 2
}
