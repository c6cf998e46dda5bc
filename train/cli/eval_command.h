// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring eval`: a checkpoint on the test set of a data set, each sample once.
///
/// Returns   the exit code: 2 usage; 3 no such device; 4 a bad checkpoint or bad data.
int eval_main(std::span<const std::string> args);

}  // namespace gradring::train
