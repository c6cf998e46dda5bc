// SPDX-License-Identifier: Apache-2.0
// What the reader takes, the writer writes, and the reader takes again, the same.
#include <cstdlib>

#include "tests/fuzz/fuzz_target.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/tensor_file.h"

using namespace gradring::train;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  TensorRecord tensor;
  try {
    tensor = read_npy(MemoryFile(std::as_bytes(std::span(data, size))), "fuzz");
  } catch (const CheckpointError&) {
    return 0;
  }
  gradring::tests::MemoryDisk disk;
  write_npy(disk, "/a", tensor);
  if (read_npy(*disk.open("/a"), "/a") != tensor) std::abort();
  return 0;
}
