// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_module/cuda_module.h"

#include <gtest/gtest.h>

#include "kernels/runtime/error.h"

namespace gradring::kernels {
namespace {

template <class Variant>
std::vector<std::string_view> names_of(std::span<const Variant> table) {
  std::vector<std::string_view> names;
  for (const Variant& variant : table) names.push_back(variant.name);
  return names;
}

TEST(CudaModule, OpensWithoutAGpuAndHoldsTheSameTables) {
  const std::string file = GRADRING_CUDA_MODULE;
  if (file.empty()) GTEST_SKIP() << "this build has no CUDA module";
  const CudaModule module(file);
  const KernelSet cpu = kernel_set();
  EXPECT_EQ(names_of(module.kernels().conv2d), names_of(cpu.conv2d));
  EXPECT_EQ(names_of(module.kernels().adam), names_of(cpu.adam));
  EXPECT_EQ(names_of(module.kernels().sum_of_squares), names_of(cpu.sum_of_squares));
  ASSERT_FALSE(module.kernels().relu.empty());
  EXPECT_NE(module.kernels().relu.front().forward, cpu.relu.front().forward) << "the module must bring its own copy";
}

TEST(CudaModule, SaysWhatToDoWhereThereIsNone) {
  try {
    const CudaModule module("/nowhere/libgradring_cuda.so");
    FAIL() << "opened a file that is not there";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("GRADRING_CUDA=ON"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace gradring::kernels
