// SPDX-License-Identifier: Apache-2.0
// Idea: the products of 3_mma_forward.cu by warpgroups: wgmma reads both operands from shared memory.
// Mapping: as in conv2d's 5_wgmma.cu, with rows in the order of windows (gathered.cuh).
// Traffic and bound: x is read kernel_height * kernel_width times, from the L2 cache; y and half a byte of code an
//   output are written. Bound by copying patches: five instructions for each 16 bytes.
// Gains over the step before: fragments take neither registers nor loads.
// Still slow because: what 5_wgmma.cu says; and an image that fits shared memory need not be copied for each kernel
//   position (4_wgmma_forward.cu).
// Limits: sm_90; those of 3_mma_forward.cu.

#include "kernels/ops/conv2d/gathered_wgmma_tile.cuh"
#include "kernels/ops/conv_relu_pool/gathered.cuh"
#include "kernels/ops/conv_relu_pool/resident.cuh"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace wgmma {
namespace {

template <class Tile, class T>
__global__ void __launch_bounds__(Tile::kThreads)
    conv_relu_pool_gathered_wgmma_kernel(SIMT_GRID_CONST(PooledProduct<T>) product, const T* b, T* y,
                                         std::uint8_t* codes) {
  pool_tile<Tile>(product, b, y, codes);
}

}  // namespace

bool gathered_forward(Stream& stream, const ForwardArgs& args) {
  return run_gathered<conv2d::GatheredWgmmaTile>(
      args, [&]<class Tile, class T>(lib::Element<Tile>, const simt::Config& config, const PooledProduct<T>& product) {
        simt::launch<conv_relu_pool_gathered_wgmma_kernel<Tile, T>>(
            stream, config, product, static_cast<const T*>(args.b), static_cast<T*>(args.y), args.codes);
      });
}

}  // namespace wgmma
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
