// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernels/relu/relu.h"
#include "nn/backend/backend.h"

namespace gradring::nn {

/// A plan by oneDNN for the first of `nodes`, or null where there is none: the node is no convolution and no product,
/// or this build has no oneDNN (no_onednn.cpp). A ReLU right behind is taken along; its backward pass is the `relu`
/// kernel, which must outlive the plan.
///
/// Errors    DeviceError if oneDNN refuses the shapes; says which.
std::unique_ptr<Plan> plan_with_onednn(std::span<const NodeSpec> nodes, const kernels::relu::Variant& relu);

/// oneDNN's own environment variables that limit its instructions; where one is set, GRADRING_CPU_LEVEL does not limit oneDNN.
inline constexpr const char* kOneDnnLimits[] = {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"};

/// How many threads oneDNN computes with from now on, for work that the calling thread runs.
void set_onednn_threads(unsigned threads);

/// Whether this build has it.
bool has_onednn();

/// "oneDNN 2.6.3", or what to install to have it.
std::string describe_onednn();

}  // namespace gradring::nn
