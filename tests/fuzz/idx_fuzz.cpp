// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/dataset_files.h"
#include "data/files/byte_source.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_path.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const gradring::tests::MemoryPath file(data, size);
  for (int rank : {1, 3}) try {
      gradring::data::read_idx(file.path(), rank);
    } catch (const gradring::data::DataError&) {
    }
  return 0;
}
