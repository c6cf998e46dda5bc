// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cpu_level.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/nearest_name.h"

namespace gradring::kernels {
namespace {

/// By CpuLevel. The build defines GRADRING_CPU_LEVEL_NAMES: one name ("znver3"), or several
/// ("x86-64-v2,x86-64-v3,x86-64-v4"), of which one is empty if that level is not compiled.
const std::vector<std::string>& names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> split(1);
    for (const char c : std::string_view(GRADRING_CPU_LEVEL_NAMES))
      if (c == ',')
        split.emplace_back();
      else
        split.back() += c;
    return split;
  }();
  return names;
}

}  // namespace

std::vector<CpuLevel> cpu_levels() {
  std::vector<CpuLevel> levels;
  for (std::size_t i = 0; i < names().size(); ++i)
    if (!names()[i].empty()) levels.push_back(static_cast<CpuLevel>(i));
  return levels;
}

std::string_view cpu_level_name(CpuLevel level) { return names().at(static_cast<std::size_t>(level)); }

CpuLevel choose_cpu_level(CpuLevel supported, std::optional<std::string_view> requested) {
  if (!requested) return supported;
  const auto found = std::ranges::find(names(), *requested);
  if (found == names().end()) {
    std::vector<std::string_view> known;
    for (const CpuLevel level : cpu_levels()) known.push_back(cpu_level_name(level));
    std::string message = std::string(kCpuLevelVariable) + " is '" + std::string(*requested) +
                          "', which is not a level of this build." + did_you_mean(*requested, known) + " Levels:";
    for (const std::string_view name : known) message += " " + std::string(name);
    throw InvalidArgument(message);
  }
  const auto level = static_cast<CpuLevel>(found - names().begin());
  if (level <= supported) return level;
  throw DeviceError(std::string(kCpuLevelVariable) + " is " + std::string(*requested) +
                    ", but this processor supports at most " + std::string(cpu_level_name(supported)) +
                    ": unset it, or set a lower level");
}

CpuLevel supported_cpu_level() {
  if (!processor_has(names().front()))
    throw DeviceError("this program was compiled for " + names().front() +
                      ", which this processor lacks: build it on this machine with -DGRADRING_ARCH=native");
  CpuLevel highest = CpuLevel::baseline;
  for (const CpuLevel level : cpu_levels())
    if (processor_has(cpu_level_name(level))) highest = level;
  return highest;
}

CpuLevel cpu_level() {
  static const CpuLevel level = [] {
    const char* variable = std::getenv(kCpuLevelVariable);
    const std::string_view requested = variable ? variable : "";
    return choose_cpu_level(supported_cpu_level(), requested.empty() ? std::nullopt : std::optional(requested));
  }();
  return level;
}

}  // namespace gradring::kernels
