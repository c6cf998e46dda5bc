// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "comm/bench/collective_bench.h"
#include "comm/process_group.h"
#include "kernels/runtime/dtype.h"
#include "train/bench/commands/options.h"

namespace gradring::train {

/// What the command line of `gradring bench allreduce` says.
struct AllReduceOptions {
  std::string collective = "allreduce";  ///< of arrays, or one of host values: agreement, barrier
  std::vector<std::string> given;        ///< names of the given options that do not apply to every collective
  std::size_t least = 4096;              ///< sizes in bytes, rounded down to whole elements
  std::size_t most = std::size_t{32} << 20;
  std::size_t factor = 2;
  std::size_t increment = 0;                   ///< instead of the factor; 0: none
  std::vector<std::size_t> sizes;              ///< instead of the range above
  std::vector<comm::bench::Payload> payloads;  ///< payloads_of
  kernels::DType dtype = kernels::DType::f32;
  comm::bench::Repetitions repetitions;
  std::string algorithm = "auto";
  std::string device = "cpu";  ///< cpu, cuda, cuda:I
  SimulatedGpuOptions simulated;
  std::string comm = "auto";  ///< transport: auto, shm, tcp, in-process, nccl
  bool check = true;
  bool report_iterations = false;
  std::string peer;  ///< "gloo", or empty
  int nproc = 0;     ///< 0: not given
  std::string plot;  ///< file to write; empty: none
  std::chrono::milliseconds timeout = std::chrono::minutes(2);
  CommonBenchOptions common;

  bool on_gpu() const { return device != "cpu"; }
  bool compare_gloo() const { return !peer.empty(); }
  bool in_process() const { return comm == "in-process"; }
  /// Whether arrays are reduced, and not host values.
  bool reduces_arrays() const { return collective == "allreduce"; }
  bool is_barrier() const { return collective == "barrier"; }
  /// The transport that --comm selects.
  const char* transport() const;
};

/// The algorithm that --algorithm names.
comm::AllReduceAlgorithm algorithm_of(const AllReduceOptions& options);

/// The table of options, for describe<AllReduceOptions> and the command.
CommandLine command_line(AllReduceOptions& options);

/// Errors    UsageError for options that exclude each other.
void check_options(const AllReduceOptions& options);

/// What is measured: of each size in bytes, from --sizes or the range; of two flags (agreement); of nothing (barrier).
///
/// Errors    UsageError if the range is empty, or has more than 10,000 sizes.
std::vector<comm::bench::Payload> payloads_of(const AllReduceOptions& options);

/// What could be measured here, and what is missing for the rest.
void list_transports(const AllReduceOptions& options);

}  // namespace gradring::train
