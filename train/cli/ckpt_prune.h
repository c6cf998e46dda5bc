// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring ckpt prune RUN`: removes checkpoints that need not stay. The run may go on.
///
/// Errors    UsageError; CheckpointError if no valid one would stay; FileError; EnvironmentError.
void ckpt_prune(std::span<const std::string> args);

}  // namespace gradring::train
