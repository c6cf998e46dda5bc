// SPDX-License-Identifier: Apache-2.0
// The input, repeated up to two records: a fuzzer takes long to find a file's size.
#include <vector>

#include "data/datasets/dataset_files.h"
#include "data/files/byte_source.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/memory_path.h"

using namespace gradring::data;

namespace {

void read(const std::uint8_t* data, std::size_t size) {
  const gradring::tests::MemoryPath file(data, size);
  try {
    open_cifar(Cifar::ten, {file.path()});
  } catch (const DataError&) {
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read(data, size);
  if (size == 0) return 0;
  std::vector<std::uint8_t> repeated(2 * (1 + 3 * 32 * 32));
  for (std::size_t i = 0; i < repeated.size(); ++i) repeated[i] = data[i % size];
  read(repeated.data(), repeated.size());
  return 0;
}
