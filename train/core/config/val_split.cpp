// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/val_split.h"

#include <fmt/format.h>

#include <cmath>

#include "train/options/parse_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {

ValSplit parse_val_split(std::string_view option, std::string_view text) {
  if (text.find_first_of(".eE") == std::string_view::npos)
    return {.samples = parse_integer(option, text, {.least = 0})};
  const double fraction = parse_number(option, text, 0);
  if (fraction >= 1)
    throw UsageError(fmt::format(
        "--{} is {}, but must be a fraction below 1, such as 0.1, or a whole number of samples, such as 5000", option,
        text));
  return {.fraction = fraction};
}

std::string show_val_split(const ValSplit& split) {
  return split.fraction > 0 ? fmt::format("{}", split.fraction) : std::to_string(split.samples);
}

std::int64_t validation_samples(const ValSplit& split, std::int64_t train_samples) {
  if (!split) return 0;
  const std::int64_t held_out =
      split.fraction > 0 ? static_cast<std::int64_t>(std::floor(static_cast<double>(train_samples) * split.fraction))
                         : split.samples;
  if (held_out > 0 && held_out < train_samples) return held_out;
  throw UsageError(
      fmt::format("--val-split {} holds out {} of {} training samples, but must leave at least one on each "
                  "side: use a fraction such as 0.1",
                  show_val_split(split), held_out, train_samples));
}

}  // namespace gradring::train
