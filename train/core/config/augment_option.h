// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "data/augment/augmentation.h"
#include "train/options/usage_error.h"

namespace gradring::train {

/// Reads a list as data::parse_augmentation does.
///
/// Errors    UsageError that says what was expected.
inline data::Augmentation parse_augment(std::string_view option, std::string_view text) {
  try {
    return data::parse_augmentation(text);
  } catch (const InvalidArgument& error) {
    throw UsageError(fmt::format("--{}: {}", option, error.what()));
  }
}

}  // namespace gradring::train
