// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

#include "kernels/simulated_gpu/memory/work_order.h"

namespace gradring::simulated_gpu {

/// Which work used the words of a block of global memory last, and thus races between streams: two pieces of work use a word, one
/// of them writes, and nothing puts them in an order. They are found in whichever order the work was performed.
///
/// A word has 4 bytes; work that uses different bytes of one is taken to use the same. Of several readers that have no order among
/// themselves one is remembered.
class BlockUses {
 public:
  static constexpr std::size_t kWordBytes = 4;

  explicit BlockUses(std::size_t bytes);

  /// Two uses of a word without an order.
  struct Race {
    std::size_t offset = 0;  ///< bytes
    bool is_write = false;   ///< the use that is noted
    bool was_write = false;
    std::uint32_t other = 0;  ///< the entry of the use before
  };

  /// Notes a use by the work of `check`, which has `entry` in the log.
  std::optional<Race> note(std::size_t offset, std::size_t bytes, bool is_write, std::uint32_t entry,
                           OrderCheck& check);
  /// The newest entry of work that wrote there; 0: none.
  std::uint32_t newest_writer(std::size_t offset, std::size_t bytes) const;

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  /// An entry for each word, 0: none. Zeros that take no memory before they are used.
  using Entries = std::unique_ptr<std::uint32_t[], Free>;
  static Entries entries(std::size_t count);

  Entries reader_, writer_;
};

}  // namespace gradring::simulated_gpu
