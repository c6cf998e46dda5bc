// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring doctor`: what was built in, what this machine has, what is used, and what would mend what is missing. Returns the
/// exit code: 0 whatever is missing.
int doctor_main(std::span<const std::string> args);

}  // namespace gradring::train
