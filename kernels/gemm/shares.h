// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/gemm/tiles.h"
#include "kernels/lib/reference.h"
#include "kernels/runtime/stream.h"
#include "kernels/simt/simt.h"

/// A small C has few tiles, and leaves most of a GPU without work. So several blocks share the inner index of a tile:
/// block z adds up the z-th part of it, into a matrix of its own in the workspace, and a second kernel adds those up,
/// always in the same order.
namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

inline constexpr int kBlocksWanted = 128;  // about as many as a GPU has processors

/// `rounds` of a block's loop along the inner index for each of `count` shares; the last may have fewer, but not none.
struct Shares {
  int rounds, count;

  /// Of `inner` indices, `of_round` of which are a round, for so many tiles of C; a share has at least `least_rounds`.
  Shares(int inner, int of_round, int least_rounds, std::int64_t tiles) {
    const int all = inner == 0 ? 0 : (inner - 1) / of_round + 1;
    const auto wanted = static_cast<int>(std::clamp<std::int64_t>(kBlocksWanted / tiles, 1, kBlocksWanted));
    const int most = std::max(all / least_rounds, 1);
    rounds = (all - 1) / std::min(wanted, most) + 1;
    count = all == 0 ? 1 : (all - 1) / rounds + 1;
  }
};

/// Enough for the shares of any product: there are kBlocksWanted of tiles at most.
constexpr std::size_t share_bytes(int tile_rows, int tile_columns) {
  return sizeof(float) * kBlocksWanted * static_cast<std::size_t>(tile_rows * tile_columns);
}

/// The rounds of this block: blockIdx.z is the number of its share.
struct RoundsOfBlock {
  int first, count;

  __device__ RoundsOfBlock(int inner, int of_round, int rounds_of_share)
      : first(static_cast<int>(blockIdx.z) * rounds_of_share) {
    const int left = (inner + of_round - 1) / of_round - first;
    count = left < rounds_of_share ? left : rounds_of_share;
  }
};

/// Where this block's sums go: to C itself, or to its share.
template <class T>
__device__ Output<T> output_of_block(const Output<T>& c) {
  Output<T> to = c;
  if (gridDim.z > 1) to.data = static_cast<float*>(c.data) + std::int64_t{blockIdx.z} * c.rows * c.columns;
  return to;
}

/// Adds up `count` shares of C, with grid_range. T is __half or __nv_bfloat16.
template <class T>
void add_shares(Stream& stream, const float* shares, int count, const Output<T>& c);

/// Calls product(to) to enqueue the kernel that computes C in these shares, with gridDim.z = shares.count, and adds
/// them up if there are several.
///
/// Errors    InvalidArgument if there is no workspace for them.
template <class T, class Product>
void with_shares(Stream& stream, const Args& args, const Output<T>& c, const Shares& shares, Product product) {
  if (shares.count == 1) return product(c);
  lib::check_pointer("gemm", "workspace", args.workspace);
  product(Output<T>{args.workspace, c.rows, c.columns, true, false});
  add_shares(stream, static_cast<const float*>(args.workspace), shares.count, c);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
