// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gradring::train {

/// A tensor in a PyTorch storage: element (i, j, ...) is at offset + i * strides[0] + j * strides[1] + ...
struct StridedView {
  std::int64_t offset = 0;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;

  /// Whether it is well-formed (one stride per extent, no negative numbers) and lies within the storage. It may have more
  /// elements than the storage: a stride of 0 repeats them (Tensor.expand).
  bool lies_in(std::uint64_t storage_elements) const;

  /// The elements, row-major. The view lies in `storage`.
  std::vector<std::byte> make_dense(std::span<const std::byte> storage, std::size_t element_bytes) const;
};

/// The strides of a dense, row-major tensor.
std::vector<std::int64_t> dense_strides(std::span<const std::int64_t> shape);

/// The strides of a dense, column-major tensor.
std::vector<std::int64_t> column_major_strides(std::span<const std::int64_t> shape);

}  // namespace gradring::train
