// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring ckpt inspect PATH`: the tensors of a checkpoint or file, and what their numbers are like.
///
/// Errors    UsageError; CheckpointError.
void ckpt_inspect(std::span<const std::string> args);

}  // namespace gradring::train
