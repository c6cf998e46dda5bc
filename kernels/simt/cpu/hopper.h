// SPDX-License-Identifier: Apache-2.0
// What sm_90 has of its own, kernels/lib/bulk_tensor.h and kernels/lib/warpgroup_mma.h, on the CPU: instrumented code.
// Barriers: the engine counts; the word in shared memory is only touched, so that the sanitizers see one that is out of
// bounds, or used before the block knows that it is initialised.
// Copies: the thread that starts a copy makes it at once.
// Products: each lane makes its own sums, when it waits for them, and reads from shared memory what it multiplies, so
// that TSan sees a stage that is filled again too early.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "kernels/base/error.h"
#include "kernels/simt/cpu/index.h"
#include "kernels/simt/cpu/warp_functions.h"
#include "kernels/simt/engine/cooperation.h"
#include "kernels/simt/engine/tensor_layout.h"

namespace gradring::simt::detail {

/// An address in shared memory as the copy engine and the tensor cores of sm_90 count them, in 18 bits: on the CPU the
/// lowest bits of the real address, so that alignment is kept.
inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(pointer)) & kSharedAddressMask;
}

/// `bytes` of the block's dynamic shared memory.
inline unsigned char* at_shared_address(std::uint32_t address, std::uint32_t bytes, Site site) {
  const std::uint32_t offset = (address - shared_address(dynamic_shared)) & kSharedAddressMask;
  if (offset + std::size_t{bytes} > dynamic_shared_bytes)
    fail_kernel(site, "an address outside of the block's dynamic shared memory");
  return dynamic_shared + offset;
}

inline void init_mbarrier(std::uint64_t& word, unsigned arrivals, Site site) {
  if (reinterpret_cast<std::uintptr_t>(&word) % sizeof word != 0)
    fail_kernel(site, "the address of an mbarrier is not a multiple of 8 bytes");
  static_cast<volatile std::uint64_t&>(word) = arrivals;
  mbarrier_init(&word, arrivals, site);
}

inline const void* touched(const std::uint64_t& word) {
  [[maybe_unused]] const std::uint64_t seen = static_cast<const volatile std::uint64_t&>(word);
  return &word;
}

inline void arrive_at_mbarrier(const char* what, const std::uint64_t& word, std::int64_t expected_bytes, Site site) {
  mbarrier_arrive(what, touched(word), expected_bytes, site);
}

inline void wait_for_mbarrier(const std::uint64_t& word, unsigned parity, Site site) {
  mbarrier_wait(touched(word), parity, site);
}

}  // namespace gradring::simt::detail

namespace gradring::simt {

/// What the driver makes of a TensorBox is opaque on a GPU; here it is the thing itself.
using TensorMap = TensorBox;

/// Errors    InvalidArgument where cuTensorMapEncodeTiled would refuse.
inline TensorMap make_tensor_map(const TensorBox& box) {
  const auto aligned = [](std::uintptr_t value) { return value % kTensorAlignment == 0; };
  check(aligned(reinterpret_cast<std::uintptr_t>(box.data)), "tensor map: the data is not aligned to 16 bytes");
  check(aligned(static_cast<std::uintptr_t>(box.columns) * 2), [&] {
    return "tensor map: rows have " + std::to_string(box.columns * 2) + " bytes, expected a multiple of 16";
  });
  check(box.rows > 0 && box.columns > 0, [&] {
    return "tensor map: the matrix is " + std::to_string(box.rows) + " x " + std::to_string(box.columns) +
           ", expected 1 x 1 or larger";
  });
  check(box.box_rows > 0 && box.box_rows <= 256,
        [&] { return "tensor map: boxes have " + std::to_string(box.box_rows) + " rows, expected 1 to 256"; });
  return box;
}

}  // namespace gradring::simt

namespace gradring::simt::detail {

inline void load_box(void* shared, const TensorMap& map, int column, int row, const std::uint64_t& barrier, Site site) {
  const std::uint32_t first = shared_address(shared);
  if (first % kSharedAlignmentOfBoxes != 0)
    fail_kernel(site, "the address in shared memory of a box is not a multiple of 128 bytes");
  for (int i = 0; i < map.box_rows; ++i)
    for (int j = 0; j < TensorMap::kBoxColumns; ++j) {
      const bool inside = row + i >= 0 && row + i < map.rows && column + j >= 0 && column + j < map.columns;
      const std::uint16_t word =
          inside ? static_cast<const std::uint16_t*>(map.data)[(row + std::int64_t{i}) * map.columns + column + j] : 0;
      const std::uint32_t at =
          first + static_cast<std::uint32_t>(i) * kSwizzledRowBytes + static_cast<std::uint32_t>(j) * 2;
      std::memcpy(at_shared_address(swizzle_128(at), sizeof word, site), &word, sizeof word);
    }
  mbarrier_land("bulk_load", touched(barrier), map.box_bytes(), site);
}

inline constexpr int kProductK = 16;
inline constexpr unsigned kWarpgroup = 128;

inline unsigned linear_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

inline void check_operand(MatrixDescriptor operand, Site site) {
  if (operand.swizzle_mode() == 0) return;
  if (operand.swizzle_mode() != 1)
    fail_kernel(site, "the descriptor of a wgmma operand selects a swizzle of 64 or 32 bytes, expected 128 or none");
  if (operand.base_offset() != 0 || operand.address() / kSwizzledRowBytes % 8 != 0)
    fail_kernel(site,
                "the address of a wgmma operand is not a multiple of 1024 bytes, at which its swizzle pattern begins");
}

/// kCount contiguous elements of an operand from (mn, k) on, of one 16-byte vector.
template <class T, int kCount>
struct ElementsOfVector {
  std::uint16_t words[kCount];
  ElementsOfVector(MatrixDescriptor operand, bool transposed, int mn, int k, Site site) {
    std::memcpy(words, at_shared_address(operand.address_of(transposed, mn, k), sizeof words, site), sizeof words);
  }
  float operator[](int i) const { return T::from_bits(words[i]); }
};

/// kProductK elements of each of kMN neighbouring rows of a or columns of b.
template <class T, bool kTransposed, int kMN>
void load_operand(MatrixDescriptor operand, int mn, float (*elements)[kProductK], Site site) {
  if constexpr (kTransposed) {
    for (int k = 0; k < kProductK; ++k) {
      const ElementsOfVector<T, kMN> vector(operand, true, mn, k, site);
      for (int i = 0; i < kMN; ++i) elements[i][k] = vector[i];
    }
  } else {
    for (int i = 0; i < kMN; ++i)
      for (int first = 0; first < kProductK; first += 8) {
        const ElementsOfVector<T, 8> vector(operand, false, mn + i, first, site);
        for (int j = 0; j < 8; ++j) elements[i][first + j] = vector[j];
      }
  }
}

/// d += a b for the sums of this lane, a [64, 16] and b [16, kColumns].
template <class T, int kColumns, bool kTransposeA, bool kTransposeB>
void add_product(const AsyncProduct& product) {
  const auto thread = static_cast<int>(linear_thread() % kWarpgroup);
  float a[2][kProductK], b[2][kProductK];
  for (int i : {0, 1})
    load_operand<T, kTransposeA, 1>({product.a}, warpgroup_position_in_d(thread, 2 * i).row, &a[i], product.site);
  for (int first = 0; first < kColumns / 2; first += 4) {
    load_operand<T, kTransposeB, 2>({product.b}, warpgroup_position_in_d(thread, first).column, b, product.site);
    for (int i = 0; i < 4; ++i)
      for (int k = 0; k < kProductK; ++k) product.sums[first + i] += a[i / 2][k] * b[i % 2][k];
  }
}

inline AsyncWork& warpgroup_work(const char* what, Site site) {
  const std::size_t threads = std::size_t{blockDim.x} * blockDim.y * blockDim.z;
  if ((linear_thread() / kWarpgroup + 1) * kWarpgroup > threads)
    fail_kernel(site, "wgmma in a warp that does not belong to a full group of 4");
  return async_work_of_thread(what, site);
}

inline void begin_products(Site site) { warpgroup_work("warpgroup_fence", site).may_multiply = true; }

inline void start_product(const AsyncProduct& product) {
  AsyncWork& work = warpgroup_work("warpgroup_mma", product.site);
  check_operand({product.a}, product.site);
  check_operand({product.b}, product.site);
  if (!work.may_multiply) fail_kernel(product.site, "a product of a warpgroup without a warpgroup_fence before it");
  work.products.start(product);
}

inline void commit_products(Site site) { warpgroup_work("warpgroup_commit", site).products.commit(); }

/// The warp waits as one: once a lane goes on, no lane still reads what was multiplied.
inline void wait_for_products(unsigned pending, Site site) {
  AsyncWork& work = warpgroup_work("warpgroup_wait", site);
  work.products.land_all_but(pending, [](const AsyncProduct& product) { product.add(product); });
  work.may_multiply = false;
  warp_barrier("warpgroup_wait", ~0u, site);
}

}  // namespace gradring::simt::detail
