// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/normalize_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "train/options/parse_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using Kind = NormalizeOption::Kind;

[[noreturn]] void fail(std::string_view option, std::string_view text) {
  throw bad_value(option, text,
                  "must be auto, half, dataset, or means and standard deviations of pixels from 0 to 1, one for each "
                  "channel or one for all, such as 0.49,0.48,0.45:0.25,0.24,0.26");
}

std::vector<float> numbers(std::string_view option, std::string_view text, double least) {
  if (text.empty()) throw bad_value(option, text, "must be numbers");
  std::vector<float> values;
  for (const std::string& value : comma_separated(std::string(text)))
    values.push_back(static_cast<float>(parse_float(option, value, least)));
  return values;
}

}  // namespace

NormalizeOption parse_normalize(std::string_view option, std::string_view text) {
  if (text == "auto") return {.kind = Kind::automatic};
  if (text == "half") return {.kind = Kind::half};
  if (text == "dataset") return {.kind = Kind::dataset};
  const std::size_t colon = text.find(':');
  if (colon == text.npos) fail(option, text);
  try {
    return {.kind = Kind::values,
            .mean = numbers(option, text.substr(0, colon), 0),
            .std = numbers(option, text.substr(colon + 1), std::numeric_limits<float>::min())};
  } catch (const UsageError&) {
    fail(option, text);
  }
}

std::string show_normalize(const NormalizeOption& normalize) {
  switch (normalize.kind) {
    case Kind::automatic: return "auto";
    case Kind::half: return "half";
    case Kind::dataset: return "dataset";
    case Kind::values: break;
  }
  return fmt::format("{}:{}", fmt::join(normalize.mean, ","), fmt::join(normalize.std, ","));
}

void set_normalization(data::DatasetFacts& facts, const NormalizeOption& normalize) {
  if (normalize.kind == Kind::half) facts.mean = facts.std = {0.5f};
  if (normalize.kind != Kind::values) return;
  const std::int64_t channels = facts.shape[2];
  for (const auto& values : {normalize.mean, normalize.std})
    if (values.size() != 1 && std::ssize(values) != channels)
      throw UsageError(
          fmt::format("--normalize has {} means and {} deviations, but samples of {} have {} channel{}: "
                      "give one of each for every channel, or one for all",
                      normalize.mean.size(), normalize.std.size(), facts.name, channels, channels == 1 ? "" : "s"));
  facts.mean = normalize.mean;
  facts.std = normalize.std;
}

}  // namespace gradring::train
