// SPDX-License-Identifier: Apache-2.0
// The table of variants of each operation, simplest first. Compiled by the host compiler and by nvcc.
#include "kernels/kernel_set.h"

#include <array>

#include "kernels/lib/level_copies.h"

namespace gradring::kernels {

namespace accumulate {
GRADRING_DECLARE_COPIES(Variant, flat);  // 1_flat.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(flat)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace accumulate

namespace adam {
GRADRING_DECLARE_COPIES(Variant, flat);    // 1_flat.cu
GRADRING_DECLARE_COPIES(Variant, vector);  // 2_vector.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(flat)(), GRADRING_COPY_TO_RUN(vector)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace adam

namespace bias {
GRADRING_DECLARE_COPIES(Variant, rows);  // 1_rows.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(rows)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace bias

namespace cast {
GRADRING_DECLARE_COPIES(Variant, flat);  // 1_flat.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(flat)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace cast

namespace conv2d {
GRADRING_DECLARE_COPIES(Variant, direct);  // 1_direct.cu
inline namespace GRADRING_KERNEL_COPY {
Variant tiled();       // 2_tiled.cu
Variant wmma_tiles();  // 3_wmma.cu
Variant mma();         // 4_mma.cu
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(direct)(), tiled(), wmma_tiles(), mma()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace conv2d

namespace conv_relu_pool {
GRADRING_DECLARE_COPIES(Variant, direct);      // 1_direct.cu
GRADRING_DECLARE_COPIES(Variant, native_cpu);  // 2_native.cpp; no_native.cpp in the CUDA module
inline namespace GRADRING_KERNEL_COPY {
Variant mma_tiles();  // 3_mma_forward.cu, 3_mma_backward.cu
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(direct)(), GRADRING_COPY_TO_RUN(native_cpu)(), mma_tiles()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace conv_relu_pool

namespace ema {
GRADRING_DECLARE_COPIES(Variant, flat);  // 1_flat.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(flat)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace ema

namespace exact_sum {
GRADRING_DECLARE_COPIES(Variant, flat);  // 1_flat.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(flat)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace exact_sum

namespace fill {
GRADRING_DECLARE_COPIES(Variant, flat);  // 1_flat.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(flat)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace fill

namespace gather_batch {
GRADRING_DECLARE_COPIES(Variant, rows);  // 1_rows.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(rows)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gather_batch

namespace gemm {
GRADRING_DECLARE_COPIES(Variant, strips);  // 1_strips.cu
inline namespace GRADRING_KERNEL_COPY {
Variant tiled();           // 2_tiled.cu
Variant wmma_fragments();  // 3_wmma.cu
Variant mma();             // 4_mma.cu
Variant wgmma();           // 5_wgmma.cu
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(strips)(), tiled(), wmma_fragments(), mma(), wgmma()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gemm

namespace linear_cross_entropy {
GRADRING_DECLARE_COPIES(Variant, two_launches);  // 1_two_launches.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(two_launches)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace linear_cross_entropy

namespace max_pool2d {
GRADRING_DECLARE_COPIES(Variant, rows);  // 1_rows.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(rows)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace max_pool2d

namespace peak {
inline namespace GRADRING_KERNEL_COPY {
Variant multiply_adds();  // 1_multiply_adds.cu
Variant mma();            // 2_mma.cu
std::span<const Variant> variants() {
  static const std::array kTable = {multiply_adds(), mma()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace peak

namespace relu {
GRADRING_DECLARE_COPIES(Variant, flat);  // 1_flat.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(flat)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace relu

namespace scale {
GRADRING_DECLARE_COPIES(Variant, flat);  // 1_flat.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(flat)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace scale

namespace sgd {
GRADRING_DECLARE_COPIES(Variant, flat);    // 1_flat.cu
GRADRING_DECLARE_COPIES(Variant, vector);  // 2_vector.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(flat)(), GRADRING_COPY_TO_RUN(vector)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace sgd

namespace softmax_cross_entropy {
GRADRING_DECLARE_COPIES(Variant, row_per_thread);  // 1_row_per_thread.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(row_per_thread)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace softmax_cross_entropy

namespace step_state {
inline namespace GRADRING_KERNEL_COPY {
Variant one_thread();  // 1_one_thread.cu
std::span<const Variant> variants() {
  static const std::array kTable = {one_thread()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace step_state

namespace sum_of_squares {
GRADRING_DECLARE_COPIES(Variant, two_stage);  // 1_two_stage.cu
inline namespace GRADRING_KERNEL_COPY {
std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(two_stage)()};
  return kTable;
}
}  // namespace GRADRING_KERNEL_COPY
}  // namespace sum_of_squares

inline namespace GRADRING_KERNEL_COPY {

KernelSet kernel_set() {
  return {
      .accumulate = accumulate::variants(),
      .adam = adam::variants(),
      .bias = bias::variants(),
      .cast = cast::variants(),
      .conv2d = conv2d::variants(),
      .conv_relu_pool = conv_relu_pool::variants(),
      .ema = ema::variants(),
      .exact_sum = exact_sum::variants(),
      .fill = fill::variants(),
      .gather_batch = gather_batch::variants(),
      .gemm = gemm::variants(),
      .linear_cross_entropy = linear_cross_entropy::variants(),
      .max_pool2d = max_pool2d::variants(),
      .peak = peak::variants(),
      .relu = relu::variants(),
      .scale = scale::variants(),
      .sgd = sgd::variants(),
      .softmax_cross_entropy = softmax_cross_entropy::variants(),
      .step_state = step_state::variants(),
      .sum_of_squares = sum_of_squares::variants(),
  };
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels
