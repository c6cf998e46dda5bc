// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/checkpoint_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "kernels/runtime/cpu_level.h"
#include "nn/backend/cpu/onednn.h"
#include "train/checkpoint/error.h"
#include "train/options/usage_error.h"

namespace gradring::train {

nlohmann::ordered_json to_json(const kernels::Shape& shape) {
  const auto extents = shape.extents();
  return std::vector<std::int64_t>(extents.begin(), extents.end());
}

void check_sample_shape(const nlohmann::ordered_json& about, const kernels::Shape& here,
                        const std::filesystem::path& from) {
  const auto saved = about.find(kSampleShape);
  const nlohmann::ordered_json shape = to_json(here);
  if (saved == about.end() || *saved == shape) return;
  const std::string there = saved->dump().substr(0, 40);
  throw CheckpointError(from, "was trained on samples of " + there + ", but the samples here are of " + shape.dump(),
                        "use the data set that it was trained on, or another checkpoint");
}

JsonValue order_of_samples(const data::Dataset& train_set, std::uint64_t seed) {
  return nlohmann::ordered_json{{"dataset", train_set.name()}, {"samples", train_set.size()}, {"seed", seed}};
}

void check_order(const OrderCheck& check) {
  const TrainingProgress& progress = check.progress;
  if (progress.position == 0) return;
  const std::string where = fmt::format("{} was made within epoch {}, behind sample {}", check.from.string(),
                                        progress.epoch, progress.position);
  if (!(check.saved == check.here))
    throw UsageError(
        fmt::format("{} of {}, but here samples come as {}: resume with the options of that run, or from a "
                    "checkpoint at an epoch's end",
                    where, check.saved.text(), check.here.text()));
  if (!check.sampler.step_at(progress.position))
    throw UsageError(
        fmt::format("{}, which is no multiple of the {} samples of a step here: choose --global-batch, or "
                    "--batch-size and the number of ranks, so that it is one",
                    where, check.samples_of_step));
}

std::string recorded_cpu_level(const kernels::Device& device) {
  if (device.id().kind != kernels::DeviceKind::cpu) return {};
  std::string level(kernels::cpu_level_name(kernels::cpu_level()));
  for (const char* variable : nn::kOneDnnLimits)
    if (const char* limit = std::getenv(variable); limit && *limit) level += fmt::format(", {}={}", variable, limit);
  return level;
}

std::string advice_for_cpu_level(const std::string& wanted, const std::string& here) {
  if (here.starts_with(wanted + ", ")) return fmt::format("unset {}", fmt::join(nn::kOneDnnLimits, " and "));
  const auto levels = kernels::cpu_levels();
  const bool is_here =
      std::ranges::any_of(levels, [&](kernels::CpuLevel level) { return kernels::cpu_level_name(level) == wanted; });
  if (is_here) return fmt::format("set {}={}", kernels::kCpuLevelVariable, wanted);
  return fmt::format("use the build and the environment that ran {}", wanted);
}

void check_cpu_level(const nlohmann::ordered_json& about, const kernels::Device& device,
                     const std::filesystem::path& from) {
  const auto saved = about.find(kCpuLevel);
  const std::string here = recorded_cpu_level(device);
  if (saved == about.end() || !saved->is_string() || here.empty()) return;
  const auto there = saved->get<std::string>();
  if (there.empty() || there == here) return;
  throw UsageError(
      fmt::format("checkpoint {} was saved with {} code; this run uses {}, which rounds differently; {}, or resume "
                  "without --reproducible",
                  from.string(), there, here, advice_for_cpu_level(there, here)));
}

}  // namespace gradring::train
