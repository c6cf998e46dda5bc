// SPDX-License-Identifier: Apache-2.0
#include "train/config/checkpointing_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "train/config/parse_value.h"
#include "train/config/usage_error.h"

namespace gradring::train {

using Kind = nn::Checkpointing::Kind;

void read_checkpointing(std::string_view option, std::string_view text, nn::Checkpointing& checkpointing) {
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
  if (checkpointing.kind == Kind::segments) return std::to_string(checkpointing.segments);
  return checkpointing.kind == Kind::none ? "none" : "auto";
}

Option checkpoint_activations_option() {
  const std::string name = "checkpoint-activations";
  return {
      name, std::string(kCheckpointingWords),
      "compute activations twice instead of keeping all: so many segments, or (auto) as the memory budget wants",
      [name](TrainConfig& config, std::string_view given) { read_checkpointing(name, given, config.checkpointing); },
      [](const TrainConfig& config) { return '"' + show_checkpointing(config.checkpointing) + '"'; }};
}

Option activation_budget_option() {
  const std::string name = "activation-budget-mb";
  return {name, "F", "what activations may take, in MiB (--checkpoint-activations auto); 0: as little as can be",
          [name](TrainConfig& config, std::string_view given) {
            config.checkpointing.budget_bytes = parse_budget(name, given);
          },
          [](const TrainConfig& config) { return show_megabytes(config.checkpointing.budget_bytes); }};
}

std::size_t parse_budget(std::string_view option, std::string_view text) {
  return parse_number(option, text, 0) == 0 ? 0 : parse_megabytes(option, text);
}

}  // namespace gradring::train
