// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "comm/bench/all_reduce_bench.h"
#include "kernels/runtime/dtype.h"

namespace gradring::train {

/// What `gradring bench allreduce` is told.
struct AllReduceBenchOptions {
  std::vector<std::size_t> sizes;  ///< in bytes, rounded down to whole elements
  kernels::DType dtype = kernels::DType::f32;
  comm::bench::Repetitions repetitions;
  comm::AllReduceAlgorithm algorithm = comm::AllReduceAlgorithm::automatic;
  std::string comm = "auto";  ///< what carries the bytes: auto, shm, tcp
  bool check = true;
  bool report_iterations = false;
  bool compare_gloo = false;
  int nproc = 0;  ///< 0: not given
  std::chrono::milliseconds timeout = std::chrono::minutes(2);
  std::string json;  ///< empty: none
  bool help = false;
};

/// Errors    UsageError.
AllReduceBenchOptions parse_bench_allreduce(std::span<const std::string> args);
std::string bench_allreduce_help();

}  // namespace gradring::train
