// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace gradring::data {

/// Which samples one rank visits, in which order: a pure function of (seed, epoch, rank), so that a run resumes at any
/// position without stored state.
///
/// Threads   every member function may be called from any thread.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// The indices that this rank visits in `epoch`: size() of them.
  virtual std::vector<std::int64_t> order(std::int64_t epoch) const = 0;
  /// How many positions this rank has, in every epoch.
  virtual std::int64_t size() const = 0;
  /// Whether `position` of this rank's order repeats a sample, only to give all ranks equally many.
  virtual bool padding(std::int64_t position) const = 0;
};

}  // namespace gradring::data
