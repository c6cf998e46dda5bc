// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/lib/reference.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"

/// What the variants of linear_cross_entropy share.
namespace gradring::kernels::linear_cross_entropy {
inline namespace GRADRING_KERNEL_COPY {

/// Args as the kernels see them.
template <class T>
struct Problem {
  unsigned rows;
  int in, classes;
  const T* h;
  const T* w;
  const T* b;
  const std::int32_t* labels;
  float scale;
  const float* loss_scale;
  T* logits;
  T* dh;
  bool h_is_relu;
  float* dw;
  float* db;
  bool accumulate;
  float* loss_sum;
  std::int32_t* correct;
  float* d;  // [rows, classes]
  float* losses;
  std::int32_t* verdicts;
  SoftTargets soft;
};

template <class T>
Problem<T> problem_of(const Args& args) {
  constexpr std::string_view kOp = "linear_cross_entropy";
  auto* d = static_cast<float*>(args.workspace);
  float* losses = d + args.rows * args.classes;
  return {.rows = static_cast<unsigned>(lib::narrow<int>(kOp, "rows", args.rows)),
          .in = lib::narrow<int>(kOp, "in", args.in),
          .classes = static_cast<int>(args.classes),
          .h = static_cast<const T*>(args.h),
          .w = static_cast<const T*>(args.w),
          .b = static_cast<const T*>(args.b),
          .labels = args.labels,
          .scale = args.scale,
          .loss_scale = args.loss_scale,
          .logits = static_cast<T*>(args.logits),
          .dh = static_cast<T*>(args.dh),
          .h_is_relu = args.h_is_relu,
          .dw = args.dw,
          .db = args.db,
          .accumulate = args.accumulate,
          .loss_sum = args.loss_sum,
          .correct = args.correct,
          .d = d,
          .losses = losses,
          .verdicts = reinterpret_cast<std::int32_t*>(losses + args.rows),
          .soft = args.soft};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::linear_cross_entropy
