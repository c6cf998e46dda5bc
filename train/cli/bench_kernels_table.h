// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/bench/machine.h"
#include "kernels/bench/measure_case.h"

namespace gradring::train {

/// The table of `gradring bench kernels`, printed line by line as cases are measured, and kept for the file.
class KernelsTable {
 public:
  /// `machine` must outlive the table.
  explicit KernelsTable(kernels::bench::Machine& machine) : machine_(machine) {}

  /// What the machine can do, and the names of the columns.
  void begin();
  void add(const kernels::bench::KernelCase& c, const std::vector<kernels::bench::Measured>& results);

  /// All of it, for write_bench_file.
  nlohmann::json results();
  /// Of ours: that a library keeps within our bounds is not ours to promise.
  int wrong_variants() const { return wrong_; }

 private:
  nlohmann::json wrong(const kernels::bench::Measured& result);
  /// `beside`: what the others are compared with, or null.
  nlohmann::json row(const kernels::bench::KernelCase& c, const kernels::bench::Measured& result,
                     const kernels::bench::Measured* beside);

  kernels::bench::Machine& machine_;
  std::string limits_;
  nlohmann::json cases_ = nlohmann::json::array();
  int wrong_ = 0;
};

}  // namespace gradring::train
