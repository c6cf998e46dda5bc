// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/lib/kernels.h"

#include "kernels/lib/bulk_tensor.h"
#include "kernels/lib/element.h"
#include "kernels/lib/warpgroup_mma.h"
#include "kernels/simt/simt.h"

namespace gradring::tests {
inline namespace GRADRING_KERNEL_COPY {
namespace {

namespace lib = kernels::lib;

constexpr unsigned kPattern = simt::kSwizzlePatternBytes;
constexpr int kBoxWords = 64 * 64;
constexpr unsigned kBoxBytes = kBoxWords * 2;

__global__ void load_box_kernel(SIMT_GRID_CONST(BoxLoad) load, SIMT_GRID_CONST(simt::TensorMap) map) {
  SIMT_DYNAMIC_SHARED(unsigned char, memory);
  SIMT_SHARED(lib::Mbarrier, landed);
  unsigned char* box = lib::align_shared<kPattern>(memory) + load.skew;
  if (threadIdx.x == 0) {
    landed.init(1);
    lib::mbarrier_init_fence();
  }
  __syncthreads();  // the barrier is initialised
  if (threadIdx.x == 0) {
    landed.arrive_and_expect(load.expected_bytes);
    lib::bulk_load(box, map, load.row, load.column, landed);
  }
  landed.wait(0);
  for (unsigned i : simt::block_range(0, kBoxWords)) load.words[i] = reinterpret_cast<const std::uint16_t*>(box)[i];
}

constexpr int kStages = 2;
constexpr int kReaders = 2;  // warps

__global__ void copy_through_pipe_kernel(SIMT_GRID_CONST(simt::TensorMap) from, int rounds, std::uint16_t* to,
                                         PipeFault fault) {
  SIMT_DYNAMIC_SHARED(unsigned char, memory);
  SIMT_SHARED(lib::BarrierPipe<kStages>, pipe);
  auto* stages = reinterpret_cast<std::uint16_t*>(lib::align_shared<kPattern>(memory));
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0 && fault != PipeFault::not_initialised) pipe.init(kReaders);
  if (thread == 0 && fault == PipeFault::initialised_twice) pipe.init(kReaders);
  __syncthreads();  // the pipe's barriers are initialised
  if (thread == 0 && fault == PipeFault::filled_twice) pipe.begin_fill(0, kBoxBytes);
  if (thread == 0)
    for (int round = 0; round < rounds; ++round)
      lib::bulk_load(stages + round % kStages * kBoxWords, from, 64 * round, 0, pipe.begin_fill(round, kBoxBytes));
  if (thread < 32) return;
  for (int round = 0; round < rounds; ++round) {
    pipe.wait_filled(round);
    for (int i = thread - 32; i < kBoxWords; i += 32 * kReaders) {
      const auto at = simt::swizzle_128(static_cast<std::uint32_t>(i) * 2) / 2;
      to[round * kBoxWords + i] = stages[round % kStages * kBoxWords + static_cast<int>(at)];
    }
    __syncwarp();  // all lanes have read the stage
    if (thread % 32 == 0 && fault != PipeFault::never_released) pipe.release(round);
  }
}

/// Where an element lies, in words from the operand's first pattern; from the words of PTX, not by MatrixDescriptor.
__device__ int position_of(const OperandStorage& storage, int outer, int inner) {
  if (!storage.swizzled) {
    const int in_core = storage.transposed ? inner % 8 * 8 + outer % 8 : outer % 8 * 8 + inner % 8;
    return (outer / 8 * storage.stride + inner / 8 * storage.leading) * 64 + in_core;
  }
  const int row = storage.transposed ? inner : outer;
  const int column = storage.transposed ? outer : inner;
  const int pattern = column / 64 * storage.leading + row / 8 * storage.stride;
  const int piece = column % 64 / 8 ^ row % 8;
  return pattern * 512 + row % 8 * 64 + piece * 8 + column % 8;
}

constexpr int kMostPatterns = 24;  // of an operand

__device__ simt::MatrixDescriptor descriptor_of(const void* operand, const OperandStorage& storage) {
  if (!storage.swizzled)
    return simt::MatrixDescriptor::without_swizzle(lib::shared_address(operand),
                                                   static_cast<unsigned>(storage.leading) * 128,
                                                   static_cast<unsigned>(storage.stride) * 128);
  return simt::MatrixDescriptor::of(lib::shared_address(operand), static_cast<unsigned>(storage.leading) * kPattern,
                                    static_cast<unsigned>(storage.stride) * kPattern);
}

/// Of the columns of c from `first_column` on.
template <class T, bool kTransposeA, bool kTransposeB, int kSums>
__device__ void multiply(float (&sums)[kSums], simt::MatrixDescriptor a, simt::MatrixDescriptor b, float* c,
                         int first_column, ProductFault fault) {
  lib::warpgroup_expose(sums);
  if (fault != ProductFault::no_fence) lib::warpgroup_fence();
  lib::warpgroup_mma_m64k16<T, kTransposeA, kTransposeB>(sums, a, b);
  lib::warpgroup_commit();
  if (fault != ProductFault::no_wait) lib::warpgroup_wait_for(sums);
  for (int i = 0; i < kSums; ++i) {
    const simt::Position position = simt::warpgroup_position_in_d(static_cast<int>(threadIdx.x), i);
    c[position.row * 128 + first_column + position.column] = sums[i];
  }
}

template <class T, bool kTransposeA, bool kTransposeB>
__global__ void multiply_by_warpgroup_kernel(OperandStorage a_storage, OperandStorage b_storage, const T* a, const T* b,
                                             float* c, ProductFault fault) {
  SIMT_DYNAMIC_SHARED(unsigned char, memory);
  T* a_operand = reinterpret_cast<T*>(lib::align_shared<kPattern>(memory));
  T* b_operand = a_operand + kMostPatterns * 512;
  for (unsigned i : simt::block_range(0, 64 * 16)) {
    const int at = static_cast<int>(i);
    a_operand[position_of(a_storage, at / 16, at % 16)] = a[i];
  }
  for (unsigned i : simt::block_range(0, 16 * 128)) {
    const int at = static_cast<int>(i);
    b_operand[position_of(b_storage, at % 128, at / 128)] = b[i];
  }
  lib::warpgroup_publish();
  __syncthreads();  // both operands are there
  if (fault == ProductFault::off_the_pattern) a_operand += 64;
  if (fault == ProductFault::outside) b_operand += 64 * 512;
  const simt::MatrixDescriptor a_first = descriptor_of(a_operand, a_storage);
  const simt::MatrixDescriptor b_first = descriptor_of(b_operand, b_storage);
  float sums[lib::kSumsOf64<128>] = {};
  multiply<T, kTransposeA, kTransposeB>(sums, a_first, b_first, c, 0, fault);
  if (b_storage.swizzled || fault != ProductFault::none) return;
  for (int column = 0; column < 128; column += 32) {  // the same by narrow products
    float few[lib::kSumsOf64<32>] = {};
    multiply<T, kTransposeA, kTransposeB>(few, a_first, b_first.after(column / 8 * b_storage.stride * 8), c, column,
                                          fault);
  }
}

}  // namespace

void load_box(kernels::Stream& stream, const BoxLoad& load) {
  const simt::TensorMap map = simt::make_tensor_map(simt::TensorBox{load.matrix, load.rows, load.columns, 64});
  simt::launch<load_box_kernel>(stream, {.block = 64, .shared_bytes = kBoxBytes + kPattern}, load, map);
}

void copy_through_pipe(kernels::Stream& stream, const std::uint16_t* from, int rounds, std::uint16_t* to,
                       PipeFault fault) {
  const simt::TensorMap map = simt::make_tensor_map(simt::TensorBox{from, 64 * std::int64_t{rounds}, 64, 64});
  simt::launch<copy_through_pipe_kernel>(
      stream, {.block = 32 * (kReaders + 1), .shared_bytes = kStages * kBoxBytes + kPattern}, map, rounds, to, fault);
}

void multiply_by_warpgroup(kernels::Stream& stream, kernels::DType dtype, OperandStorage a_storage,
                           OperandStorage b_storage, const void* a, const void* b, float* c, ProductFault fault) {
  lib::with_half(dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    const auto launch = [&]<bool kTransposeA, bool kTransposeB>() {
      const simt::Config config{.block = fault == ProductFault::half_a_group ? 64 : 128,
                                .shared_bytes = (2 * kMostPatterns + 1) * kPattern};
      simt::launch<multiply_by_warpgroup_kernel<T, kTransposeA, kTransposeB>>(
          stream, config, a_storage, b_storage, static_cast<const T*>(a), static_cast<const T*>(b), c, fault);
    };
    if (a_storage.transposed)
      b_storage.transposed ? launch.template operator()<true, true>() : launch.template operator()<true, false>();
    else
      b_storage.transposed ? launch.template operator()<false, true>() : launch.template operator()<false, false>();
  });
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::tests
