// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring data verify NAME`: a line for each file.
///
/// Errors    UsageError; data::DataError if a file is missing or wrong.
void data_verify(std::span<const std::string> args);

}  // namespace gradring::train
