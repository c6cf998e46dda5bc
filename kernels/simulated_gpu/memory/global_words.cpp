// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/memory/global_words.h"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

namespace gradring::simulated_gpu {

void GlobalWords::begin_block(const AccessClocks& clocks) {
  is_on_ = true;
  // Stamps of earlier blocks are older than this block, unless time has begun again.
  const bool begins_again = clocks.block_begin() < std::exchange(block_begin_, clocks.block_begin());
  if (begins_again) forget();
  if (pages_.size() <= kMostPages) return;
  pages_.clear();
  last_number_ = ~std::uint64_t{0};
}

void GlobalWords::forget() {
  budget_.give_back(store_.size() * sizeof(Page));
  store_.clear();
  pages_.clear();
  last_number_ = ~std::uint64_t{0};
}

GlobalWords::Page* GlobalWords::page(std::uint64_t number) {
  if (number == last_number_) return last_;
  auto found = pages_.find(number);
  if (found == pages_.end()) {
    if (pages_.size() == store_.size()) {
      if (!budget_.take(sizeof(Page))) {
        forget();
        if (!budget_.take(sizeof(Page))) return nullptr;
      }
      store_.emplace_back();
    }
    found = pages_.emplace(number, &store_[pages_.size()]).first;
  }
  last_number_ = number;
  return last_ = found->second;
}

bool GlobalWords::note_warp(std::uint64_t first, std::size_t lane_bytes, bool is_write, unsigned warp,
                            const AccessClocks& clocks) {
  const std::size_t words = kWarpSize * lane_bytes / kWordBytes;
  const std::size_t begin = first % kPageBytes / kWordBytes;
  if (begin + words > std::tuple_size_v<Stamps>) return false;
  Page* const of_words = page(first / kPageBytes);
  if (of_words == nullptr) return false;
  const unsigned first_thread = warp * kWarpSize;
  const Stamp bound = std::max(block_begin_, clocks.ordered_before(first_thread));
  const auto all_ordered = [&](const Stamps& stamps) {
    unsigned unordered = 0;
    for (std::size_t i = 0; i < words; ++i) {
      const Stamp stamp = stamps[begin + i];
      unordered += unsigned{stamp >= bound} & unsigned{(who_of(stamp) ^ first_thread) >= kWarpSize};
    }
    return unordered == 0;
  };
  if (!all_ordered(of_words->write) || !all_ordered(of_words->read)) return false;
  if (is_write && !all_ordered(of_words->other_read)) return false;
  Stamps& used = is_write ? of_words->write : of_words->read;
  const Stamp mine = clocks.stamp(first_thread);
  const int shift = std::countr_zero(lane_bytes / kWordBytes);
  for (std::size_t i = 0; i < words; ++i) used[begin + i] = mine + static_cast<Stamp>(i >> shift);
  return true;
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
    const std::size_t index = word % std::tuple_size_v<Stamps>;
    Stamp &write = of_word->write[index], &read = of_word->read[index], &other_read = of_word->other_read[index];
    compare(write, true);
    if (is_write) {
      compare(read, false);
      compare(other_read, false);
      write = mine;
    } else if (is_ordered(read)) {
      read = mine;
    } else if (is_ordered(other_read)) {
      other_read = mine;
    }
  }
  return race;
}

}  // namespace gradring::simulated_gpu
