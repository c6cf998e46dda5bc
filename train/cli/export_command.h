// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring export`: a checkpoint's weights as a file that other programs read.
///
/// Returns   the exit code: 2 usage; 3 the disk; 4 a bad checkpoint.
int export_main(std::span<const std::string> args);

}  // namespace gradring::train
