// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring ckpt prune RUN`: removes checkpoints that need not stay.
///
/// Errors    UsageError; CheckpointError if no sound one would stay; FileError.
void ckpt_prune(std::span<const std::string> args);

}  // namespace gradring::train
