// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/error.h"
#include "kernels/simulated_gpu/ptx/fat_binary.h"

namespace gradring::ptx {

std::string decompress_zstandard(std::span<const std::byte>, std::size_t) {
  throw PtxError(
      "PTX in a fat binary is compressed by Zstandard, and this gradring was built without libzstd; install "
      "libzstd-dev and build gradring again, or compile the program with nvcc --compress-mode=speed (LZ4)");
}

bool has_zstandard() { return false; }

}  // namespace gradring::ptx
