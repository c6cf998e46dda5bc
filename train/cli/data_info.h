// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring data info [NAME]`: the data sets that there are; or one of them, opened: samples, shape, classes, and each
/// channel's mean and standard deviation.
///
/// Errors    UsageError; data::DataError if the files cannot be read.
void data_info(std::span<const std::string> args);

}  // namespace gradring::train
