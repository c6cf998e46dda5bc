// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring predict`: what a checkpoint sees in image files.
///
/// Returns   the exit code: 2 usage; 3 no such device, no libpng; 4 a bad checkpoint or a bad image.
int predict_main(std::span<const std::string> args);

}  // namespace gradring::train
