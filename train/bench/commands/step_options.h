// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/program/activation_memory.h"
#include "train/bench/commands/options.h"
#include "train/bench/step_bench.h"

namespace gradring::train {

/// What the command line of `gradring bench step` says.
struct StepBenchOptions {
  bench::StepBenchSpec spec;
  std::int64_t steps = 0;    ///< 0: not given
  std::int64_t warmup = -1;  ///< -1: not given
  nn::Checkpointing checkpointing;
  std::vector<std::int64_t> batch_sizes = {256};
  std::string device = "cpu";
  SimulatedGpuOptions simulated;
  std::vector<std::string> excluded;  ///< from the total of the counters
  BackendKind backend{};
  int nprocs = 0;  ///< 0: not given
  TransportKind comm{};
  Precision precision{};
  std::string dataset = "digits";
  std::string data_dir;
  std::int64_t threads = 1;
  CommonBenchOptions common;
};

/// The table of options, for describe<StepBenchOptions> and the command.
CommandLine command_line(StepBenchOptions& options);

/// Errors    UsageError for options that exclude each other.
void check_options(const StepBenchOptions& options);

/// Sets the steps of `spec`: those given, or the defaults of the device.
void set_default_steps(StepBenchOptions& options);

/// What could be measured here, and what is missing for the rest.
void list_steps(const StepBenchOptions& options);

}  // namespace gradring::train
