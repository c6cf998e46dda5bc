// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/error.h"
#include "kernels/simulated_gpu/ptx/fat_binary.h"
#include "kernels/simulated_gpu/ptx/machine_code.h"
#include "tests/fuzz/fuzz_target.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    gradring::ptx::embedded_ptx(bytes);
  } catch (const gradring::ptx::PtxError&) {
  }
  try {
    for (const gradring::ptx::EmbeddedCode& code : gradring::ptx::embedded_code(bytes))
      gradring::ptx::compiled_kernels(code.elf);
  } catch (const gradring::ptx::PtxError&) {
  }
  return 0;
}
