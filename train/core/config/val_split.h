// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gradring::train {

/// How much of the training set is held out as the validation set (--val-split): nothing, a fraction, or samples.
struct ValSplit {
  double fraction = 0;       ///< above 0 and below 1, or 0 if `samples` says it
  std::int64_t samples = 0;  ///< 0: none

  explicit operator bool() const { return fraction > 0 || samples > 0; }
  bool operator==(const ValSplit&) const = default;
};

/// Reads a fraction below 1 ("0.1", with a point or an exponent) or a number of samples ("5000"; "0": none).
///
/// Errors    UsageError that says what was expected.
ValSplit parse_val_split(std::string_view option, std::string_view text);
/// The inverse.
std::string show_val_split(const ValSplit& split);

/// The samples that are held out of `train_samples`; a fraction is rounded down.
///
/// Errors    UsageError if none or all would be.
std::int64_t validation_samples(const ValSplit& split, std::int64_t train_samples);

}  // namespace gradring::train
