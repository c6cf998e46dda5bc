// SPDX-License-Identifier: Apache-2.0
#include "nn/program/activation_memory.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "kernels/base/error.h"

namespace gradring::nn {
namespace {

std::size_t padded(std::size_t bytes) {
  constexpr std::size_t kUnit = ActivationLayout::kAlignment;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

/// Lays out a stage at `offset`; returns where the next may begin.
std::size_t lay_out(ActivationLayout& layout, std::span<const StageBytes> stages, std::size_t stage,
                    std::size_t offset) {
  layout.stages[stage].output = offset;
  layout.stages[stage].saved = offset + padded(stages[stage].output);
  const std::size_t end = offset + stages[stage].padded();
  layout.bytes = std::max(layout.bytes, end);
  return end;
}

/// Of the stages before the first one with a backward pass.
struct ForwardOnly {
  ActivationLayout layout;
  std::size_t kept = 0;  // bytes of outputs that stay, at the start of the block
};

ForwardOnly lay_out_forward_only(std::span<const StageBytes> stages, std::span<const std::size_t> last_readers,
                                 std::size_t first) {
  std::vector<StageBytes> others(stages.begin(), stages.begin() + static_cast<std::ptrdiff_t>(first));
  std::size_t kept = 0;
  std::vector<std::size_t> offsets;
  for (std::size_t i = 0; i < first; ++i) {
    offsets.push_back(kept);
    if (last_readers[i] >= first) kept += padded(std::exchange(others[i].output, 0));
  }
  ActivationLayout layout = lay_out_for_forward(others, last_readers.first(first));
  layout.bytes += kept;
  for (std::size_t i = 0; i < first; ++i) {
    ActivationLayout::Offsets& stage = layout.stages[i];
    stage.output = last_readers[i] >= first ? offsets[i] : kept + stage.output;
    stage.saved += kept;
    stage.kept += kept;
  }
  return {.layout = std::move(layout), .kept = kept};
}

/// The first segments of a program.
struct Beginning {
  std::size_t kept_bytes = 0;  // of the ends so far and the program's last stage
  Segmentation segments;
};

/// Whether `a` is no worse than `b`, whatever follows. Both end with the same stage.
bool beats(const Beginning& a, const Beginning& b) {
  return a.kept_bytes <= b.kept_bytes && a.segments.work <= b.segments.work &&
         a.segments.ends.size() <= b.segments.ends.size();
}

void add(std::vector<Beginning>& beginnings, Beginning one) {
  if (std::ranges::any_of(beginnings, [&](const Beginning& other) { return beats(other, one); })) return;
  std::erase_if(beginnings, [&](const Beginning& other) { return beats(one, other); });
  beginnings.push_back(std::move(one));
}

/// Adds the segment of stages [first, last]. The memory of the program's last stage is counted from the start.
Beginning with_segment(Beginning beginning, std::span<const StageCost> stages, std::size_t first, std::size_t last) {
  const bool is_last = last + 1 == stages.size();
  StageCost inside;
  for (std::size_t i = first; i < last; ++i) {
    inside.bytes += stages[i].bytes;
    inside.work += stages[i].work;
  }
  if (!is_last) {
    beginning.kept_bytes += stages[last].bytes;
    beginning.segments.work += inside.work;
  }
  beginning.segments.peak_bytes = std::max(beginning.segments.peak_bytes, beginning.kept_bytes + inside.bytes);
  beginning.segments.ends.push_back(last);
  return beginning;
}

/// Before the first segment.
Beginning no_segments(std::span<const StageCost> stages) {
  std::size_t kept = stages.back().bytes;
  for (const StageCost& stage : stages) kept += stage.kept_bytes;
  return {.kept_bytes = kept, .segments = {}};
}

struct Limits {
  std::size_t segments = 0;
  std::size_t bytes = 0;
};

/// The segmentation within `limits` with the least recomputation, if any.
std::optional<Segmentation> least_work(std::span<const StageCost> stages, const Limits& limits) {
  std::vector<std::vector<Beginning>> ending_before(stages.size() + 1);
  ending_before[0].push_back(no_segments(stages));
  for (std::size_t last = 0; last < stages.size(); ++last) {
    if (!stages[last].may_end) continue;
    for (std::size_t first = 0; first <= last; ++first)
      for (const Beginning& beginning : ending_before[first]) {
        Beginning longer = with_segment(beginning, stages, first, last);
        if (longer.segments.peak_bytes <= limits.bytes && longer.segments.ends.size() <= limits.segments)
          add(ending_before[last + 1], std::move(longer));
      }
  }
  const std::vector<Beginning>& all = ending_before.back();
  const auto best = std::ranges::min_element(all, {}, [](const Beginning& b) { return b.segments.work; });
  return best == all.end() ? std::nullopt : std::optional(best->segments);
}

/// The least memory for that many segments, by bisection; without work the search above is fast.
std::size_t least_bytes(std::span<const StageCost> stages, std::size_t segments) {
  std::vector<StageCost> no_work(stages.begin(), stages.end());
  std::size_t enough = 0, too_few = 0;
  for (StageCost& stage : no_work) {
    stage.work = 0;
    enough += stage.bytes + stage.kept_bytes;
  }
  while (too_few < enough) {
    const std::size_t middle = too_few + (enough - too_few) / 2;
    if (least_work(no_work, {.segments = segments, .bytes = middle}))
      enough = middle;
    else
      too_few = middle + 1;
  }
  return enough;
}

std::string in_mebibytes(std::size_t bytes) {
  const auto thousandths = static_cast<long>(std::ceil(static_cast<double>(bytes) / (1024 * 1024) * 1000));
  std::string text = std::to_string(thousandths / 1000) + "." + std::to_string(1000 + thousandths % 1000).substr(1);
  return text + " MiB";
}

}  // namespace

std::size_t BatchShards::stride(std::size_t shard_bytes) { return padded(shard_bytes); }

std::size_t StageBytes::padded() const { return nn::padded(output) + nn::padded(saved); }
std::size_t StageBytes::padded_kept() const { return nn::padded(kept); }

ActivationLayout lay_out_for_backward(std::span<const StageBytes> stages, std::span<const std::size_t> ends) {
  check(!ends.empty() && ends.back() + 1 == stages.size(), "the last segment must end with the last stage");
  ActivationLayout layout{.stages = std::vector<ActivationLayout::Offsets>(stages.size())};
  std::size_t kept = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    layout.stages[i].kept = kept;
    kept += padded(stages[i].kept);
  }
  kept = lay_out(layout, stages, ends.back(), kept);
  std::size_t first = 0;
  for (const std::size_t end : ends) {
    if (end != ends.back()) kept = lay_out(layout, stages, end, kept);
    std::size_t inside = kept;
    for (std::size_t i = first; i < end; ++i) inside = lay_out(layout, stages, i, inside);
    first = end + 1;
  }
  return layout;
}

ActivationLayout lay_out_for_training(std::span<const StageBytes> stages, std::span<const std::size_t> last_readers,
                                      std::span<const std::size_t> ends, std::size_t first) {
  std::vector<std::size_t> own_ends;
  for (const std::size_t end : ends) own_ends.push_back(end - first);
  const ActivationLayout others = lay_out_for_backward(stages.subspan(first), own_ends);
  auto [layout, kept] = lay_out_forward_only(stages, last_readers, first);
  layout.bytes = std::max(layout.bytes, kept + others.bytes);
  for (ActivationLayout::Offsets stage : others.stages) {
    stage.output += kept;
    stage.saved += kept;
    stage.kept += kept;
    layout.stages.push_back(stage);
  }
  return layout;
}

ForwardOnlyBytes forward_only_bytes(std::span<const StageBytes> stages, std::span<const std::size_t> last_readers,
                                    std::size_t first) {
  const ForwardOnly before = lay_out_forward_only(stages, last_readers, first);
  return {.kept = before.kept, .peak = before.layout.bytes};
}

ActivationLayout lay_out_for_forward(std::span<const StageBytes> stages, std::span<const std::size_t> last_readers) {
  std::vector<Lifetime> blocks;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    blocks.push_back({.bytes = stages[i].output, .first = i, .last = last_readers[i]});
    blocks.push_back({.bytes = stages[i].saved, .first = i, .last = i});
    blocks.push_back({.bytes = stages[i].kept, .first = i, .last = i});
  }
  const Placement placed = assign_offsets(blocks);
  ActivationLayout layout{.stages = {}, .bytes = placed.bytes};
  for (std::size_t i = 0; i < stages.size(); ++i)
    layout.stages.push_back(
        {.output = placed.offsets[3 * i], .saved = placed.offsets[3 * i + 1], .kept = placed.offsets[3 * i + 2]});
  return layout;
}

Placement assign_offsets(std::span<const Lifetime> blocks) {
  std::vector<std::size_t> by_size(blocks.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  std::ranges::stable_sort(by_size, std::greater(), [&](std::size_t i) { return blocks[i].bytes; });
  Placement placed{.offsets = std::vector<std::size_t>(blocks.size())};
  std::vector<std::size_t> done;  // by offset
  for (const std::size_t i : by_size) {
    std::size_t offset = 0;
    for (const std::size_t other : done) {
      if (blocks[other].last < blocks[i].first || blocks[i].last < blocks[other].first) continue;
      if (offset + padded(blocks[i].bytes) <= placed.offsets[other]) break;
      offset = std::max(offset, placed.offsets[other] + padded(blocks[other].bytes));
    }
    placed.offsets[i] = offset;
    placed.bytes = std::max(placed.bytes, offset + padded(blocks[i].bytes));
    done.insert(std::ranges::upper_bound(done, offset, {}, [&](std::size_t j) { return placed.offsets[j]; }), i);
  }
  return placed;
}

Segmentation choose_segments(std::span<const StageCost> given, const Checkpointing& checkpointing,
                             const ForwardOnlyBytes& before) {
  using Kind = Checkpointing::Kind;
  check(!given.empty(), "a program has no stages, expected 1 or more");
  check(checkpointing.kind != Kind::segments || checkpointing.segments > 0,
        [&] { return "the number of segments is " + std::to_string(checkpointing.segments) + ", expected 1 or more"; });
  std::vector<StageCost> stages(given.begin(), given.end());
  stages.front().kept_bytes += before.kept;
  if (checkpointing.kind == Kind::none) return with_segment(no_segments(stages), stages, 0, stages.size() - 1).segments;
  std::size_t most_segments = stages.size();
  if (checkpointing.kind == Kind::segments) most_segments = static_cast<std::size_t>(checkpointing.segments);

  const std::size_t least = std::max(before.peak, least_bytes(stages, most_segments));
  const bool has_budget = checkpointing.kind == Kind::automatic && checkpointing.budget_bytes > 0;
  if (has_budget && checkpointing.budget_bytes < least)
    throw InvalidArgument("the activations do not fit the budget of " + in_mebibytes(checkpointing.budget_bytes) +
                          ": they need at least " + in_mebibytes(least) +
                          "; raise the budget, or lower the batch size");
  const std::size_t bytes = has_budget ? checkpointing.budget_bytes : least;
  return *least_work(stages, {.segments = most_segments, .bytes = bytes});
}

}  // namespace gradring::nn
