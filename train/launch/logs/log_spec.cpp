// SPDX-License-Identifier: Apache-2.0
#include "train/launch/logs/log_spec.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "kernels/base/error.h"
#include "train/options/parse_value.h"

namespace gradring::train {
namespace {

constexpr int kBothStreams = 3;
constexpr int kHighestRank = 65535;
constexpr const char* kForm =
    "must be 0 (none), 1 (stdout), 2 (stderr) or 3 (both), or a list by local rank, each once, such as 0:3,12:1";
constexpr std::string_view kTime = "${time}";

void replace_all(std::string& text, std::string_view name, const std::string& value) {
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + value.size()))
    text.replace(at, name.size(), value);
}

std::string local_time() {
  using namespace std::chrono;
  const auto now = time_point_cast<milliseconds>(system_clock::now());
  const std::time_t seconds = system_clock::to_time_t(now);
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03}", fmt::localtime(seconds), now.time_since_epoch().count() % 1000);
}

}  // namespace

StreamMap StreamMap::from_text(const std::string& text) try {
  const auto number = [](const std::string& digits, int most) {
    return static_cast<int>(parse_integer("", digits, {.least = 0, .most = most}));
  };
  StreamMap map;
  if (text.find(':') == std::string::npos) {
    map.of_all_ = number(text, kBothStreams);
    return map;
  }
  for (const std::string& entry : comma_separated(text)) {
    const auto colon = entry.find(':');
    if (colon == std::string::npos) throw InvalidArgument(kForm);
    const int rank = number(entry.substr(0, colon), kHighestRank);
    if (!map.by_rank_.emplace(rank, number(entry.substr(colon + 1), kBothStreams)).second) throw InvalidArgument(kForm);
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

LinePrefix::LinePrefix(std::string text, const LineOwner& owner)
    : text_(text.empty() ? kDefaultLinePrefix : std::move(text)) {
  replace_all(text_, "${rank}", std::to_string(owner.rank));
  replace_all(text_, "${local_rank}", std::to_string(owner.local_rank));
  replace_all(text_, "${node_rank}", std::to_string(owner.node_rank));
  replace_all(text_, "${role_name}", owner.role_name);
}

std::string LinePrefix::now() const {
  if (text_.find(kTime) == std::string::npos) return text_;
  std::string text = text_;
  replace_all(text, kTime, local_time());
  return text;
}

}  // namespace gradring::train
