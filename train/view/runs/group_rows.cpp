// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/group_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gradring::train {

std::vector<std::vector<std::string>> group_rows(std::span<const GroupRecord> groups) {
  std::vector<std::vector<std::string>> rows;
  for (const GroupRecord& group : groups) {
    const auto unless_frozen = [&](const std::string& text) { return group.frozen ? std::string("-") : text; };
    rows.push_back({group.patterns.empty() ? "others" : fmt::format("{}", fmt::join(group.patterns, " ")),
                    group.frozen   ? "frozen"
                    : group.epochs ? fmt::format("{}, {:g} epochs", group.optimizer, *group.epochs)
                                   : group.optimizer,
                    fmt::to_string(group.tensors), fmt::to_string(group.parameters),
                    unless_frozen(fmt::format("{:g}", group.learning_rate)),
                    unless_frozen(fmt::format("{:g}", group.weight_decay))});
  }
  return rows;
}

}  // namespace gradring::train
