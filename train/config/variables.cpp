// SPDX-License-Identifier: Apache-2.0
#include "train/config/variables.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "kernels/runtime/cpu_level.h"
#include "kernels/runtime/nearest_name.h"
#include "train/config/options.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

constexpr std::string_view kPrefix = "GRADRING_";
/// Variables that are not options: from launcher to worker, and what is read before options are.
constexpr std::string_view kNoOptions[] = {"GRADRING_STORE", "GRADRING_PROGRESS_FILE", "GRADRING_NODE_ADDRESS",
                                           "GRADRING_TOKEN", kernels::kCpuLevelVariable};

void refuse_typo(std::string_view name) {
  std::vector<std::string> known;
  for (const Option& option : train_options()) known.push_back(variable_of(option).substr(kPrefix.size()));
  known.emplace_back(std::string_view(kernels::kCpuLevelVariable).substr(kPrefix.size()));
  const std::vector<std::string_view> views(known.begin(), known.end());
  const std::string_view nearest = nearest_name(name.substr(kPrefix.size()), views);
  if (nearest.empty()) return;
  throw UsageError(std::string(name) + " in the environment sets no option. Did you mean '" + std::string(kPrefix) +
                   std::string(nearest) + "'?");
}

}  // namespace

GivenOptions read_variables(const Variables& environment) {
  std::map<std::string, std::string> option_of;
  for (const Option& option : train_options()) option_of[variable_of(option)] = option.name;

  GivenOptions given;
  for (const auto& [name, value] : environment) {
    if (!name.starts_with(kPrefix) || std::ranges::find(kNoOptions, name) != std::end(kNoOptions)) continue;
    if (const auto option = option_of.find(name); option != option_of.end())
      given[option->second] = {value, name};
    else
      refuse_typo(name);
  }
  return given;
}

Variables system_variables() {
  Variables variables;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t end = text.find('=');
    if (end != std::string_view::npos) variables.emplace_back(text.substr(0, end), text.substr(end + 1));
  }
  return variables;
}

}  // namespace gradring::train
