// SPDX-License-Identifier: Apache-2.0
#include "train/config/option_kinds.h"

#include <algorithm>
#include <cctype>
#include <limits>

#include "train/options/usage_error.h"

namespace gradring::train {

TrainOption text_option(std::string name, std::string value, std::string help, std::string TrainConfig::*field) {
  return {.name = std::move(name),
          .value = std::move(value),
          .help = std::move(help),
          .read = [field](TrainConfig& config, std::string_view given) { config.*field = std::string(given); },
          .show = [field](const TrainConfig& config) { return quoted(config.*field); }};
}

TrainOption on_or_off_option(const std::string& name, std::string help, bool TrainConfig::*field) {
  static constexpr std::string_view kOnOff[] = {"on", "off"};
  return {.name = name,
          .value = "on|off",
          .help = std::move(help),
          .read = [name, field](TrainConfig& config,
                                std::string_view given) { config.*field = parse_word(name, given, kOnOff) == "on"; },
          .show = [field](const TrainConfig& config) { return quoted(config.*field ? "on" : "off"); }};
}

TrainOption megabytes_option(const std::string& name, std::string help, std::size_t BucketLimits::*field) {
  return {.name = name,
          .value = "F",
          .help = std::move(help),
          .read = [name, field](TrainConfig& config,
                                std::string_view given) { config.buckets.*field = parse_megabytes(name, given); },
          .show = [field](const TrainConfig& config) { return show_megabytes(config.buckets.*field); }};
}

TrainOption seed_option() {
  return {.name = "seed",
          .value = "N",
          .help = "seed of the initial weights and of the shuffles",
          .read = [](TrainConfig& config, std::string_view given) { config.seed = parse_seed("seed", given); },
          .show =
              [](const TrainConfig& config) {
                const std::string digits = std::to_string(config.seed);
                const bool fits = config.seed <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
                return fits ? digits : quoted(digits);  // TOML's integers end there
              }};
}

TrainOption device_option() {
  return {.name = "device",
          .value = "auto|cpu|cuda[:I]",
          .help = "compute device; auto: a GPU if there is one; cuda: the GPU whose index is the local rank",
          .read =
              [](TrainConfig& config, std::string_view given) {
                if (given != "auto") kernels::DeviceId::parse(given);
                config.device = std::string(given);
              },
          .show = [](const TrainConfig& config) { return quoted(config.device); }};
}

TrainOption timeout_option() {
  return {
      .name = "timeout",
      .value = "TIME",
      .help = "longest wait of a rank for another: 500ms, 30s, 2m",
      .read = [](TrainConfig& config, std::string_view given) { config.timeout = parse_duration("timeout", given); },
      .show = [](const TrainConfig& config) { return quoted(show_duration(config.timeout)); }};
}

TrainOption checkpoint_activations_option() {
  const std::string name = "checkpoint-activations";
  return {.name = name,
          .value = std::string(kCheckpointingValue),
          .help =
              "activation checkpointing: number of segments whose activations are recomputed in backward; auto: as "
              "many as --activation-budget-mb requires",
          .read = [name](TrainConfig& config,
                         std::string_view given) { read_checkpointing(name, given, config.checkpointing); },
          .show = [](const TrainConfig& config) { return '"' + show_checkpointing(config.checkpointing) + '"'; }};
}

TrainOption activation_budget_option() {
  const std::string name = "activation-budget-mb";
  return {.name = name,
          .value = "F",
          .help = "memory limit for activations in MiB with --checkpoint-activations auto; 0: as little as possible",
          .read = [name](TrainConfig& config,
                         std::string_view given) { config.checkpointing.budget_bytes = parse_budget(name, given); },
          .show = [](const TrainConfig& config) { return show_megabytes(config.checkpointing.budget_bytes); }};
}

TrainOption inject_option() {
  return {.name = "inject",
          .value = "KIND:rank=R,step=N",
          .help =
              "fault before step N, for tests: kill, stop, delay (ms=M), exit (code=C) or nan; rank=any and "
              "step=20..40 are drawn (seed=S); only in the first attempt, unless attempt=K or attempt=every; may be "
              "repeated",
          .read = [](TrainConfig& config, std::string_view given) { config.faults = parse_faults(given); },
          .show = [](const TrainConfig& config) { return '"' + show_faults(config.faults) + '"'; },
          .separator = kBetweenFaults};
}

std::string quoted(const std::string& text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code == 0x7f) {
      literal += fmt::format("\\u{:04x}", code);
      continue;
    }
    if (c == '"' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + "\"";
}

void read_checkpointing(std::string_view option, std::string_view text, nn::Checkpointing& checkpointing) {
  using Kind = nn::Checkpointing::Kind;
  constexpr std::int64_t kMostSegments = 1'000'000;
  checkpointing.segments = 0;
  if (!text.empty() && std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); })) {
    checkpointing.segments = parse_integer(option, text, {.least = 1, .most = kMostSegments});
    checkpointing.kind = Kind::segments;
    return;
  }
  if (text != "none" && text != "auto")
    throw UsageError(fmt::format("--{} is '{}', but must be none, auto or a number of segments", option, text));
  checkpointing.kind = text == "none" ? Kind::none : Kind::automatic;
}

std::string show_checkpointing(const nn::Checkpointing& checkpointing) {
  using Kind = nn::Checkpointing::Kind;
  if (checkpointing.kind == Kind::segments) return std::to_string(checkpointing.segments);
  return checkpointing.kind == Kind::none ? "none" : "auto";
}

std::size_t parse_budget(std::string_view option, std::string_view text) {
  return parse_number(option, text, 0) == 0 ? 0 : parse_megabytes(option, text);
}

}  // namespace gradring::train
