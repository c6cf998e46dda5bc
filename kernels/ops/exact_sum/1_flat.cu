// SPDX-License-Identifier: Apache-2.0
// Idea: floats are rounded to whole multiples of a unit, which 64-bit integers add up exactly, in any order.
// Mapping: grid-stride, one element per thread and iteration (GPU); one contiguous run per thread (CPU). A thread
//   counts what it rejects, and at its end adds its count, if there is any, to the global one.
// Traffic and bound: add reads 12 and writes 8 bytes per element, read 8 and 4; bound by memory.
// Still slow because: one element a load; a GPU made for graphics or inference does few doubles a cycle.

#include "kernels/ops/exact_sum/exact_sum.h"

#include <limits>

#include "kernels/lib/element.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::exact_sum {
inline namespace GRADRING_KERNEL_COPY {
namespace {

using Count = unsigned long long;  // what atomicAdd has; whole numbers add up alike with and without a sign

__device__ double value_of(double unit, const float* scale) {
  return scale ? unit * static_cast<double>(*scale) : unit;
}

__global__ void exact_sum_add_flat_kernel(std::size_t elements, const float* __restrict__ x,
                                          const float* __restrict__ scale, std::int64_t* __restrict__ units,
                                          Count* __restrict__ refused, double unit, double most) {
  const double per_unit = 1 / value_of(unit, scale);
  std::int64_t mine = 0;
  for (std::size_t i : simt::grid_range(elements)) {
    const double rounded = rint(static_cast<double>(x[i]) * per_unit);
    const bool fits = fabs(rounded) <= most;  // not so for NaN
    units[i] += static_cast<std::int64_t>(fits ? rounded : 0);
    mine += fits ? 0 : 1;
  }
  if (mine > 0) atomicAdd(refused, static_cast<Count>(mine));
}

__global__ void exact_sum_read_flat_kernel(std::size_t elements, const std::int64_t* __restrict__ units,
                                           const std::int64_t* __restrict__ refused, const float* __restrict__ scale,
                                           float* __restrict__ x, double unit) {
  const double value = *refused == 0 ? value_of(unit, scale) : std::numeric_limits<double>::quiet_NaN();
  for (std::size_t i : simt::grid_range(elements)) x[i] = static_cast<float>(static_cast<double>(units[i]) * value);
}

void add(Stream& stream, const AddArgs& args) {
  check_args(args);
  simt::launch_flat<exact_sum_add_flat_kernel>(stream, simt::grid_for(stream, args.elements), args.elements, args.x,
                                               args.scale, args.units, reinterpret_cast<Count*>(args.refused),
                                               args.unit, static_cast<double>(args.most));
}

void read(Stream& stream, const ReadArgs& args) {
  check_args(args);
  simt::launch_flat<exact_sum_read_flat_kernel>(stream, simt::grid_for(stream, args.elements), args.elements,
                                                args.units, args.refused, args.scale, args.x, args.unit);
}

}  // namespace

Variant flat() { return {"flat", add, read, lib::supports_any}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::exact_sum
