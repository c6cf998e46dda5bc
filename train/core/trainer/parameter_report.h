// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "comm/process_group.h"
#include "kernels/base/deadline.h"
#include "train/core/config/train_config.h"
#include "train/core/trainer/replica.h"
#include "train/records/metrics/metrics.h"

namespace gradring::train {

/// Reports weights and gradients to rank 0's sinks, if one shows them (shows_parameters); else it does nothing.
///
/// Threads   the trainer's. The parts must outlive it.
class ParameterReport {
 public:
  struct Parts {
    comm::ProcessGroup& group;
    Replica& replica;
    MetricsSink& metrics;
  };
  ParameterReport(const TrainConfig& config, const Parts& parts)
      : is_on_(shows_parameters(config)), zero_(config.zero), parts_(parts) {}

  /// The replica holds the gradients of a step with this loss scale.
  void stepped(double loss_scale) { loss_scale_ = loss_scale; }
  /// Weights were copied to the host. With ZeRO 1 they come through the memory of the gradients.
  void weights_gathered() {
    if (zero_ == 1) loss_scale_.reset();
  }
  /// The replica was loaded.
  void no_gradients() { loss_scale_.reset(); }

  /// Collective with ZeRO. Every result of a step must have been taken.
  void report(std::int64_t step, Deadline deadline);

 private:
  bool is_on_;
  std::int64_t zero_;
  Parts parts_;
  std::optional<double> loss_scale_;  // factor of the gradients that the replica holds; empty: they are gone
};

}  // namespace gradring::train
