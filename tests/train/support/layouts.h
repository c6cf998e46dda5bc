// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "data/datasets/dataset.h"
#include "train/core/config/train_config.h"
#include "train/records/checkpoint/checkpoint.h"

namespace gradring::train::tests {

/// How the work of a training step is distributed.
struct Layout {
  int ranks = 1;
  std::int64_t passes = 1;  ///< micro-batches of a rank in a step; 0: the shard size decides
  std::int64_t zero = 0;    ///< ZeRO stage
  bool recomputes = false;  ///< activation checkpointing

  auto operator<=>(const Layout&) const = default;
};

/// A training that must give the same result in every layout.
struct LayoutTrainingSpec {
  TrainConfig config;  ///< its global batch is divisible by every number of ranks
  const data::Dataset& train_set;
  const data::Dataset& test_set;
  std::int64_t save_at = 0;  ///< step whose checkpoint is kept; 0: none
};

struct LayoutTraining {
  std::vector<double> losses;                 ///< of each step
  std::vector<std::vector<float>> gradients;  ///< of the first step that changed weights, in state_dict order
  std::string parameters_sha256;
  Checkpoint checkpoint;
};

/// Trains on the CPU with one thread of this process per rank. Resumes from `from` if given.
///
/// Errors    the trainer's, of the lowest rank that failed.
LayoutTraining train_by(const Layout& layout, const LayoutTrainingSpec& spec, const Checkpoint* from = nullptr);

/// The difference of one layout's training from that of the first layout.
struct LayoutRow {
  Layout layout;
  double gradient_error = 0;  ///< of the first step that changed weights: the worst tensor's, as a share of its length
  double loss_error = 0;      ///< the largest difference of a step
  std::string parameters_sha256;
  std::optional<bool> resumed_equal;  ///< whether resuming from the previous layout's checkpoint gave the same weights
  bool agrees = false;
};

/// What agreement means. With exact sums every bit counts; without, floats may be added in another order, and what
/// changes no order must still give the bits of plainest().
struct Agreement {
  bool exact = false;
  double most_gradient_error = 1e-5;
  double most_loss_error = 1e-4;  ///< in every step
};

/// Every combination of 1 to `most_ranks` ranks, the given passes, all ZeRO stages, without and with activation
/// checkpointing; the plainest first.
std::vector<Layout> all_layouts(int most_ranks, const std::vector<std::int64_t>& passes);

/// Trains in each layout and compares. With `spec.save_at`, each layout is also resumed from the previous layout's
/// checkpoint. Calls `heard` with each row.
///
/// Errors    as train_by.
std::vector<LayoutRow> compare_layouts(const std::vector<Layout>& layouts, const LayoutTrainingSpec& spec,
                                       const Agreement& agreement, const std::function<void(const LayoutRow&)>& heard);

/// The plainest layout that adds floats in the same order: neither ZeRO nor recomputation changes it.
Layout plainest(const Layout& layout);

/// The same for trainings that are there; `first` is the first layout's, `same_bits` the weights that it must have.
LayoutRow compare(const Layout& layout, const LayoutTraining& training, const LayoutTraining& first,
                  const std::string& same_bits, const Agreement& agreement);

}  // namespace gradring::train::tests
