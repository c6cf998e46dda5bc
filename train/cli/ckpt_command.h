// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring ckpt ls|verify|diff|inspect|prune`: what lies in run directories and in files of tensors.
///
/// Returns   the exit code: 1 what was compared differs; 2 usage; 3 the disk; 4 a bad checkpoint or file.
int ckpt_main(std::span<const std::string> args);

}  // namespace gradring::train
