// SPDX-License-Identifier: Apache-2.0
// linear_cross_entropy beside the kernels that it fuses.

#include <gtest/gtest.h>

#include <vector>

#include "kernels/ops/bias/bias.h"
#include "kernels/ops/cross_entropy/cross_entropy.h"
#include "kernels/ops/gemm/gemm.h"
#include "kernels/ops/kernel_set.h"
#include "tests/kernels/ops/linear_cross_entropy_case.h"

namespace gradring::kernels::linear_cross_entropy {
namespace {

/// gemm, bias, softmax_cross_entropy, and their gradients, one after the other.
void run_apart(Stream& stream, const Args& args) {
  const auto classes = static_cast<std::size_t>(args.classes);
  TypedArray dlogits = TypedArray::unwritten(args.dtype, static_cast<std::size_t>(args.rows) * classes);
  std::vector<float> workspace(softmax_cross_entropy::workspace_bytes(args.rows) / sizeof(float));
  const auto& gemm = kernel_set().gemm.front();
  const auto& bias = kernel_set().bias.front();
  gemm.run(stream, {.dtype = args.dtype,
                    .c_dtype = args.dtype,
                    .m = args.rows,
                    .n = args.classes,
                    .k = args.in,
                    .transpose_b = true,
                    .a = args.h,
                    .b = args.w,
                    .c = args.logits});
  bias.add(stream, {args.dtype, args.rows, args.classes, args.logits, args.b, args.logits});
  kernel_set().softmax_cross_entropy.front().run(stream, {.dtype = args.dtype,
                                                          .rows = args.rows,
                                                          .classes = args.classes,
                                                          .logits = args.logits,
                                                          .labels = args.labels,
                                                          .soft = args.soft,
                                                          .scale = args.scale,
                                                          .dlogits = dlogits.data(),
                                                          .loss_sum = args.loss_sum,
                                                          .correct = args.correct,
                                                          .workspace = workspace.data()});
  gemm.run(stream, {.dtype = args.dtype,
                    .c_dtype = args.dtype,
                    .m = args.rows,
                    .n = args.in,
                    .k = args.classes,
                    .a = dlogits.data(),
                    .b = args.w,
                    .c = args.dh});
  gemm.run(stream, {.dtype = args.dtype,
                    .m = args.classes,
                    .n = args.in,
                    .k = args.rows,
                    .transpose_a = true,
                    .a = dlogits.data(),
                    .b = args.h,
                    .c = args.dw});
  bias.grad(stream, {args.dtype, args.rows, args.classes, dlogits.data(), args.db});
  finish(stream);  // before dlogits goes
}

TEST(LinearCrossEntropy, AgreesWithTheSeparateKernels) {
  for (const HeadExtents& extents : {HeadExtents{33, 64, 10}, HeadExtents{8, 17, 32}}) {
    HeadCase c(extents, DType::f32);
    if (extents.classes == 32) c.soften();
    for_each_variant(kernel_set().linear_cross_entropy, DType::f32, [&](const Variant& variant, Stream& stream) {
      const HeadResults apart = c.call([&](const Args& args) { run_apart(stream, args); });
      const HeadResults fused = c.call([&](const Args& args) {
        variant.run(stream, args);
        finish(stream);
      });
      expect_close(fused.logits.values(), apart.logits.values(), [&](std::size_t) { return 2 * c.logit_error(); });
      expect_close(fused.dh.values(), apart.dh.values(), [&](std::size_t) { return 2 * c.dh_error(); });
      expect_close(doubles(fused.dw), doubles(apart.dw), [&](std::size_t) { return 2 * c.dw_error(); });
      expect_close(doubles(fused.db), doubles(apart.db), [&](std::size_t) { return 2 * c.dw_error(); });
      EXPECT_NEAR(fused.loss_sum, apart.loss_sum, 2 * c.loss_error());
      EXPECT_EQ(fused.correct, apart.correct);
    });
  }
}

}  // namespace
}  // namespace gradring::kernels::linear_cross_entropy
