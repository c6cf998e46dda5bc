// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/bench/layout_training.h"

namespace gradring::train::bench {

/// How one layout's training differs from that of the first.
struct LayoutRow {
  Layout layout;
  double gradient_error = 0;  ///< of the first step that changed weights: the worst tensor's, as a share of its length
  double loss_error = 0;      ///< the largest difference of a step
  std::string parameters_sha256;
  std::optional<bool> resumed_equal;  ///< whether it went on from the layout before's checkpoint to the same weights
  bool agrees = false;
};

/// What agreement means. With exact sums every bit counts; without, floats may be added in another order, and what changes no
/// order must still give the bits of plainest().
struct Agreement {
  bool exact = false;
  double most_gradient_error = 1e-5;
  double most_loss_error = 1e-4;  ///< in every step
};

/// Every combination of up to so many ranks, with the passes that are named, all stages of ZeRO, without and with recomputation;
/// the plainest first.
std::vector<Layout> all_layouts(int most_ranks, const std::vector<std::int64_t>& passes);

/// Trains by each layout and compares. With `spec.save_at`, each is trained once more from the checkpoint that the layout before
/// it made there. `heard` learns of each row.
///
/// Errors    as train_by.
std::vector<LayoutRow> compare_layouts(const std::vector<Layout>& layouts, const LayoutTrainingSpec& spec,
                                       const Agreement& agreement, const std::function<void(const LayoutRow&)>& heard);

/// The plainest layout that adds floats in the same order: neither ZeRO nor recomputation changes it.
Layout plainest(const Layout& layout);

/// The same for trainings that are there; `first` is the first layout's, `same_bits` the weights that it must have.
LayoutRow compare(const Layout& layout, const LayoutTraining& training, const LayoutTraining& first,
                  const std::string& same_bits, const Agreement& agreement);

}  // namespace gradring::train::bench
