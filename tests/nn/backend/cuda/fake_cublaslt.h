// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "nn/backend/cuda/cublaslt.h"

namespace gradring::tests {

/// cuBLASLt's products on the CPU: plain loops over column-major matrices, as layouts and descriptions say. It knows the
/// compute type that we use, some epilogues, and no other. The workspace is filled with rubbish at both ends.
///
/// Threads   one; one at a time.
class FakeCublasLt {
 public:
  FakeCublasLt();
  ~FakeCublasLt();
  FakeCublasLt(const FakeCublasLt&) = delete;
  FakeCublasLt& operator=(const FakeCublasLt&) = delete;

  nn::CublasLtApi api() const;

  std::set<cublasLtEpilogue_t> refused;  ///< epilogues for which it has no algorithm
  std::multiset<cublasLtEpilogue_t> executed;
  int asked = 0;                                                              ///< calls of the heuristic
  std::map<cublasLtMatmulPreferenceAttributes_t, std::uint64_t> preferences;  ///< as last set
  std::vector<const void*> bias_pointers;  ///< that the heuristic saw, of the epilogues with one
};

}  // namespace gradring::tests
