// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/machine.h"
#include "kernels/bench/statistics.h"
#include "kernels/runtime/launch_report.h"

namespace gradring::kernels::bench {

/// How much to measure.
struct Effort {
  double seconds = 0.3;  ///< for each candidate, and for each way to time it
  int most_samples = 200;
};

/// What was found out about one candidate of a case. What computes wrongly gets no time.
struct Measured {
  enum class Kind : std::uint8_t { variant, peer, plain_loop };
  std::string name;  ///< of the variant or the library, or "plain loop"
  Kind kind = Kind::variant;
  double error = 0;      ///< the largest, as a part of what the contract allows: above 1 the result is wrong
  Statistics hot{};      ///< seconds a call, its arrays in cache as far as they fit
  Statistics flushed{};  ///< seconds a call, its arrays in no cache
  std::vector<LaunchReport> launches{};  ///< the kernels of one call, of ours: what a library launches nobody hears of

  bool right() const { return error <= 1; }
};

inline constexpr const char* kPlainLoop = "plain loop";

/// Runs every variant once, then the peers, and holds their results against the reference's; then times those that are right,
/// and the plain loop, in turns. `variant`: of the variants only this one, if not empty.
///
/// Hot calls follow each other on the stream, and the host waits once for all of them; a flushed call is waited for by
/// itself, so that on a GPU its launch is part of its time.
///
/// Errors    what the operation throws.
std::vector<Measured> measure(const KernelCase& c, Stream& stream, Machine& machine, const Effort& effort,
                              const std::string& variant);

}  // namespace gradring::kernels::bench
