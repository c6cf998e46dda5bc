// SPDX-License-Identifier: Apache-2.0
#include "train/setup/step_change.h"

#include <fmt/format.h>

#include "train/trainer/checkpoint_contents.h"
#include "train/trainer/step_sizes.h"

namespace gradring::train {

std::string step_change(const Checkpoint& checkpoint, const TrainConfig& config, int ranks) {
  const auto found = checkpoint.about.find(kSamplesOfStep);
  if (found == checkpoint.about.end() || !found->is_number_integer()) return {};
  const auto before = found->get<std::int64_t>();
  const std::int64_t now = step_sizes(config, ranks).of_all;
  if (before == now) return {};
  return fmt::format(
      "a step has {} samples now, of {} rank{}, and had {} when the checkpoint was saved: --global-batch {} keeps "
      "that, "
      "whatever the number of ranks",
      now, ranks, ranks == 1 ? "" : "s", before, before);
}

}  // namespace gradring::train
