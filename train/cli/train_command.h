// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring train args...`: trains as the one rank that the environment says, or spawns --nprocs ranks.
///
/// Returns   the exit code (exit_code.h).
int train_main(std::span<const std::string> args);

}  // namespace gradring::train
