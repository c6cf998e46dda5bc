// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/cpu_backend.h"
#include "nn/backend/cpu/onednn.h"

namespace gradring::nn {

std::unique_ptr<Plan> plan_with_onednn(std::span<const NodeSpec>, const OnednnHelpers&,
                                       const kernels::conv2d::Variant*) {
  return nullptr;
}

void set_onednn_threads(unsigned) {}

void read_openmp_environment() {}

bool has_onednn() { return false; }

std::string describe_onednn() {
  return "no oneDNN in this build, so convolutions run our plain kernels: install libdnnl-dev and build again";
}

}  // namespace gradring::nn
