// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kernels/bench/check_case.h"
#include "kernels/bench/kernel_case.h"
#include "kernels/bench/machine.h"
#include "kernels/runtime/device.h"

namespace gradring::kernels::bench {

/// How much to measure.
struct Effort {
  double seconds = 0.3;  ///< for each candidate, and for each way to time it
  int most_samples = 200;
};

inline constexpr const char* kPlainLoop = "plain loop";

/// Runs every variant, then the peers, and compares their results with the reference's and, of ours, as Comparisons::all
/// says; then times those that are right, and the plain loop, interleaved. `variant`: if not empty, the only one to run.
///
/// Times are the device's (TimedCalls): of hot calls that follow each other, and of one flushed call. What the host needs
/// to launch them is not included. The values are restored before each repetition, and where inputs do not depend on each
/// other (KernelCase::may_move) differ from all before. After the last one the recorded calls run once more, and
/// their results are compared: a candidate that does less when it is timed is wrong.
///
/// Errors    what a variant throws, or the failure of the device. What else a peer throws is its result.
std::vector<Measured> measure(const KernelCase& c, Device& device, Stream& stream, Machine& machine,
                              const Effort& effort, const std::string& variant);

}  // namespace gradring::kernels::bench
