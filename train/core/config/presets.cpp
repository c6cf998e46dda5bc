// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "kernels/base/in_quotes.h"
#include "kernels/base/nearest_name.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

struct Preset {
  std::string_view name;
  const char* const* text;
};

constexpr std::array kPresets = {Preset{"mnist-99.6", &kMnist996Text}, Preset{"fashion-93", &kFashion93Text},
                                 Preset{"cifar10-94", &kCifar1094Text}};

constexpr auto kPresetNames = [] {
  std::array<std::string_view, kPresets.size()> names;
  std::ranges::transform(kPresets, names.begin(), &Preset::name);
  return names;
}();

/// The comments before the first option, indented.
std::string head_of(std::string_view text) {
  std::istringstream lines{std::string(text)};
  std::string head;
  for (std::string line; std::getline(lines, line) && line.starts_with("#");)
    if (!line.starts_with("# SPDX")) head += "  " + line.substr(std::min<std::size_t>(2, line.size())) + "\n";
  return head;
}

}  // namespace

std::span<const std::string_view> preset_names() { return kPresetNames; }

std::string_view preset_text(std::string_view name) {
  const auto found = std::ranges::find(kPresets, name, &Preset::name);
  if (found != kPresets.end()) return *found->text;
  throw UsageError(fmt::format("--preset is {}, but must be {} or one of {}.{}", in_quotes(name), kListPresets,
                               fmt::join(kPresetNames, ", "), did_you_mean(name, kPresetNames)));
}

GivenOptions preset_options(std::string_view name) {
  return read_config_text(preset_text(name), fmt::format("preset {}", name));
}

std::string list_of_presets() {
  std::string list;
  for (const Preset& preset : kPresets) list += fmt::format("{}\n{}\n", preset.name, head_of(*preset.text));
  return list + "gradring train --preset NAME --data-dir DIR trains one; further options override its own.\n";
}

}  // namespace gradring::train
