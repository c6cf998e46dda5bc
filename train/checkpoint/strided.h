// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gradring::train {

/// A tensor as PyTorch sees it in a storage: element (i, j, ...) lies at offset + i * strides[0] + j * strides[1] + ...
struct StridedView {
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;

  /// Whether it is well-formed (as many strides as extents, none of the numbers negative), no element lies beyond
  /// `storage_elements`, and it has no more elements than the storage: views that repeat elements could be of any size.
  bool lies_in(std::uint64_t storage_elements) const;
};

/// The elements of a view that lies in the storage, row-major.
std::vector<std::byte> make_dense(const StridedView& view, std::span<const std::byte> storage,
                                  std::size_t element_bytes);

/// The strides of a dense, row-major tensor.
std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape);

}  // namespace gradring::train
