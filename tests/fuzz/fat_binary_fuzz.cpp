// SPDX-License-Identifier: Apache-2.0
#include "kernels/ptx/error.h"
#include "kernels/ptx/fat_binary.h"
#include "tests/fuzz/fuzz_target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    gradring::ptx::embedded_ptx(std::as_bytes(std::span(data, size)));
  } catch (const gradring::ptx::PtxError&) {
    return 0;
  }
  return 0;
}
