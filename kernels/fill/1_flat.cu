// SPDX-License-Identifier: Apache-2.0
// Idea: setting an element takes no arithmetic, only its bits; so there is one kernel per element size, not per type.
// Mapping: one element a thread and turn; a thread strides over the grid (GPU) or takes one contiguous run (CPU).
// Traffic and bound: writes each element once; bound by memory.
// Still slow because: one element a store: on a GPU, 16-byte stores would need fewer instructions.

#include "kernels/fill/fill.h"

#include <cstdint>
#include <span>

#include "kernels/lib/element.h"
#include "kernels/lib/host_values.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::fill {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <class Word>
__global__ void fill_flat_kernel(Word* y, std::size_t elements, Word word) {
  for (std::size_t i : simt::grid_range(elements)) y[i] = word;
}

template <class Word>
void launch(Stream& stream, const Args& args) {
  Word word{};
  lib::write_values(args.dtype, &word, std::span(&args.value, 1));
  simt::launch_flat<fill_flat_kernel<Word>>(stream, simt::grid_for(stream, args.elements), static_cast<Word*>(args.y),
                                            args.elements, word);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  switch (size_of(args.dtype)) {
    case 1: return launch<std::uint8_t>(stream, args);
    case 2: return launch<std::uint16_t>(stream, args);
    case 4: return launch<std::uint32_t>(stream, args);
    default: return launch<std::uint64_t>(stream, args);
  }
}

}  // namespace

Variant flat() { return {"flat", run, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::fill
