// SPDX-License-Identifier: Apache-2.0
#include "train/config/changed_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/runtime/error.h"
#include "train/config/config_file.h"
#include "train/config/options.h"

namespace gradring::train {
namespace {

constexpr std::string_view kNotCompared[] = {"resume", "weights", "run-dir", "nprocs", "progress"};

std::optional<TrainConfig> config_in(std::string_view text) {
  const auto given = read_known_options(text);
  if (!given) return std::nullopt;
  TrainConfig config;
  for (const auto& [name, value] : *given) try {
      find_option(name)->read(config, value.text);
    } catch (const InvalidArgument&) {  // a value of another version
    }
  return config;
}

/// A TOML literal as a person writes it: "cpu" without its quotes.
std::string shown(std::string literal) {
  if (literal.size() > 2 && literal.front() == '"') return literal.substr(1, literal.size() - 2);
  return literal;
}

}  // namespace

std::optional<std::vector<ChangedOption>> changed_options(std::string_view before, const TrainConfig& given,
                                                          const TrainConfig& resolved) {
  const auto earlier = config_in(before);
  if (!earlier) return std::nullopt;
  std::vector<ChangedOption> changes;
  for (const Option& option : train_options()) {
    if (std::ranges::find(kNotCompared, option.name) != std::end(kNotCompared)) continue;
    const std::string was = option.show(*earlier), is = option.show(resolved);
    if (was != is && was != option.show(given)) changes.push_back({option.name, shown(was), shown(is)});
  }
  return changes;
}

std::string to_string(std::span<const ChangedOption> changes) {
  std::string text;
  for (const auto& [name, before, now] : changes)
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", name, before, now);
  return text;
}

}  // namespace gradring::train
