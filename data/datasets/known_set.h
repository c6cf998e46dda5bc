// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "kernels/runtime/shape.h"

namespace gradring::data {

/// What is known of a data set without its files.
struct KnownSet {
  std::string_view name;
  kernels::Shape sample;  ///< height, width, channels
  std::array<std::string_view, 10> classes;
};

/// One of dataset_names().
///
/// Errors    InvalidArgument for another name (names the nearest).
const KnownSet& known_set(std::string_view name);

}  // namespace gradring::data
