// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/conv2d/products.cuh"
#include "kernels/lib/element.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// What moves in one go: 16 bytes of 16-bit elements.
inline constexpr int kPiece = 8;

/// A piece of a line to shared memory, by copy16(to, from) where it lies together; 0 for what is not there.
template <class Operand, class T, class Copy>
__device__ void copy_piece(T* to, const Operand& from, const typename Operand::Line& line, int position, Copy copy16) {
  if (from.wide) {
    if (const T* here = from.at(line, position))
      copy16(to, here);
    else
      simt::store_as(to, uint4{});
    return;
  }
  for (int i = 0; i < kPiece; ++i) {
    const T* here = from.at(line, position + i);
    to[i] = here ? *here : lib::from_f32<T>(0.0f);
  }
}

/// The same for operands that know better, by their load(to, line, position, copy16).
template <class Operand, class T, class Copy>
__device__ void load_piece(T* to, const Operand& from, const typename Operand::Line& line, int position, Copy copy16) {
  if constexpr (requires { from.load(to, line, position, copy16); })
    from.load(to, line, position, copy16);
  else
    copy_piece(to, from, line, position, copy16);
}

/// A tile of an operand in shared memory, as its lines lie in global memory.
template <class Operand, int kOuter, int kDepth>
struct OperandTile {
  using T = typename Operand::Element;
  static constexpr bool kByOuter = Operand::kLines == Lines::outer;
  static constexpr int kLineCount = kByOuter ? kOuter : kDepth;
  static constexpr int kPiecesOfLine = (kByOuter ? kDepth : kOuter) / kPiece;
  /// One piece more, which keeps lines apart by other than a multiple of 128 bytes: eight of them meet no bank twice.
  static constexpr int kPitch = (kPiecesOfLine + 1) * kPiece;

  T lines[kLineCount][kPitch];

  template <int kThreads, class Copy>
  __device__ void load(const Operand& from, int first_outer, int first_depth, Copy copy16) {
    const int first_line = kByOuter ? first_outer : first_depth;
    const int first_position = kByOuter ? first_depth : first_outer;
    for (int i = static_cast<int>(threadIdx.x); i < kLineCount * kPiecesOfLine; i += kThreads) {
      const int line = i / kPiecesOfLine;
      const int position = i % kPiecesOfLine * kPiece;
      load_piece(&lines[line][position], from, from.line(first_line + line), first_position + position, copy16);
    }
  }

  /// The first of 16 x 16 elements.
  __device__ const T* element(int outer, int depth) const {
    return kByOuter ? &lines[outer][depth] : &lines[depth][outer];
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
