// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring bench loader`: how many samples a second become batches.
///
/// Errors    UsageError; DataError for the data set's files.
void bench_loader(std::span<const std::string> args);

}  // namespace gradring::train
