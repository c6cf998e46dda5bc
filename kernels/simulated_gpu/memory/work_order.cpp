// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/work_order.h"

#include <algorithm>
#include <new>

namespace gradring::simulated_gpu {
namespace {

std::size_t words_in(std::size_t bytes) { return (bytes + BlockUses::kWordBytes - 1) / BlockUses::kWordBytes; }

}  // namespace

BlockUses::Entries BlockUses::entries(std::size_t count) {
  auto* const made = static_cast<std::uint32_t*>(std::calloc(count, sizeof(std::uint32_t)));
  if (made == nullptr) throw std::bad_alloc();
  return Entries(made);
}

BlockUses::BlockUses(std::size_t bytes) : reader_(entries(words_in(bytes))), writer_(entries(words_in(bytes))) {}

std::optional<BlockUses::Race> BlockUses::note(std::size_t offset, std::size_t bytes, bool is_write,
                                               std::uint32_t entry, OrderCheck& check) {
  std::uint32_t last_writer = 0, last_reader = 0;  // of the word before: mostly those of this one, too
  bool is_behind_reader = true;
  for (std::size_t word = offset / kWordBytes; word < words_in(offset + bytes); ++word) {
    std::uint32_t& reader = reader_[word];
    std::uint32_t& writer = writer_[word];
    if (writer != last_writer && !check.is_in_order(writer)) return Race{word * kWordBytes, is_write, true, writer};
    if (reader != last_reader) is_behind_reader = check.is_in_order(reader);
    last_writer = writer;
    last_reader = reader;
    if (!is_write) {
      if (is_behind_reader) reader = entry;
      continue;
    }
    if (!is_behind_reader) return Race{word * kWordBytes, true, false, reader};
    writer = entry;
    reader = 0;
  }
  return std::nullopt;
}

std::uint32_t BlockUses::newest_writer(std::size_t offset, std::size_t bytes) const {
  return *std::max_element(writer_.get() + offset / kWordBytes, writer_.get() + words_in(offset + bytes));
}

}  // namespace gradring::simulated_gpu
