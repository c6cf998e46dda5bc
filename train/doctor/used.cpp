// SPDX-License-Identifier: Apache-2.0
#include "train/doctor/used.h"

#include <fmt/format.h>

#include "kernels/kernel_set.h"
#include "kernels/variant.h"
#include "nn/backend/cpu/onednn.h"
#include "train/setup/compute.h"
#include "train/setup/processors.h"

namespace gradring::train::doctor {
namespace {

/// "conv_relu_pool native, gemm strips, ..."; those that are bound by arithmetic.
std::string variants_of(const Compute& compute) {
  const kernels::KernelSet& kernels = compute.kernels;
  const auto name = [&compute](const auto& table) {
    return kernels::pick_variant(table, *compute.device, kernels::DType::f32).name;
  };
  return fmt::format("conv_relu_pool {}, conv2d {}, gemm {}, max_pool2d {}", name(kernels.conv_relu_pool),
                     name(kernels.conv2d), name(kernels.gemm), name(kernels.max_pool2d));
}

}  // namespace

std::vector<Finding> used_here(const VariableLookup& environment) {
  const unsigned threads = threads_of_rank(0, WorkerEnvironment{}, environment);
  const Compute compute = make_compute({.threads = threads});
  const kernels::Device& device = *compute.device;
  const bool gpu = device.id().kind == kernels::DeviceKind::cuda;
  return {{"device", device.id().to_string() + ": " + device.description(),
           fmt::format("{}", fmt::join(compute.remarks, "; "))},
          {"backend", fmt::format("{}: our kernels, and {}", compute.backend->name(),
                                  gpu ? "NVIDIA's libraries where they were found" : nn::describe_onednn())},
          {"our kernels", variants_of(compute)},
          {"threads", fmt::format("{} for one rank; several share the cores out, or take --threads each", threads)}};
}

}  // namespace gradring::train::doctor
