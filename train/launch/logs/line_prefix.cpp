// SPDX-License-Identifier: Apache-2.0
#include "train/launch/logs/line_prefix.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <string_view>

namespace gradring::train {
namespace {

constexpr std::string_view kTime = "${time}";

void fill_in(std::string& text, std::string_view name, const std::string& value) {
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

LinePrefix::LinePrefix(std::string text, const LineOwner& owner)
    : text_(text.empty() ? kDefaultLinePrefix : std::move(text)) {
  fill_in(text_, "${rank}", std::to_string(owner.rank));
  fill_in(text_, "${local_rank}", std::to_string(owner.local_rank));
  fill_in(text_, "${node_rank}", std::to_string(owner.node_rank));
  fill_in(text_, "${role_name}", owner.role_name);
}

std::string LinePrefix::now() const {
  if (text_.find(kTime) == std::string::npos) return text_;
  std::string text = text_;
  fill_in(text, kTime, local_time());
  return text;
}

}  // namespace gradring::train
