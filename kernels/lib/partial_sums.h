// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace gradring::kernels {

/// An array that has not been added up yet, in device memory:
///   to[i] = sum over s of slices[s * stride + i]        0 <= s < count, 0 <= i < elements
struct PartialSum {
  const float* slices = nullptr;
  std::int64_t count = 0;
  std::int64_t stride = 0;  ///< from one slice to the next, in elements
  std::int64_t elements = 0;
  float* to = nullptr;
};

/// Partial sums that operations leave to their caller, who adds up those of several operations in one launch
/// (gradient_statistics). An operation gets a pointer to such a list among its arguments. With null it writes complete
/// sums. Otherwise it may append partial sums instead, for some results or for none; their slices are in its workspace,
/// which belongs to them until the caller has added them up. Where it accumulates, it adds up its sums itself.
using PartialSums = std::vector<PartialSum>;

}  // namespace gradring::kernels
