// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "comm/transport/segment.h"
#include "kernels/runtime/stream.h"

namespace gradring::comm {

/// An all-reduce that a transport's library brings along: the yardstick for our own.
class VendorAllReduce {
 public:
  /// range = sum of all ranks' ranges, in an order that the library chooses; every rank ends with the same bits. `number`
  /// counts the group's collectives.
  ///
  /// Order     in that of `stream`; returns at once.
  /// Errors    as Transport.
  virtual void all_reduce(const SegmentRange& range, std::uint64_t number, kernels::Stream& stream) = 0;

 protected:
  ~VendorAllReduce() = default;
};

}  // namespace gradring::comm
