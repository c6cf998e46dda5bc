// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/computation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/core/config/options.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

/// An option as it is typed: "--backend cpu", "--autotune", "--no-autotune".
std::string typed(const TrainOption& option, std::string literal) {
  if (option.is_flag()) return (literal == "true" ? "--" : "--no-") + option.name;
  if (literal.size() > 2 && literal.front() == '"') literal = literal.substr(1, literal.size() - 2);
  return fmt::format("--{} {}", option.name, literal);
}

}  // namespace

JsonValue computation_of(const TrainConfig& resolved) {
  nlohmann::ordered_json options;
  for (const TrainOption& option : train_options())
    if (option.changes == Changes::rounding) options[option.name] = option.show(resolved);
  return options;
}

void check_computation(const nlohmann::ordered_json& about, const JsonValue& here, const std::filesystem::path& from) {
  const auto saved = about.find(kComputation);
  if (saved == about.end() || !saved->is_object()) return;
  std::vector<std::string> before, now;
  for (const TrainOption& option : train_options()) {
    const auto was = saved->find(option.name), is = here->find(option.name);
    if (was == saved->end() || is == here->end() || *was == *is || !was->is_string()) continue;
    before.push_back(typed(option, was->get<std::string>()));
    now.push_back(typed(option, is->get<std::string>()));
  }
  if (before.empty()) return;
  throw UsageError(fmt::format(
      "checkpoint {} was saved by a reproducible training with {}; this run has {}, which gives other bits; "
      "resume with {}, or without --reproducible",
      from.string(), fmt::join(before, " "), fmt::join(now, " "), fmt::join(before, " ")));
}

}  // namespace gradring::train
