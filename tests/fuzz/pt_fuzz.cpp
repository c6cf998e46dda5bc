// SPDX-License-Identifier: Apache-2.0
// A whole archive, of a state_dict or of an optimizer; or, since a fuzzer does not guess checksums, the pickle that is
// put into one.
#include <cstdlib>

#include "tests/fuzz/fuzz_target.h"
#include "tests/train/support/memory_disk.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/tensor_file.h"
#include "train/records/checkpoint/torch_optimizer.h"
#include "train/records/checkpoint/zip_archive.h"

using namespace gradring::train;

namespace {

void read_and_write(const InputFile& file) {
  std::vector<TensorRecord> tensors;
  try {
    tensors = read_pt(file, "fuzz");
  } catch (const CheckpointError&) {
    return;
  }
  std::erase_if(tensors,
                [](const TensorRecord& tensor) { return names_of(tensor.type).torch.empty(); });  // not written
  gradring::tests::MemoryDisk disk;
  write_pt(disk, "/a", tensors);
  if (read_pt(*disk.open("/a"), "/a") != tensors) std::abort();
}

void read_and_write_optimizer(FileSystem& files) {
  TorchOptimizer optimizer;
  try {
    optimizer = read_torch_optimizer(files, "/a");
  } catch (const CheckpointError&) {
    return;
  }
  for (auto& [number, state] : optimizer.state)
    std::erase_if(state, [](const TensorRecord& tensor) { return names_of(tensor.type).torch.empty(); });
  gradring::tests::MemoryDisk disk;
  write_torch_optimizer(disk, "/a", optimizer);
  if (read_torch_optimizer(disk, "/a").state != optimizer.state) std::abort();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read_and_write(MemoryFile(bytes));
  gradring::tests::MemoryDisk whole;
  write_new_file(whole, "/a", {reinterpret_cast<const char*>(data), size});
  read_and_write_optimizer(whole);

  gradring::tests::MemoryDisk disk;
  const auto file = disk.create("/a");
  ZipWriter archive(*file, "/a");
  archive.add("a/data.pkl", bytes);
  archive.add("a/data/0", std::vector<std::byte>(24));
  archive.finish();
  read_and_write(*disk.open("/a"));
  read_and_write_optimizer(disk);
  return 0;
}
