// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/bench/all_reduce_bench.h"
#include "kernels/bench/child_process.h"

namespace gradring::comm::bench {

struct GlooPeerSpec {
  std::string python;      ///< one that imports torch; equal on all ranks or not
  std::string store_file;  ///< by which the Pythons meet: fresh, and the same on all ranks
  std::chrono::nanoseconds timeout = std::chrono::minutes(2);  ///< for each answer, and for all of them to meet
};

/// All-reduce by PyTorch's gloo, for comparison: each rank of the group keeps a Python beside it, and these are as many
/// ranks of their own (gloo_peer.py). A Python that is not asked sleeps. All ranks make the same calls in the same
/// order.
///
/// Errors    DeviceError if a Python ends or does not answer in time; what went wrong it says on stderr.
class GlooPeer {
 public:
  /// Returns when the Pythons have met.
  GlooPeer(ProcessGroup& group, const GlooPeerSpec& spec);

  /// "gloo of torch 1.13.0".
  const std::string& name() const { return name_; }
  /// As AllReduceBench::seconds, of float32.
  std::vector<double> seconds(std::size_t bytes, const Repetitions& repetitions);

 private:
  ProcessGroup& group_;
  std::chrono::nanoseconds timeout_;
  kernels::bench::ChildProcess python_;
  std::string name_;
};

}  // namespace gradring::comm::bench
