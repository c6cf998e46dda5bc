// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/bench/all_reduce_bench.h"
#include "kernels/runtime/dtype.h"
#include "train/options/command_line.h"

namespace gradring::train {

/// Options of `gradring bench allreduce`.
struct AllReduceBenchOptions {
  std::vector<std::size_t> sizes;  ///< in bytes, rounded down to whole elements
  kernels::DType dtype = kernels::DType::f32;
  comm::bench::Repetitions repetitions;
  comm::AllReduceAlgorithm algorithm = comm::AllReduceAlgorithm::automatic;
  std::string comm = "auto";  ///< transport: auto, shm, tcp
  bool check = true;
  bool report_iterations = false;
  bool compare_gloo = false;
  int nproc = 0;  ///< 0: not given
  std::chrono::milliseconds timeout = std::chrono::minutes(2);
  std::string json;  ///< empty: none
};

/// Nothing if help was asked for and printed.
///
/// Errors    UsageError.
std::optional<AllReduceBenchOptions> parse_bench_allreduce(std::span<const std::string> args);

CommandLine bench_allreduce_line();

}  // namespace gradring::train
