// SPDX-License-Identifier: Apache-2.0
#include "train/launch/logs/stream_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/runtime/error.h"
#include "train/launch/options/value.h"

namespace gradring::train {
namespace {

constexpr int kBothStreams = 3;
constexpr int kHighestRank = 65535;
constexpr const char* kForm =
    "must be 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or that by local rank, each once, as 0:3,12:1";

}  // namespace

StreamMap StreamMap::from_text(const std::string& text) try {
  StreamMap map;
  if (text.find(':') == std::string::npos) {
    map.of_all_ = whole_number(text, 0, kBothStreams);
    return map;
  }
  for (const std::string& entry : comma_separated(text)) {
    const auto colon = entry.find(':');
    if (colon == std::string::npos) throw InvalidArgument(kForm);
    const int rank = whole_number(entry.substr(0, colon), 0, kHighestRank);
    if (!map.by_rank_.emplace(rank, whole_number(entry.substr(colon + 1), 0, kBothStreams)).second)
      throw InvalidArgument(kForm);
  }
  return map;
} catch (const InvalidArgument&) {
  throw InvalidArgument(kForm);
}

bool StreamMap::has(int local_rank, Stream stream) const {
  const auto it = by_rank_.find(local_rank);
  return ((it == by_rank_.end() ? of_all_ : it->second) & static_cast<int>(stream)) != 0;
}

bool StreamMap::empty() const {
  return of_all_ == 0 && std::ranges::all_of(by_rank_, [](const auto& entry) { return entry.second == 0; });
}

}  // namespace gradring::train
