// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "nn/backend/cuda/cuda_backend_options.h"
#include "nn/backend/cuda/plan_cache.h"

namespace gradring::nn {

/// Plans that compute a chain of nodes one after the other.
using PlanChain = std::vector<std::unique_ptr<Plan>>;

/// The choice among several plans of a layer (--autotune): the fastest, by the time of forward and backward on the
/// device, or by what takes its place on a simulated GPU (CudaBackendOptions::time_call).
///
/// Rule       1. what this process chose for the layer before: evaluation uses what training does;
///            2. what the run that is resumed used (CudaBackendOptions::resumed_choice), if this device has it, so that
///               numerics stay;
///            3. what was measured before for the same problem and the same plans, by the same program on the same card
///               and driver (CudaBackendOptions::plan_cache);
///            4. a measurement.
/// Ranks      2 to 4 are of the rank that chooses for all (CudaBackendOptions::share_choice); a rank whose device lacks
///            that plan takes its first.
/// Threads    one. The device must outlive it.
/// Example    tests/nn/backend/cuda/plan_choice_test.cpp
class PlanChoice {
 public:
  PlanChoice(kernels::Device& device, const CudaBackendOptions& options);

  /// Whether there is anything to choose; else the first plan is the one.
  bool is_active() const { return options_.autotune; }

  /// `chains`: alternatives for `nodes`, each with all of these nodes; each is named by what its first plan says of
  /// itself, and no two alike. Every rank calls it with the same.
  ///
  /// Returns   the index of the chosen one.
  /// Errors    DeviceError if the device fails.
  std::size_t choose(std::span<const NodeSpec> nodes, std::span<const PlanChain> chains);

  /// Whether an operation of which there is no alternative, named as by Plan::description, may compute the node: not if
  /// the run that is resumed used another operation. Every rank calls it with the same.
  bool allows(const NodeSpec& node, const std::string& by) const;

 private:
  std::string choose_for_all(std::span<const NodeSpec> nodes, std::span<const PlanChain> chains);
  std::size_t fastest(std::span<const NodeSpec> nodes, std::span<const PlanChain> chains) const;
  double seconds_of(std::span<const NodeSpec> nodes, const PlanChain& chain) const;

  kernels::Device& device_;
  CudaBackendOptions options_;
  PlanCache cache_;
  std::map<std::string, std::string> chosen_;  // by layer and shape of a sample
};

}  // namespace gradring::nn
