// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

namespace gradring::train {

/// The streams of a worker, by the bits that torchrun gives them.
enum class Stream { out = 1, err = 2 };

/// Which streams of which workers: what -r and -t say.
class StreamMap {
 public:
  /// None of any worker.
  StreamMap() = default;

  /// "0" none, "1" stdout, "2" stderr, "3" both, of all workers; "0:3,12:1" of these local ranks, and none of the rest.
  ///
  /// Errors    InvalidArgument if it is neither, or names a rank twice.
  static StreamMap from_text(const std::string& text);

  bool has(int local_rank, Stream stream) const;
  bool empty() const;
  /// The highest local rank that is named; -1 if none is.
  int highest_rank() const { return by_rank_.empty() ? -1 : by_rank_.rbegin()->first; }

 private:
  int of_all_ = 0;
  std::map<int, int> by_rank_;
};

}  // namespace gradring::train
