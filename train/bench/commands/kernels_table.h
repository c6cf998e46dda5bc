// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/machine.h"
#include "kernels/bench/measure_case.h"
#include "train/bench/bench_run.h"

namespace gradring::train {

/// The table of `gradring bench kernels`, printed line by line as cases are measured, and kept for the files.
class KernelsTable {
 public:
  /// `machine` and `run`, which gets the measurements, must outlive the table.
  KernelsTable(kernels::bench::Machine& machine, bench::BenchRun& run) : machine_(machine), run_(run) {}

  /// Prints the machine's peaks and the column names.
  void begin();
  void add(const kernels::bench::KernelCase& c, const std::vector<kernels::bench::Measured>& results);

  /// For BenchRun::finish.
  nlohmann::json results();
  /// Counts our variants only; libraries need not keep our tolerances.
  int wrong_variants() const { return wrong_; }

 private:
  nlohmann::json wrong(const kernels::bench::Measured& result);
  nlohmann::json emulated(const kernels::bench::Measured& result);
  /// `beside`: the result to compare with, or null.
  nlohmann::json row(const kernels::bench::KernelCase& c, const kernels::bench::Measured& result,
                     const kernels::bench::Measured* beside);

  void add_measurements(const kernels::bench::KernelCase& c, const kernels::bench::Measured& result);

  kernels::bench::Machine& machine_;
  bench::BenchRun& run_;
  std::string limits_;
  nlohmann::json cases_ = nlohmann::json::array();
  int wrong_ = 0;
};

}  // namespace gradring::train
