// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::train {

/// What was compared is not equal. Exit code 1, as diff's and cmp's.
class DifferenceError : public Error {
 public:
  using Error::Error;
};

/// `gradring ckpt diff A B`: in which tensors two checkpoints or files differ, and how far.
///
/// Errors    UsageError; CheckpointError; DifferenceError if they differ.
void ckpt_diff(std::span<const std::string> args);

}  // namespace gradring::train
