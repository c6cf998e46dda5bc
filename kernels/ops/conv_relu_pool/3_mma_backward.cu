// SPDX-License-Identifier: Apache-2.0
// Idea: the gradients straight from dy and the codes. dz, three quarters of which are zeros, is computed while a k-tile
//   of it is stored in shared memory, and multiplied there by tensor cores, zeros and all: that is cheaper than looking
//   for the rest. A column of ones beside the patches of x makes db a column of the same product as dw.
// Mapping: dw, db: each block computes 64 x 64 of C (32 x 32 where that covers it) over one split-K slice of the
//   outputs; a second kernel adds up the slices. dx: each block computes 128 inputs and 64 (or 32) channels.
// Traffic and bound: x and dy are read for each tile of dw; dy and codes kernel_height * kernel_width times for dx;
//   mostly from the caches. 2 * out_elements * window^2 * filter_elements operations for dw, and about as many for dx.
//   Bound by computing dz: the loads, comparisons and stores for eight elements of it serve 64 columns.
// Gains over the steps before: tensor cores; no thread walks through all outputs; db costs nothing.
// Still slow because: dw and dx compute the same dz twice; cp.async cannot copy it ahead, because it is computed.
// Limits: f16 and bf16; those of conv2d::Patches. An infinity in dy, x or w times a zero is NaN.

#include <algorithm>

#include "kernels/ops/conv2d/mma_product.cuh"
#include "kernels/ops/conv_relu_pool/mma.cuh"
#include "kernels/ops/conv_relu_pool/resident.cuh"
#include "kernels/ops/conv_relu_pool/short_filters.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using conv2d::is_small;
using conv2d::Long;
using conv2d::Narrow;
using conv2d::Small;
using conv2d::Wide;

template <class Tile, class P>
__global__ void __launch_bounds__(Tile::kThreads)
    conv_relu_pool_wgrad_mma_kernel(SIMT_GRID_CONST(P) product, float* __restrict__ dw_slices,
                                    float* __restrict__ db_slices, int k_of_slice) {
  const int first_row = static_cast<int>(blockIdx.x) * Tile::kRows;
  const int first_column = static_cast<int>(blockIdx.y) * Tile::kColumns;
  const lib::KOfBlock k(product.k, k_of_slice);
  typename Tile::Accumulators sums;
  conv2d::add_mma_product<Tile>(sums, product.a, product.b, first_row, first_column, k.begin, k.end);
  const int weights = product.columns - 1;  // of a filter
  const std::int64_t filter = std::int64_t{blockIdx.z} * product.rows + first_row;
  conv2d::for_each_sum<Tile>(sums, [&](int row, int tile_column, float sum) {
    const int column = first_column + tile_column;
    if (first_row + row >= product.rows) return;
    if (column < weights) dw_slices[(filter + row) * weights + column] = sum;
    if (column == weights) db_slices[filter + row] = sum;
  });
}

template <class Tile, class T, class P>
__global__ void __launch_bounds__(Tile::kThreads)
    conv_relu_pool_dgrad_mma_kernel(SIMT_GRID_CONST(P) product, T* __restrict__ dx) {
  const int first_row = static_cast<int>(blockIdx.x) * Tile::kRows;
  const int first_column = static_cast<int>(blockIdx.y) * Tile::kColumns;
  typename Tile::Accumulators sums;
  conv2d::add_mma_product<Tile>(sums, product.a, product.b, first_row, first_column, 0, product.k);
  conv2d::for_each_sum<Tile>(sums, [&](int tile_row, int tile_column, float sum) {
    const int row = first_row + tile_row;
    const int column = first_column + tile_column;
    if (row < product.rows && column < product.columns)
      dx[std::int64_t{row} * product.columns + column] = lib::from_f32<T>(sum);
  });
}

struct WgradSizes {
  std::int64_t rows, columns, k;
  conv2d::TileShape tile() const { return is_small(rows, columns) ? Small::kShape : Long::kShape; }
  int slices() const { return conv2d::slices_of(rows, columns, k, tile()); }
};

WgradSizes wgrad_sizes(const Geometry& g) {
  return {g.conv.out_channels, g.conv.filter_elements() + 1,
          g.conv.batch * g.out_height() * g.out_width() * g.window * g.window};
}

template <class Tile, class P>
void launch_wgrad(Stream& stream, const P& product, int slices, float* dw_slices, float* db_slices) {
  const simt::Config config{.grid = conv2d::grid_of(product.rows, product.columns, Tile::kShape, slices),
                            .block = dim3(Tile::kThreads)};
  simt::launch<conv_relu_pool_wgrad_mma_kernel<Tile, P>>(stream, config, product, dw_slices, db_slices,
                                                         conv2d::k_of_slice(product.k, Tile::kShape, slices));
}

template <class T>
void wgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  if (g.conv.out_channels == 0) return;
  lib::check_pointer("conv_relu_pool backward", "workspace", args.workspace);
  const auto* x = static_cast<const T*>(args.x);
  const auto dz = pooled_gradient<T>(args);
  const PatchesAndOnes<T> b{
      {conv2d::Patches::of_outputs(g.conv, pooled_outputs(g)), x, conv2d::has_aligned_rows(x, g.conv.in_channels)},
      dz.windows};
  const WgradSizes sizes = wgrad_sizes(g);
  const int slices = sizes.slices();
  const conv2d::Product product{GradientMatrix<T>{dz, dz.aligned}, b, dz.channels, b.patches.columns() + 1,
                                lib::narrow<int>("conv_relu_pool", "positions", sizes.k)};
  auto* dw_slices = static_cast<float*>(args.workspace);
  float* db_slices = dw_slices + slices * g.conv.weight_elements();
  if (is_small(sizes.rows, sizes.columns))
    launch_wgrad<Small>(stream, product, slices, dw_slices, db_slices);
  else
    launch_wgrad<Long>(stream, product, slices, dw_slices, db_slices);
  lib::sum_slices(stream, slices, {dw_slices, g.conv.weight_elements(), args.dw},
                  {db_slices, g.conv.out_channels, args.db}, args.accumulate, args.partial_sums);
}

template <class Tile, class T, class P>
void launch_dgrad(Stream& stream, const P& product, T* dx) {
  const simt::Config config{.grid = conv2d::grid_of(product.rows, product.columns, Tile::kShape, 1),
                            .block = dim3(Tile::kThreads)};
  simt::launch<conv_relu_pool_dgrad_mma_kernel<Tile, T, P>>(stream, config, product, dx);
}

template <class T>
void dgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  const auto dz = pooled_gradient<T>(args);
  const GradientPatches<T> a{conv2d::Patches::of_inputs(g.conv, pooled_outputs(g)), dz, dz.aligned};
  const auto b = conv2d::dgrad_filters(g.conv, static_cast<const T*>(args.w));
  const conv2d::Product product{a, b, a.patches.rows(), b.channels, a.patches.columns()};
  if (product.columns <= Narrow::kColumns)
    launch_dgrad<Narrow>(stream, product, static_cast<T*>(args.dx));
  else
    launch_dgrad<Wide>(stream, product, static_cast<T*>(args.dx));
}

}  // namespace

namespace mma {

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    if (!short_filters::wgrad(stream, args)) {
      check_x_dtype(args.dtype, args.x_dtype);
      if (!resident::wgrad(stream, args)) wgrad<T>(stream, args);
    }
    if (args.dx && args.geometry.conv.in_elements() > 0 && !resident::dgrad(stream, args)) dgrad<T>(stream, args);
  });
}

std::size_t workspace_bytes(const Geometry& g) {
  if (short_filters::knows(g)) return short_filters::wgrad_workspace_bytes(g);
  const WgradSizes sizes = wgrad_sizes(g);
  return std::max(conv2d::slice_bytes(sizes.rows, sizes.columns, sizes.k, sizes.tile()),
                  resident::wgrad_workspace_bytes(g));
}

}  // namespace mma

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
