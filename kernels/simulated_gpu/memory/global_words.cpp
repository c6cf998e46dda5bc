// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/global_words.h"

#include <utility>

namespace gradring::simulated_gpu {

void GlobalWords::begin_block(const AccessClocks& clocks) {
  is_on_ = true;
  // Stamps of earlier blocks are older than this block, unless time has begun again.
  const bool begins_again = clocks.block_begin() < std::exchange(block_begin_, clocks.block_begin());
  if (begins_again || pages_.size() > kMostPages) forget();
}

void GlobalWords::forget() {
  budget_.give_back(pages_.size() * sizeof(Page));
  pages_.clear();
  last_number_ = ~std::uint64_t{0};
}

GlobalWords::Page* GlobalWords::page(std::uint64_t number) {
  if (number == last_number_) return last_;
  auto found = pages_.find(number);
  if (found == pages_.end()) {
    if (!budget_.take(sizeof(Page))) {
      forget();
      if (!budget_.take(sizeof(Page))) return nullptr;
    }
    found = pages_.emplace(number, std::make_unique<Page>()).first;
  }
  last_number_ = number;
  return last_ = found->second.get();
}

std::optional<GlobalWords::Race> GlobalWords::note(std::uint64_t address, std::size_t bytes, bool is_write,
                                                   unsigned thread, const AccessClocks& clocks) {
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
    Page* const of_word = page(word * kWordBytes / kPageBytes);
    if (of_word == nullptr) {
      stop();
      return race;
    }
    Word& used = (*of_word)[word % (kPageBytes / kWordBytes)];
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
