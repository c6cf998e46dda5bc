// SPDX-License-Identifier: Apache-2.0
// kernels/lib/bulk_tensor.h on the CPU.
// Barriers: the engine counts; the word in shared memory is only touched, so that the sanitizers see one that is out of
// bounds, or used before the block knows that it is initialised.
// Copies: instrumented code; the thread that starts a copy makes it at once.
#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/runtime/error.h"
#include "kernels/simt/cpu/index.h"
#include "kernels/simt/engine/cooperation.h"
#include "kernels/simt/tensor_layout.h"

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
  check(aligned(reinterpret_cast<std::uintptr_t>(box.data)), "a tensor map of data that is not aligned to 16");
  check(aligned(static_cast<std::uintptr_t>(box.columns) * 2), "a tensor map of rows not of 16 bytes' multiple");
  check(box.rows > 0 && box.columns > 0, "a tensor map of nothing");
  check(box.box_rows > 0 && box.box_rows <= 256, "a tensor map whose boxes do not have 1 to 256 rows");
  return box;
}

namespace detail {

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

}  // namespace detail
}  // namespace gradring::simt
