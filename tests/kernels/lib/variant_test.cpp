// SPDX-License-Identifier: Apache-2.0
#include "kernels/lib/variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/host/host_device.h"
#include "kernels/ops/kernel_set.h"

namespace gradring::kernels {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Variant, IsFoundByName) { EXPECT_EQ(find_variant(kernel_set().conv2d, "direct").name, "direct"); }

TEST(Variant, UnknownNameSuggestsTheNearest) {
  try {
    find_variant(kernel_set().conv2d, "dirct");
    FAIL() << "there is no such variant";
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("'dirct'"), HasSubstr("mean 'direct'"), HasSubstr("expected one of direct")));
  }
}

TEST(Variant, IsPickedByTypeAndDevice) {
  HostDevice device;
  EXPECT_TRUE(pick_variant(kernel_set().relu, device, DType::f16).supports(device, DType::f16));
  EXPECT_THROW(pick_variant(kernel_set().relu, device, DType::i32), InvalidArgument);
}

TEST(Variant, IsPickedFromTheTopOfTheLadder) {
  HostDevice device;
  EXPECT_EQ(pick_variant(kernel_set().conv_relu_pool, device, DType::f32).name, "native");
  EXPECT_EQ(pick_variant(kernel_set().conv_relu_pool, device, DType::f16).name, "direct");
  EXPECT_EQ(pick_variant(kernel_set().conv2d, device, DType::f32).name, "panels");
  EXPECT_EQ(pick_variant(kernel_set().gemm, device, DType::f16).name, "strips") << "the others are made for GPUs";
}

TEST(Variant, GpuVariantComputesOnACpuButIsNotChosenThere) {
  HostDevice device;
  EXPECT_TRUE(find_variant(kernel_set().conv2d, "mma").computes(DType::f16));
  for (DType dtype : {DType::f16, DType::bf16})
    EXPECT_EQ(pick_variant(kernel_set().conv2d, device, dtype).name, "direct");
}

TEST(KernelSet, HoldsEveryTableWithUniqueNames) {
  const KernelSet set = kernel_set();
  const auto expect_table = [](auto table) {
    ASSERT_FALSE(table.empty());
    for (std::size_t i = 0; i < table.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) EXPECT_NE(table[i].name, table[j].name);
  };
  const auto& [accumulate, adam, avg_pool2d, batch_norm, bias, cast, conv2d, conv_relu_pool, dropout, ema, exact_sum,
               fill, gather_batch, gelu, gemm, gradient_statistics, grouped_conv2d, linear_cross_entropy, max_pool2d,
               muon, peak, relu, scale, sgd, silu, softmax_cross_entropy, step_state, tally] = set;
  expect_table(accumulate);
  expect_table(adam);
  expect_table(avg_pool2d);
  expect_table(batch_norm);
  expect_table(bias);
  expect_table(cast);
  expect_table(conv2d);
  expect_table(conv_relu_pool);
  expect_table(dropout);
  expect_table(ema);
  expect_table(exact_sum);
  expect_table(fill);
  expect_table(gather_batch);
  expect_table(gelu);
  expect_table(gemm);
  expect_table(gradient_statistics);
  expect_table(grouped_conv2d);
  expect_table(linear_cross_entropy);
  expect_table(max_pool2d);
  expect_table(muon);
  expect_table(peak);
  expect_table(relu);
  expect_table(scale);
  expect_table(sgd);
  expect_table(silu);
  expect_table(softmax_cross_entropy);
  expect_table(step_state);
  expect_table(tally);
}

}  // namespace
}  // namespace gradring::kernels
