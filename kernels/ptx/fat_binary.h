// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gradring::ptx {

/// One PTX text of a fat binary, and what it is for.
struct EmbeddedPtx {
  int compute_capability = 0;  ///< 90
  std::string text;
};

/// The PTX that nvcc embedded, from the wrapper that its host code passes to __cudaRegisterFatBinary.
///
/// Errors    PtxError if the wrapper, the container or a compression is not known.
std::vector<EmbeddedPtx> embedded_ptx(const void* fat_binary_wrapper);

}  // namespace gradring::ptx
