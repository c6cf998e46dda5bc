// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring data fetch|verify|info`: gets data sets, checks them, says what is in them.
///
/// Returns   the exit code: 2 usage; 3 the network or the disk; 4 files that are not what they should be.
int data_main(std::span<const std::string> args);

}  // namespace gradring::train
