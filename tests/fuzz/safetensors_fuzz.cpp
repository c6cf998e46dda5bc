// SPDX-License-Identifier: Apache-2.0
// What the reader takes, the writer writes, and the reader takes again, the same.
#include <algorithm>
#include <cstdlib>

#include "tests/fuzz/fuzz_target.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/safetensors.h"

using namespace gradring::train;

namespace {

std::vector<TensorRecord> by_name(std::vector<TensorRecord> tensors) {
  std::ranges::sort(tensors, {}, &TensorRecord::name);
  return tensors;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<TensorRecord> tensors;
  std::map<std::string, std::string> metadata;
  try {
    const SafetensorsReader reader(std::make_unique<MemoryFile>(std::as_bytes(std::span(data, size))), "fuzz");
    for (const StoredTensor& tensor : reader.tensors()) tensors.push_back(reader.read(tensor));
    metadata = reader.metadata();
  } catch (const CheckpointError&) {
    return 0;
  }
  gradring::tests::MemoryDisk disk;
  write_safetensors(disk, "/a", plan_safetensors(tensors, metadata));
  if (by_name(read_safetensors(disk, "/a")) != by_name(tensors)) std::abort();
  return 0;
}
