// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/measure_case.h"
#include "kernels/simulated_gpu/cudart/simulated_gpu.h"
#include "train/bench/bench_run.h"

namespace gradring::train {

/// What `gradring bench kernels` does on a simulated GPU: it compares every variant with the reference, and with --counters
/// prints what its kernels execute. Printed line by line, and kept for the files.
class SimulatedKernels {
 public:
  /// `run` gets the measurements. With counters, nobody asks who wrote a wrong element: the second run would be counted, too.
  /// `device`: as kind_of gives it; part of the keys of measurements.
  SimulatedKernels(const simulated_gpu::SimulatedGpu& gpus, std::string device, bool counts, bench::BenchRun& run)
      : gpus_(gpus), device_(std::move(device)), counts_(counts), run_(run) {}

  /// `variant`: if not empty, the only one.
  ///
  /// Errors    what a variant throws, or the failure of the device.
  void check(const kernels::bench::KernelCase& c, kernels::Stream& stream, const std::string& variant);

  /// For BenchRun::finish.
  nlohmann::json results() const { return {{"cases", cases_}}; }
  int count() const { return count_; }
  int wrong() const { return wrong_; }

 private:
  /// `launches`: what the kernels of this result executed.
  nlohmann::json row(const kernels::bench::KernelCase& c, const kernels::bench::Measured& result,
                     std::span<const simulated_gpu::LaunchCounts> launches);
  void add_measurements(const kernels::bench::KernelCase& c, const std::string& variant,
                        std::span<const simulated_gpu::LaunchCounts> launches);

  const simulated_gpu::SimulatedGpu& gpus_;
  std::string device_;
  bool counts_;
  bench::BenchRun& run_;
  nlohmann::json cases_ = nlohmann::json::array();
  int count_ = 0;
  int wrong_ = 0;
};

}  // namespace gradring::train
