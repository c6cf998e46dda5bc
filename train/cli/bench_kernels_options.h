// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "kernels/bench/case_maker.h"
#include "kernels/bench/measure_case.h"

namespace gradring::train {

/// What `gradring bench kernels` is told.
struct KernelsBenchOptions {
  std::string device = "cpu";
  std::string operation;              ///< empty: all
  std::string variant;                ///< empty: all
  kernels::bench::Extents extents{};  ///< of the operation
  kernels::DType dtype = kernels::DType::f32;
  kernels::bench::Effort effort;
  std::string json_file;  ///< empty: none
  bool no_peers = false;  ///< measure no library beside ours
  bool ncu = false;       ///< print the profiler's command instead of measuring
  bool help = false;
};

/// Errors    UsageError.
KernelsBenchOptions parse_bench_kernels(std::span<const std::string> args);
std::string bench_kernels_help();

}  // namespace gradring::train
