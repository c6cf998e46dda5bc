// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring::tests {

/// docs/results/cudnn.md: the engine and the workspace of every pass of every model's convolutions, by the plans of the
/// CUDA backend, with this machine's cuDNN. DevicelessCudnn::missing must be nullopt.
std::string cudnn_plan_document();

}  // namespace gradring::tests
