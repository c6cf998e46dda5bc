// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "data/files/byte_source.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_path.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gradring::tests::MemoryPath file(data, size);
  std::array<std::uint8_t, 1000> out{};
  try {
    const auto source = gradring::data::open_gzip(file.path());
    while (source->read(out) == out.size()) {
    }
  } catch (const gradring::data::DataError&) {
  }
  return 0;
}
