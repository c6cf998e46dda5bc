// SPDX-License-Identifier: Apache-2.0
#include "nn/program/activation_layout.h"

#include <algorithm>

#include "kernels/runtime/error.h"

namespace gradring::nn {
namespace {

std::size_t padded(std::size_t bytes) {
  constexpr std::size_t kUnit = ActivationLayout::kAlignment;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

/// Places a stage at `offset`; returns where the next may begin.
std::size_t place(ActivationLayout& layout, std::span<const StageBytes> stages, std::size_t stage, std::size_t offset) {
  layout.stages[stage] = {.output = offset, .saved = offset + padded(stages[stage].output)};
  const std::size_t end = offset + stages[stage].padded();
  layout.bytes = std::max(layout.bytes, end);
  return end;
}

}  // namespace

std::size_t StageBytes::padded() const { return nn::padded(output) + nn::padded(saved); }

ActivationLayout lay_out_for_backward(std::span<const StageBytes> stages, std::span<const std::size_t> ends) {
  check(!ends.empty() && ends.back() + 1 == stages.size(), "the last segment must end with the last stage");
  ActivationLayout layout{.stages = std::vector<ActivationLayout::Place>(stages.size())};
  std::size_t kept = place(layout, stages, ends.back(), 0);
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    if (end != ends.back()) kept = place(layout, stages, end, kept);
    std::size_t inside = kept;
    for (std::size_t i = first; i < end; ++i) inside = place(layout, stages, i, inside);
    first = end + 1;
  }
  return layout;
}

ActivationLayout lay_out_for_forward(std::span<const StageBytes> stages) {
  const auto turns = sizes_in_turn(stages);
  const std::array<std::size_t, 2> outputs = {0, padded(turns[0])};
  const std::size_t saved = outputs[1] + padded(turns[1]);
  ActivationLayout layout{.stages = {}, .bytes = saved};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    layout.stages.push_back({.output = outputs[(stages.size() - 1 - i) % 2], .saved = saved});
    layout.bytes = std::max(layout.bytes, saved + padded(stages[i].saved));
  }
  return layout;
}

std::array<std::size_t, 2> sizes_in_turn(std::span<const StageBytes> stages) {
  std::array<std::size_t, 2> sizes = {0, 0};
  for (std::size_t i = 0; i < stages.size(); ++i) {
    std::size_t& size = sizes[(stages.size() - 1 - i) % 2];
    size = std::max(size, stages[i].output);
  }
  return sizes;
}

}  // namespace gradring::nn
