// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::train::bench {

/// The text of train/bench/pytorch_training.py, which travels inside the binary.
extern const char* const kPyTorchScript;

}  // namespace gradring::train::bench
