// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace gradring::train {

/// `gradring ckpt verify PATH...`: compares every byte of checkpoints, of those of whole runs, with what was saved; of files of
/// tensors, that they can be read.
///
/// Errors    UsageError; after the last one, CheckpointError if anything is damaged, else EnvironmentError if anything could
///           not be read.
void ckpt_verify(std::span<const std::string> args);

}  // namespace gradring::train
