// SPDX-License-Identifier: Apache-2.0
// Idea: warpgroups multiply: wgmma reads both operands from shared memory. What is copied where is the same as in the
//   step before (gather.cuh).
// Mapping: each warpgroup computes 64 or 128 rows and 64 or 128 columns of C; a block of one or two of them 128 x 128,
//   128 x 64, 64 x 128 or 64 x 64, in k-tiles of 64, three stages. blockIdx.z: the split-K slice (wgrad), or the offset
//   within a stride (dgrad).
// Traffic and bound: as the step before. One wgmma replaces 16 or 32 mma.sync and their ldmatrix: what is left are the
//   cp.async, five instructions for each 16 bytes.
// Gains over the step before: half the instructions; fragments take neither registers nor loads.
// Still slow because: patches come by cp.async from all threads, where TMA in its im2col mode would have one thread
//   copy a k-tile; a block waits for the products of a k-tile before it starts those of the next: only other blocks on
//   the multiprocessor keep the tensor cores busy then.
// Limits: compute capability 9.0 alone; f16 and bf16. What is not gathered (is_gathered) uses the variant mma.

#include "kernels/ops/conv2d/gathered_wgmma_tile.cuh"
#include "kernels/ops/conv2d/variants.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

namespace {

template <class Tile, class C, class P, class E>
__global__ void __launch_bounds__(Tile::kThreads)
    conv2d_gathered_wgmma_kernel(SIMT_GRID_CONST(Products<P>) products, C* c, E epilogue) {
  const P& product = products.of[blockIdx.z];
  compute_tile<Tile>(product, c, epilogue, lib::KOfBlock::whole(product.k));
}

template <class Tile, class P>
__global__ void __launch_bounds__(Tile::kThreads)
    conv2d_gathered_slice_wgmma_kernel(SIMT_GRID_CONST(P) product, float* slices, int k_of_slice) {
  float* const slice = slices + std::int64_t{blockIdx.z} * product.rows * product.columns;
  compute_tile<Tile>(product, slice, NoEpilogue{}, lib::KOfBlock(product.k, k_of_slice));
}

struct Engine {
  using Tiles = TensorTiles<GatheredWgmmaTile>;
  using Widest = __half;  // of the types
  static void with_type(DType dtype, auto visit) { lib::with_half(dtype, visit); }

  template <class Tile, class P, class C, class E>
  static void run(Stream& stream, dim3 grid, const Products<P>& products, C* c, const E& epilogue) {
    simt::launch<conv2d_gathered_wgmma_kernel<Tile, C, P, E>>(stream, gathered_config<Tile, P>(grid), products, c,
                                                              epilogue);
  }
  template <class Tile, class P>
  static void run_slices(Stream& stream, dim3 grid, const P& product, float* slices, int k_of_slice) {
    simt::launch<conv2d_gathered_slice_wgmma_kernel<Tile, P>>(stream, gathered_config<Tile, P>(grid), product, slices,
                                                              k_of_slice);
  }
  static Variant other() { return mma(); }
};
using Passes = GatheredPasses<Engine>;

}  // namespace

Variant wgmma() {
  return {"wgmma",       Passes::forward,         Passes::dgrad,
          Passes::wgrad, Passes::workspace_bytes, lib::supports_hopper_half,
          lib::is_half};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
