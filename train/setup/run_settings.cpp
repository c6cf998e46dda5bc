// SPDX-License-Identifier: Apache-2.0
#include "train/setup/run_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "train/config/resolve.h"
#include "train/config/toml_text.h"
#include "train/trainer/from_config.h"
#include "train/trainer/replica.h"
#include "train/trainer/training_state.h"

namespace gradring::train {
namespace {

constexpr const char* kAuto = "auto";

void replace_auto(std::string& value, std::string_view resolved) {
  if (value == kAuto) value = resolved;
}

void resolve_sizes(TrainConfig& config, int world_size) {
  const StepSizes sizes = step_sizes(config, world_size);
  config.sampler = sizes.sharded ? "sharded" : "distributed";
  if (sizes.sharded) config.shard_size = sizes.pass;
  config.global_batch = sizes.global;
  config.accumulate = 1;  // a rank's share of the global batch is divided into passes of the batch size anyway
}

void resolve_communication(TrainConfig& config, bool gpu, const WorkerEnvironment& place) {
  const bool spans_nodes = place.world_size != place.local_world_size;
  if (config.allreduce == "nccl") config.comm = "nccl";
  if (gpu && place.world_size == 1 && config.comm == kAuto) return;  // a single GPU needs no transport
  replace_auto(config.comm, gpu ? "nccl" : spans_nodes ? "tcp" : "shm");
  replace_auto(config.allreduce, config.comm == "shm" && config.zero == 0 ? "direct" : "ring");
}

constexpr std::string_view kIs = " = ";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string describe(const std::string& line, std::size_t rank, const std::string& other) {
  const std::size_t end = line.find(kIs);
  return fmt::format("{} is {} on rank 0 but {} on rank {}", line.substr(0, end), line.substr(end + kIs.size()),
                     other.substr(std::min(other.size(), other.find(kIs) + kIs.size())), rank);
}

/// The texts of all ranks, of any length: padded to the longest for the all-gather.
std::vector<std::string> gather_texts(comm::ProcessGroup& group, const std::string& mine) {
  const auto ranks = static_cast<std::size_t>(group.world_size());
  std::vector<std::int64_t> sizes(ranks, 0);
  sizes[static_cast<std::size_t>(group.rank())] = static_cast<std::int64_t>(mine.size());
  group.all_reduce_on_host(std::span(sizes));
  const auto longest = static_cast<std::size_t>(*std::ranges::max_element(sizes));

  std::string padded = mine;
  padded.resize(longest);
  const std::vector<std::byte> all = group.all_gather_on_host(std::as_bytes(std::span(padded)));
  std::vector<std::string> texts(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    texts[rank].resize(static_cast<std::size_t>(sizes[rank]));
    std::memcpy(texts[rank].data(), all.data() + rank * longest, texts[rank].size());
  }
  return texts;
}

}  // namespace

TrainConfig resolved_config(const TrainConfig& config, const Compute& compute, const WorkerEnvironment& place) {
  TrainConfig resolved = config;
  const kernels::DeviceId device = compute.device->id();
  const bool gpu = device.kind == kernels::DeviceKind::cuda;
  replace_auto(resolved.device, gpu ? "cuda" : "cpu");
  replace_auto(resolved.backend, compute.backend->name());
  resolved.precision = precision_name(precision_named(config.precision, device));
  resolved.resident = is_resident(config, *compute.device) ? "on" : "off";
  resolved.threads = compute.threads;
  replace_auto(resolved.on_nan, resolved.precision == "fp16" ? "skip" : "halt");
  resolve_sizes(resolved, place.world_size);
  resolve_communication(resolved, gpu, place);
  return resolved;
}

std::string describe_differences(std::span<const std::string> settings) {
  std::string differences;
  const std::vector<std::string> first = lines_of(settings.front());
  for (std::size_t rank = 1; rank < settings.size(); ++rank) {
    if (settings[rank] == settings.front()) continue;
    const std::vector<std::string> other = lines_of(settings[rank]);
    for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i)
      if (first[i] != other[i]) differences += (differences.empty() ? "" : "; ") + describe(first[i], rank, other[i]);
    if (first.size() != other.size()) differences += fmt::format("rank {} runs another version of gradring", rank);
  }
  return differences;
}

void check_same_settings(comm::ProcessGroup& group, const TrainConfig& config) {
  const std::string differences = describe_differences(gather_texts(group, to_toml(config)));
  if (!differences.empty()) throw ReplicaError("the ranks were started with different settings: " + differences);
}

void check_same_cpu_level(comm::ProcessGroup& group, const std::string& level) {
  const std::vector<std::string> levels = gather_texts(group, level);
  const auto other = std::ranges::find_if(levels, [&](const std::string& one) { return one != levels.front(); });
  if (other == levels.end()) return;
  const auto& [lower, higher] = std::minmax(levels.front(), *other);
  if (lower.empty())
    throw ReplicaError(fmt::format("rank 0 and rank {} train on a GPU and on a CPU: use one --device for all",
                                   other - levels.begin()));
  throw ReplicaError(
      fmt::format("rank 0 runs {} code and rank {} runs {} code, which round differently; {} on all ranks",
                  levels.front(), other - levels.begin(), *other, advice_for_cpu_level(lower, higher)));
}

std::optional<std::string> saved_settings(const Checkpoint& checkpoint) {
  const auto settings = checkpoint.about->find("settings");
  if (settings == checkpoint.about->end() || !settings->is_string()) return std::nullopt;
  return settings->get<std::string>();
}

std::string saved_setting(const Checkpoint& checkpoint, std::string_view option) {
  const auto settings = saved_settings(checkpoint);
  if (!settings) return {};
  try {
    return parse_toml(*settings)[option].value_or(std::string());
  } catch (const TomlError&) {  // not written by gradring
    return {};
  }
}

std::string step_change(const Checkpoint& checkpoint, const TrainConfig& config, int ranks) {
  const auto found = checkpoint.about->find(kSamplesOfStep);
  if (found == checkpoint.about->end() || !found->is_number_integer()) return {};
  const auto before = found->get<std::int64_t>();
  const std::int64_t now = step_sizes(config, ranks).global;
  if (before == now) return {};
  return fmt::format(
      "a step has {} samples on {} rank{}, but had {} when the checkpoint was saved: --global-batch {} keeps that for "
      "any number of ranks",
      now, ranks, ranks == 1 ? "" : "s", before, before);
}

}  // namespace gradring::train
