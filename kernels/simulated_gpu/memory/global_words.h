// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "kernels/simulated_gpu/memory/access_clocks.h"
#include "kernels/simulated_gpu/memory/memory_budget.h"

namespace gradring::simulated_gpu {

/// Which threads of a block wrote and read the words of global memory last, by plain accesses: finds races between its
/// warps. A barrier orders them, as it does in shared memory.
///
/// Accesses of less than a word are not compared, nor are those behind a fence, acquire or release of the block, which
/// may order its threads by a location of memory. Of the readers of a word that have no order, two are remembered.
/// What finds no room in `budget` is not compared.
///
/// Threads   one.
class GlobalWords {
 public:
  struct Race {
    bool was_write = false;
    Accessor other;
  };

  explicit GlobalWords(MemoryBudget& budget) : budget_(budget) {}

  void begin_block(const AccessClocks& clocks);
  /// Forgets all accesses until now, and gives back their memory.
  void forget();
  /// The block orders its threads by memory from now on.
  void stop() { is_on_ = false; }
  bool is_on() const { return is_on_; }
  /// Notes that a thread accesses words; the first race with another warp.
  std::optional<Race> note(std::uint64_t address, std::size_t bytes, bool is_write, unsigned thread,
                           const AccessClocks& clocks);
  /// Notes consecutive accesses of a full warp: lane i accesses `lane_bytes` bytes at first + i * lane_bytes. Returns
  /// false, and notes nothing, if one of them may race; the caller then calls note() for each lane.
  bool note_warp(std::uint64_t first, std::size_t lane_bytes, bool is_write, unsigned warp, const AccessClocks& clocks);

 private:
  static constexpr std::size_t kWordBytes = 4;
  static constexpr std::size_t kPageBytes = 1024;
  static constexpr std::size_t kMostPages = 4096;             ///< that pages_ keeps from block to block
  using Stamps = std::array<Stamp, kPageBytes / kWordBytes>;  ///< by word
  struct Page {
    Stamps write{};
    Stamps read{}, other_read{};
  };

  /// Null if there is no room.
  Page* page(std::uint64_t number);

  MemoryBudget& budget_;
  std::unordered_map<std::uint64_t, Page*> pages_;
  std::deque<Page>
      store_;  ///< pages in use first, then pages of earlier blocks, whose stamps are old; freed by forget()
  std::uint64_t last_number_ = ~std::uint64_t{0};
  Page* last_ = nullptr;
  Stamp block_begin_ = 0;
  bool is_on_ = true;
};

}  // namespace gradring::simulated_gpu
