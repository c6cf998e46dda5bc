// SPDX-License-Identifier: Apache-2.0
#include "train/doctor/used.h"

#include <fmt/format.h>

#include "kernels/kernel_set.h"
#include "kernels/variant.h"
#include "nn/backend/cpu/onednn.h"
#include "train/setup/make_device.h"
#include "train/setup/processors.h"

namespace gradring::train::doctor {
namespace {

/// "conv_relu_pool native, gemm strips, ..."; those that are bound by arithmetic.
std::string variants_on(const kernels::Device& device) {
  const kernels::KernelSet kernels = kernels::kernel_set();
  const auto name = [&device](const auto& table) {
    return kernels::pick_variant(table, device, kernels::DType::f32).name;
  };
  return fmt::format("conv_relu_pool {}, conv2d {}, gemm {}, max_pool2d {}", name(kernels.conv_relu_pool),
                     name(kernels.conv2d), name(kernels.gemm), name(kernels.max_pool2d));
}

}  // namespace

std::vector<Finding> used_here(const VariableLookup& environment) {
  const unsigned threads = threads_of_rank(0, WorkerEnvironment{}, environment);
  const auto device = make_device("auto", threads);
  const auto backend = make_backend("auto", *device, threads);
  return {{"device", device->id().to_string() + ": " + device->description()},
          {"backend", fmt::format("{}: our kernels, and {}", backend->name(), nn::describe_onednn())},
          {"our kernels", variants_on(*device)},
          {"threads", fmt::format("{} for one rank; several share the cores out, or take --threads each", threads)}};
}

}  // namespace gradring::train::doctor
