// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/bench/collective_bench.h"
#include "kernels/base/child_process.h"

namespace gradring::comm::bench {

/// The text of comm/bench/gloo_peer.py, embedded in the binary.
extern const char* const kGlooScript;

/// A rank of a script in Python, with one thread; its stderr goes to ours.
ChildCommand rank_in_python(const std::string& python, const char* script, int rank, int world_size);

struct GlooPeerSpec {
  std::string python;      ///< an interpreter that imports torch
  std::string store_file;  ///< rendezvous file of the gloo processes: fresh, and the same on all ranks
  std::chrono::nanoseconds timeout = std::chrono::minutes(2);  ///< of each answer, and of the rendezvous
};

/// Collectives by PyTorch's gloo, for comparison. Each rank of the group starts one Python process (gloo_peer.py); these
/// form a gloo group of the same size. All ranks make the same calls in the same order.
///
/// Errors    DeviceError if a Python process ends or does not answer in time; its stderr says why.
class GlooPeer {
 public:
  /// Returns when the gloo group is formed.
  GlooPeer(ProcessGroup& group, const GlooPeerSpec& spec);

  /// "gloo of torch 1.13.0".
  const std::string& name() const { return name_; }
  /// As CollectiveBench::seconds. `collective`: allreduce (of float32), agreement (all_reduce of int64) or barrier.
  std::vector<double> seconds(const std::string& collective, std::size_t bytes, const Repetitions& repetitions);

 private:
  ProcessGroup& group_;
  std::chrono::nanoseconds timeout_;
  ChildProcess python_;
  std::string name_;
};

}  // namespace gradring::comm::bench
