// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/simulated_gpu/machine/bulk_stores.h"
#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/operations/access.h"
#include "kernels/simulated_gpu/machine/program.h"

namespace gradring::simulated_gpu {

/// What an atomic does with an element of memory.
struct ElementFunction {
  unsigned bytes = 4;
  /// Of the element at this address of the host.
  UpdatedElement (*update)(std::uint64_t address, std::uint64_t operand) = nullptr;
  bool is_pair = false;  ///< f16x2, bf16x2: two elements in a register
};

/// Takes the function and type of atom, red and cp.reduce: ".add.noftz.f16x2".
///
/// Errors    Unsupported.
ElementFunction take_element_function(Decoder& decoder);

/// atom and red of vectors and of 16-bit types, element by element. Words for the memory order were taken before.
void translate_element_atomic(Decoder& decoder, Operation& operation, bool returns, const AccessOrder& order);

}  // namespace gradring::simulated_gpu
