// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernels/bench/machine.h"
#include "kernels/bench/measure_case.h"
#include "kernels/runtime/stream.h"

namespace gradring::train {

/// "sum_kernel<float>: 264 x 256 threads, 40 registers, shared 1024 + 0 B, 48 of 64 warps", and local memory if
/// used; without a GPU's resources "sum_kernel<float>: 1 x 1 threads, shared dynamic 0 B".
std::string to_string(const kernels::LaunchReport& launch);

/// {"kernel": ..., "blocks": ..., "threads": ..., "dynamic_shared_bytes": ..., and on a GPU "registers": ...,
/// "local_bytes": ..., "static_shared_bytes": ..., "resident_warps": ..., "most_warps": ...}
nlohmann::json to_json(const kernels::LaunchReport& launch);

/// The table of `gradring bench kernels`, printed line by line as cases are measured, and kept for --json-file.
class KernelsTable {
 public:
  /// `machine` must outlive the table.
  explicit KernelsTable(kernels::bench::Machine& machine) : machine_(machine) {}

  /// Prints the machine's peaks and the column names.
  void begin();
  void add(const kernels::bench::KernelCase& c, const std::vector<kernels::bench::Measured>& results);

  /// The content for write_bench_file.
  nlohmann::json results();
  /// Counts our variants only; libraries need not keep our tolerances.
  int wrong_variants() const { return wrong_; }

 private:
  nlohmann::json wrong(const kernels::bench::Measured& result);
  /// `beside`: the result to compare with, or null.
  nlohmann::json row(const kernels::bench::KernelCase& c, const kernels::bench::Measured& result,
                     const kernels::bench::Measured* beside);

  kernels::bench::Machine& machine_;
  std::string limits_;
  nlohmann::json cases_ = nlohmann::json::array();
  int wrong_ = 0;
};

}  // namespace gradring::train
