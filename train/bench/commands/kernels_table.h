// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/machine.h"
#include "kernels/bench/measure_case.h"
#include "kernels/simulated_gpu/cudart/simulated_gpu.h"
#include "train/bench/annotated_source.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/options.h"
#include "train/bench/counted_bounds.h"

namespace gradring::train {

/// The results of `gradring bench kernels`: printed line by line as cases are measured, and kept for the files.
class KernelsTable {
 public:
  /// `run` gets the measurements, and must outlive the table.
  explicit KernelsTable(bench::BenchRun& run) : run_(run) {}

  nlohmann::json cases = nlohmann::json::array();  ///< for BenchRun::finish
  int count = 0;                                   ///< results of our variants; not counted where times are measured
  int wrong = 0;                                   ///< of these; libraries need not keep our tolerances

 protected:
  void add_case(const kernels::bench::KernelCase& c, const nlohmann::json& variants);
  void add_measurement(const kernels::bench::KernelCase& c, const std::string& variant, bench::MeasurementKey more,
                       bench::BenchMeasurement measured);

 private:
  bench::BenchRun& run_;
};

/// Of a CPU or GPU: errors and times.
class TimedKernels : public KernelsTable {
 public:
  /// Prints the machine's peaks and the column names. `bounds`: a variant that is faster than its own is wrong.
  TimedKernels(kernels::bench::Machine& machine, bench::CountedBounds bounds, bench::BenchRun& run);

  void add(const kernels::bench::KernelCase& c, const std::vector<kernels::bench::Measured>& results);

  const std::string limits;  ///< the machine's peaks

 private:
  nlohmann::json wrong_row(const kernels::bench::Measured& result);
  /// `beside`: the result to compare with, or null.
  nlohmann::json row(const kernels::bench::KernelCase& c, const kernels::bench::Measured& result,
                     const kernels::bench::Measured* beside);

  kernels::bench::Machine& machine_;
  bench::CountedBounds bounds_;
};

/// Of a simulated GPU: errors, and with --counters what the kernels execute.
class SimulatedKernels : public KernelsTable {
 public:
  /// With counters, nobody asks who wrote a wrong element: the second run would be counted, too. `device`: as kind_of
  /// gives it; part of the keys of measurements.
  SimulatedKernels(const simulated_gpu::SimulatedGpu& gpus, std::string device, const SimulatedGpuOptions& options,
                   bench::BenchRun& run)
      : KernelsTable(run),
        gpus_(gpus),
        device_(std::move(device)),
        counts_(options.counts()),
        annotation_(options.annotation),
        annotated_(options.annotation) {}

  /// Compares every variant with the reference. `variant`: if not empty, the only one.
  ///
  /// Errors    what a variant throws, or the failure of the device.
  void check(const kernels::bench::KernelCase& c, kernels::Stream& stream, const std::string& variant);
  /// The file of --annotate, if it was given.
  void write_annotated_source() const;

 private:
  /// `launches`: what the kernels of this result executed.
  nlohmann::json row(const kernels::bench::KernelCase& c, const kernels::bench::Measured& result,
                     std::span<const simulated_gpu::LaunchCounts> launches);

  const simulated_gpu::SimulatedGpu& gpus_;
  std::string device_;
  bool counts_;
  bench::AnnotationSpec annotation_;
  bench::AnnotatedSource annotated_;
};

}  // namespace gradring::train
