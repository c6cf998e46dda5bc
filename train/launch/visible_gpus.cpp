// SPDX-License-Identifier: Apache-2.0
#include "train/launch/visible_gpus.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "train/launch/options/value.h"

namespace gradring::train {
namespace {

/// "nvidia0", but not "nvidiactl".
bool is_gpu(const std::string& file) {
  constexpr std::string_view kPrefix = "nvidia";
  return file.starts_with(kPrefix) && file.size() > kPrefix.size() &&
         std::all_of(file.begin() + kPrefix.size(), file.end(), [](unsigned char it) { return std::isdigit(it) != 0; });
}

}  // namespace

int visible_gpus(const VariableLookup& lookup, const std::filesystem::path& devices) {
  std::error_code error;
  int there = 0;
  for (const auto& entry : std::filesystem::directory_iterator(devices, error))
    there += is_gpu(entry.path().filename());
  const auto listed = lookup("CUDA_VISIBLE_DEVICES");
  if (!listed) return there;
  const auto names = comma_separated(*listed);
  // The driver ignores what stands behind the first one that is not there.
  const auto end = std::ranges::find_if(names, [](const std::string& name) { return name.empty() || name == "-1"; });
  return std::min(there, static_cast<int>(end - names.begin()));
}

}  // namespace gradring::train
