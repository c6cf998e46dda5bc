// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace gradring::simt::detail {

/// The most dynamic shared memory that a block may ask for, as on compute capability 9.0.
inline constexpr std::size_t kMostSharedBytes = 227 * 1024;
/// The most that a block may declare statically.
inline constexpr std::size_t kMostStaticSharedBytes = 48 * 1024;
/// Enough for TMA, and for every vector type.
inline constexpr std::size_t kSharedAlignment = 128;

struct FreeShared {
  void operator()(unsigned char* data) const { ::operator delete(data, std::align_val_t{kSharedAlignment}); }
};
using SharedBytes = std::unique_ptr<unsigned char, FreeShared>;

/// The dynamic shared memory of the blocks that one worker runs, one after the other. Allocated to the exact size, so
/// that AddressSanitizer sees the first byte past its end.
class DynamicShared {
 public:
  DynamicShared() = default;
  DynamicShared(const DynamicShared&) = delete;
  DynamicShared& operator=(const DynamicShared&) = delete;

  void resize(std::size_t bytes);
  void poison() const;
  unsigned char* data() const { return data_.get(); }

 private:
  SharedBytes data_;
  std::size_t bytes_ = 0;
};

/// Memory for a SIMT_SHARED variable of the calling OS thread in checked builds; lives as long as that thread. An
/// allocation of its own has redzones, which no compiler puts around thread_local variables.
void* own_shared_variable(std::size_t bytes);
/// Fills the memory of all these variables of the calling OS thread with 0xff.
void poison_shared_variables();

}  // namespace gradring::simt::detail
