// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/work_order.h"

#include <algorithm>

namespace gradring::simulated_gpu {
namespace {

std::size_t words_in(std::size_t bytes) { return (bytes + BlockUses::kWordBytes - 1) / BlockUses::kWordBytes; }

}  // namespace

BlockUses::BlockUses(std::size_t bytes)
    : reader_(zeroed_array<std::uint32_t>(words_in(bytes))), writer_(zeroed_array<std::uint32_t>(words_in(bytes))) {}

/// The end of the words from `begin` on that have the same entries as that one.
std::size_t BlockUses::end_of_run(std::size_t begin, std::size_t end) const {
  constexpr std::size_t kTogether = 16;  // a loop without branches
  const std::uint32_t reader = reader_[begin], writer = writer_[begin];
  std::size_t word = begin;
  for (; word + kTogether <= end; word += kTogether) {
    std::uint32_t differ = 0;
    for (std::size_t i = 0; i < kTogether; ++i) differ |= (reader_[word + i] ^ reader) | (writer_[word + i] ^ writer);
    if (differ != 0) break;
  }
  while (word < end && reader_[word] == reader && writer_[word] == writer) ++word;
  return word;
}

std::optional<BlockUses::Race> BlockUses::note(std::size_t offset, std::size_t bytes, bool is_write,
                                               std::uint32_t entry, OrderCheck& check) {
  const std::size_t end = words_in(offset + bytes);
  for (std::size_t word = offset / kWordBytes, next = word; word < end; word = next) {
    if (!check.is_in_order(writer_[word])) return Race{word * kWordBytes, is_write, true, writer_[word]};
    const bool is_behind_reader = check.is_in_order(reader_[word]);
    if (is_write && !is_behind_reader) return Race{word * kWordBytes, true, false, reader_[word]};
    next = end_of_run(word, end);
    if (is_write) std::fill(writer_.get() + word, writer_.get() + next, entry);
    if (is_write || is_behind_reader) std::fill(reader_.get() + word, reader_.get() + next, is_write ? 0 : entry);
  }
  return std::nullopt;
}

std::uint32_t BlockUses::newest_writer(std::size_t offset, std::size_t bytes) const {
  return *std::max_element(writer_.get() + offset / kWordBytes, writer_.get() + words_in(offset + bytes));
}

}  // namespace gradring::simulated_gpu
