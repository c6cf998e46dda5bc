// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/read_bytes.h"

#include "kernels/base/available_memory.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {

std::vector<std::byte> read_bytes(const InputFile& file, const std::filesystem::path& path, std::uint64_t offset,
                                  std::uint64_t bytes) {
  require_memory(path, bytes);
  std::vector<std::byte> read(bytes);
  read_exactly(file, path, offset, read);
  return read;
}

void require_memory(const std::filesystem::path& path, std::uint64_t bytes) {
  if (const std::string lack = lack_of_memory(bytes); !lack.empty())
    throw MemoryError(path.string() + " needs " + lack +
                      "; check where the file is from; if it is right, free memory or use a machine with more");
}

}  // namespace gradring::train
