// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel_set.h"

namespace gradring::nn {

/// The word for the best that fits.
inline constexpr std::string_view kAuto = "auto";

/// Which of our kernels compute, each by its name in its table, or auto.
struct VariantChoice {
  std::string conv = std::string(kAuto);  ///< of conv2d; where that is fused with ReLU and pooling, of conv_relu_pool
  std::string gemm = std::string(kAuto);
};

/// What VariantChoice::conv means for the two tables that convolve.
struct ConvChoice {
  std::string plain = std::string(kAuto);  ///< a name in conv2d, or auto
  std::string fused = std::string(kAuto);  ///< a name in conv_relu_pool, or auto; empty: nothing is fused

  /// A name that both tables have is taken from both. One that a single table has: without it in conv_relu_pool nothing is
  /// fused; without it in conv2d, what cannot be fused is left to auto. "conv2d/direct" and "conv_relu_pool/direct" name
  /// the table, too.
  ///
  /// Errors    InvalidArgument if no table has it.
  static ConvChoice of(const std::string& conv, const kernels::KernelSet& kernels);
};

/// Refuses, before anything is planned, names that are neither auto, nor `library`, nor in their table.
///
/// Errors    InvalidArgument: names the option, lists the names, says which is nearest.
void check_choice(const VariantChoice& choice, const kernels::KernelSet& kernels, std::string_view conv_library,
                  std::string_view gemm_library);

}  // namespace gradring::nn
