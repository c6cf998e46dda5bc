// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/run_settings.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "comm/process_group.h"
#include "nn/models/toml_text.h"
#include "train/core/config/group_option.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/training_state.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

/// Each of these enums has it.
template <class Choice>
void replace_auto(Choice& value, Choice resolved) {
  if (value == Choice::automatic) value = resolved;
}

void resolve_communication(TrainConfig& config, bool gpu, const WorkerEnvironment& environment) {
  if (config.allreduce == AllReduce::nccl) config.comm = TransportKind::nccl;
  // A single GPU needs no transport.
  if (gpu && environment.world_size == 1 && config.comm == TransportKind::automatic) return;
  replace_auto(config.comm, gpu                         ? TransportKind::nccl
                            : environment.spans_nodes() ? TransportKind::tcp
                                                        : TransportKind::shm);
  replace_auto(config.allreduce,
               config.comm == TransportKind::shm && config.zero == 0 ? AllReduce::direct : AllReduce::ring);
}

/// The first layer that differs between the models, for a message; empty if all are equal.
std::string model_difference(const nn::ModelText& saved, const TrainConfig& config, const data::DatasetFacts& data) {
  const std::vector<std::string> now =
      nn::describe_layers(nn::make_model(model_of(config), data.shape, data.classes()));
  std::vector<std::string> before;
  try {
    before = nn::describe_layers(nn::make_model(saved, data.shape, data.classes()));
  } catch (const InvalidArgument&) {  // unknown, or for other images
    return fmt::format("{}, not {}", saved.name, config.model);
  }
  const auto line = [](const std::vector<std::string>& lines, std::size_t i) {
    return i < lines.size() ? lines[i] : std::string("no more layers");
  };
  for (std::size_t i = 0; i < std::max(now.size(), before.size()); ++i)
    if (line(now, i) != line(before, i))
      return fmt::format("layer {} was {}, and {} has {}", i + 1, line(before, i), config.model, line(now, i));
  return {};
}

}  // namespace

TrainConfig resolved_config(const TrainConfig& config, const Compute& compute, const WorkerEnvironment& environment) {
  const kernels::DeviceId device = compute.device->id();
  TrainConfig resolved = resolved_computation(config, step_sizes(config, environment.world_size), device);
  const bool gpu = device.kind == kernels::DeviceKind::cuda;
  if (resolved.device == "auto") resolved.device = gpu ? "cuda" : "cpu";
  resolved.resident = is_resident(config, *compute.device) ? Resident::on : Resident::off;
  resolved.threads = compute.threads;
  replace_auto(resolved.on_nan, resolved.precision == Precision::fp16 ? OnNan::skip : OnNan::halt);
  resolve_communication(resolved, gpu, environment);
  return resolved;
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
    const toml::table table = nn::parse_toml(*settings);
    if (const auto number = table[option].value_exact<std::int64_t>()) return std::to_string(*number);
    return table[option].value_or(std::string());
  } catch (const nn::TomlError&) {  // not written by gradring
    return {};
  }
}

nn::ModelText saved_model(const Checkpoint& checkpoint) {
  return {saved_setting(checkpoint, "model"), saved_setting(checkpoint, "model-text")};
}

void check_same_model(const Checkpoint& checkpoint, const std::filesystem::path& from, const TrainConfig& config,
                      const data::DatasetFacts& data) {
  const nn::ModelText saved = saved_model(checkpoint);
  // The parameters of two built-in models differ. Other programs save no settings.
  if (saved.name.empty() || (saved.text.empty() && config.model_text.empty())) return;
  const std::string difference = model_difference(saved, config, data);
  if (difference.empty()) return;
  throw CheckpointError(from, "was saved by a training of another model: " + difference,
                        "resume with --model and the file as it was, or start a new training with --weights");
}

void check_same_groups(const Checkpoint& checkpoint, const std::filesystem::path& from, const TrainConfig& config) {
  if (!saved_settings(checkpoint)) return;  // of another program
  const std::string before = saved_setting(checkpoint, "group"), now = show_groups(config.optimizer.groups);
  if (before == now) return;
  const auto shown = [](const std::string& groups) {
    return groups.empty() ? std::string("without --group") : fmt::format("with --group '{}'", groups);
  };
  throw CheckpointError(from, fmt::format("was saved by a training {}, this run is {}", shown(before), shown(now)),
                        "resume with the groups of that run, or start a new training with --weights");
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
