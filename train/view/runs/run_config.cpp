// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>

#include "kernels/base/file.h"
#include "train/core/config/option_sources.h"
#include "train/core/config/options.h"
#include "train/core/setup/run_directory.h"

namespace gradring::train {
namespace {

constexpr std::string_view kNotCompared[] = {"name", "tags", "run-dir", "resume", "progress", "nprocs"};

using Facts = std::map<std::string, std::string, std::less<>>;

/// The values of a start that are compared: options, and what else may differ.
Facts facts_of(const RunHeader& header) {
  Facts facts = {{"ranks", fmt::to_string(header.ranks)}, {"commit", header.commit}, {"machine", header.machine}};
  for (const auto& [name, literal] : header.config) facts.emplace(name, unquoted(literal));
  return facts;
}

/// The values of a run that are compared; where starts that made steps differ, all of them: "0.001 -> 0.0005".
Facts facts_of(const Run& run) {
  const auto shown = [](const std::string& value) { return value.empty() ? "-" : value; };
  Facts facts, last;
  const auto& headers = run.history.headers;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    const bool is_newest = i + 1 == headers.size();
    if (!is_newest && headers[i + 1].record.resumed_from <= headers[i].record.resumed_from) continue;
    for (const auto& [name, value] : facts_of(headers[i].record)) {
      const auto [before, is_first] = last.try_emplace(name, value);
      if (is_first)
        facts[name] = value;
      else if (before->second != value)
        facts[name] = shown(facts[name]) + " -> " + shown(value);
      before->second = value;
    }
  }
  for (const auto& [name, value] : config_of(run)) facts.emplace(name, value);  // of a run without a header
  return facts;
}

std::string value_in(const Facts& facts, std::string_view name) {
  const auto found = facts.find(name);
  return found == facts.end() ? std::string() : found->second;
}

}  // namespace

std::string unquoted(std::string literal) {
  if (literal.size() >= 2 && literal.front() == '"') return literal.substr(1, literal.size() - 2);
  return literal;
}

std::vector<std::pair<std::string, std::string>> config_of(const Run& run) {
  std::vector<std::pair<std::string, std::string>> config;
  for (const auto& [name, literal] : run.header().config) config.emplace_back(name, unquoted(literal));
  if (!config.empty()) return config;
  constexpr std::size_t kLargest = 1 << 20;
  try {
    if (const auto given = read_known_options(read_small_file(newest_config(run.path), kLargest)))
      for (const auto& [name, value] : *given) config.emplace_back(name, value.text);
  } catch (const ReadError&) {  // a run directory without config.resolved.toml
  }
  return config;
}

std::vector<ConfigDifference> config_differences(std::span<const Run> runs) {
  std::vector<Facts> known;
  std::vector<std::string> names = {"ranks", "commit", "machine"};
  for (const TrainOption& option : train_options()) names.push_back(option.name);
  for (const Run& run : runs)
    for (const auto& [name, text] : known.emplace_back(facts_of(run)))
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);  // of another version
  std::vector<ConfigDifference> differences;
  for (const std::string& name : names) {
    if (std::ranges::find(kNotCompared, name) != std::end(kNotCompared)) continue;
    ConfigDifference difference{.name = name, .values = {}};
    for (const Facts& facts : known) difference.values.push_back(value_in(facts, name));
    if (std::ranges::adjacent_find(difference.values, std::not_equal_to()) != difference.values.end())
      differences.push_back(std::move(difference));
  }
  return differences;
}

}  // namespace gradring::train
