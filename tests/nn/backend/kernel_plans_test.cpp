// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/kernel_plans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/error.h"

namespace gradring::nn {
namespace {

/// Tables that share one name, and have one each of their own.
constexpr kernels::conv2d::Variant kPlain[] = {{.name = "direct"}, {.name = "tiled"}};
constexpr kernels::conv_relu_pool::Variant kFused[] = {{.name = "direct"}, {.name = "native"}};
constexpr kernels::gemm::Variant kGemm[] = {{.name = "strips"}};

kernels::KernelSet tables() {
  kernels::KernelSet set;
  set.conv2d = kPlain;
  set.conv_relu_pool = kFused;
  set.gemm = kGemm;
  return set;
}

TEST(ConvChoice, SaysWhatANameMeansForBothTables) {
  struct Case {
    std::string conv, plain, fused;
  };
  for (const Case& c : {Case{"auto", "auto", "auto"}, Case{"direct", "direct", "direct"}, Case{"tiled", "tiled", ""},
                        Case{"native", "auto", "native"}, Case{"conv2d/direct", "direct", ""},
                        Case{"conv_relu_pool/direct", "auto", "direct"}}) {
    const ConvChoice choice = ConvChoice::of(c.conv, tables());
    EXPECT_EQ(choice.plain, c.plain) << c.conv;
    EXPECT_EQ(choice.fused, c.fused) << c.conv;
  }
  for (const char* name : {"dirct", "strips", "conv2d/native", "conv_relu_pool/tiled", "conv2d/", ""})
    EXPECT_THROW(ConvChoice::of(name, tables()), InvalidArgument) << name;
}

TEST(CheckChoice, TakesAutoTheLibraryAndOurVariants) {
  for (const char* conv : {"auto", "cudnn", "direct", "native", "conv2d/tiled"})
    EXPECT_NO_THROW(check_choice({.conv = conv}, tables(), "cudnn", "cublas")) << conv;
  for (const char* gemm : {"auto", "cublas", "strips"})
    EXPECT_NO_THROW(check_choice({.gemm = gemm}, tables(), "cudnn", "cublas")) << gemm;
}

TEST(CheckChoice, NamesTheOptionAndWhatThereIs) {
  const auto message = [](const VariantChoice& choice) {
    try {
      check_choice(choice, tables(), "cudnn", "cublas");
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(
      message({.conv = "tild"}),
      "--conv: unknown variant 'tild': expected one of auto, cudnn, direct, tiled, native. Did you mean 'tiled'?");
  EXPECT_EQ(message({.gemm = "onednn"}), "--gemm: unknown variant 'onednn': expected one of auto, cublas, strips.");
}

}  // namespace
}  // namespace gradring::nn
