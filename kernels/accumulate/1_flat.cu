// SPDX-License-Identifier: Apache-2.0
// Idea: y += x; floating types in f32, rounded once.
// Mapping: one element a thread and turn; a thread strides over the grid (GPU) or takes one contiguous run (CPU).
// Traffic and bound: reads two elements and writes one; bound by memory.
// Still slow because: one element a load: on a GPU, 16-byte loads would need fewer instructions.

#include "kernels/accumulate/accumulate.h"

#include <cstdint>
#include <type_traits>

#include "kernels/lib/element.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::accumulate {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// Whole numbers wrap around.
template <class T>
__device__ inline T plus(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Bits = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Bits>(a) + static_cast<Bits>(b));
  } else {
    return lib::from_f32<T>(lib::to_f32(a) + lib::to_f32(b));
  }
}

template <class T>
__global__ void accumulate_flat_kernel(const T* x, T* y, std::size_t elements) {
  for (std::size_t i : simt::grid_range(elements)) y[i] = plus(y[i], x[i]);
}

template <class Visit>
void with_summand(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::i32: return visit(lib::Element<std::int32_t>());
    case DType::i64: return visit(lib::Element<std::int64_t>());
    default: return lib::with_element(dtype, visit);
  }
}

bool supports(const Device& device, DType dtype) { return lib::supports_any(device, dtype) && can_add(dtype); }

void run(Stream& stream, const Args& args) {
  check_args(args);
  with_summand(args.dtype, [&](auto element) {
    using T = typename decltype(element)::type;
    simt::launch_flat<accumulate_flat_kernel<T>>(stream, simt::grid_for(stream, args.elements),
                                                 static_cast<const T*>(args.x), static_cast<T*>(args.y), args.elements);
  });
}

}  // namespace

Variant flat() { return {"flat", run, supports}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::accumulate
