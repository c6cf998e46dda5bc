// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring data fetch NAME`.
///
/// Errors    UsageError; data::FetchError, data::DataError as data::fetch.
void data_fetch(std::span<const std::string> args);

}  // namespace gradring::train
