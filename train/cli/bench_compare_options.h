// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "train/bench/timed_training.h"

namespace gradring::train {

/// What `gradring bench compare` is told.
struct CompareBenchOptions {
  std::vector<bench::TimedTrainingSpec> cases;
  std::int64_t rounds = 3;
  bool dataloader = false;
  std::string format = "auto";  ///< of PyTorch's tensors: auto, contiguous, channels_last
  std::string json_file;        ///< empty: none
  bool help = false;
};

/// Errors    UsageError.
CompareBenchOptions parse_bench_compare(std::span<const std::string> args);
std::string bench_compare_help();

}  // namespace gradring::train
