// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring ckpt ls RUN`: a line for each checkpoint.
///
/// Errors    UsageError; CheckpointError if there are none; FileError.
void ckpt_ls(std::span<const std::string> args);

}  // namespace gradring::train
