// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/global_words.h"

#include <utility>

namespace gradring::simulated_gpu {
namespace {

/// Of a block, 200 MB: what it does after it has touched more is not compared.
constexpr std::size_t kMostPagesOfBlock = std::size_t{1} << 16;

}  // namespace

void GlobalWords::begin_block(const AccessClocks& clocks) {
  is_on_ = true;
  // Stamps of earlier blocks are older than this block, unless time has begun again.
  const bool begins_again = clocks.block_begin() < std::exchange(block_begin_, clocks.block_begin());
  if (!begins_again && pages_.size() <= kMostPages) return;
  pages_.clear();
  last_number_ = ~std::uint64_t{0};
}

GlobalWords::Page& GlobalWords::page(std::uint64_t number) {
  if (number == last_number_) return *last_;
  std::unique_ptr<Page>& page = pages_[number];
  if (page == nullptr) page = std::make_unique<Page>();
  last_number_ = number;
  last_ = page.get();
  return *last_;
}

std::optional<GlobalWords::Race> GlobalWords::note(std::uint64_t address, std::size_t bytes, bool is_write,
                                                   unsigned thread, const AccessClocks& clocks) {
  if (pages_.size() >= kMostPagesOfBlock) {
    stop();
    return std::nullopt;
  }
  std::optional<Race> race;
  const Stamp mine = clocks.stamp(thread);
  const auto is_ordered = [&](Stamp stamp) {
    return stamp < block_begin_ || Accessor{who_of(stamp)}.warp() == thread / kWarpSize ||
           clocks.is_ordered(stamp, thread);
  };
  const auto compare = [&](Stamp stamp, bool was_write) {
    if (!race && !is_ordered(stamp)) race = Race{was_write, Accessor{who_of(stamp)}};
  };
  for (std::uint64_t word = address / kWordBytes; word < (address + bytes) / kWordBytes; ++word) {
    Word& used = page(word * kWordBytes / kPageBytes)[word % (kPageBytes / kWordBytes)];
    compare(used.write, true);
    if (is_write) {
      compare(used.read, false);
      compare(used.other_read, false);
      used.write = mine;
    } else if (is_ordered(used.read)) {
      used.read = mine;
    } else if (is_ordered(used.other_read)) {
      used.other_read = mine;
    }
  }
  return race;
}

}  // namespace gradring::simulated_gpu
