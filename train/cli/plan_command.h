// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring plan`: what memory the same words behind `gradring train` would take on each rank. Returns the exit code.
int plan_main(std::span<const std::string> args);

}  // namespace gradring::train
