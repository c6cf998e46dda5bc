// SPDX-License-Identifier: Apache-2.0
// fill, scale, accumulate, cast and relu: loops over elements.
// Idea: arithmetic in f32, rounded once. fill copies bits: one kernel per element size, not per type. cast converts by
//   way of f32, which holds every f16 and bf16 exactly. relu's output alone says where the gradient passes: its input
//   is not kept.
// Mapping: grid-stride, one element per thread and step (GPU); one contiguous run per thread (CPU).
// Traffic and bound: each array is read or written once; bound by memory.
// Still slow because: one element per access: on a GPU, 16-byte accesses need fewer instructions. Better still, the
//   kernel that makes x does it.

#include <cstdint>
#include <span>
#include <type_traits>

#include "kernels/lib/element.h"
#include "kernels/lib/reference.h"
#include "kernels/ops/elementwise/elementwise.h"
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

namespace gradring::kernels::scale {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <class T>
__global__ void scale_flat_kernel(const T* x, T* y, std::size_t elements, float factor) {
  for (std::size_t i : simt::grid_range(elements)) y[i] = lib::from_f32<T>(factor * lib::to_f32(x[i]));
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<scale_flat_kernel<T>>(stream, simt::grid_for(stream, args.elements),
                                            static_cast<const T*>(args.x), static_cast<T*>(args.y), args.elements,
                                            args.factor);
  });
}

}  // namespace

Variant flat() { return {"flat", run, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::scale

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
  with_summand(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<accumulate_flat_kernel<T>>(stream, simt::grid_for(stream, args.elements),
                                                 static_cast<const T*>(args.x), static_cast<T*>(args.y), args.elements);
  });
}

}  // namespace

Variant flat() { return {"flat", run, supports}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::accumulate

namespace gradring::kernels::cast {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <class From, class To>
__global__ void cast_flat_kernel(const From* __restrict__ x, To* __restrict__ y, std::size_t elements) {
  for (std::size_t i : simt::grid_range(elements)) y[i] = lib::from_f32<To>(lib::to_f32(x[i]));
}

template <class From, class To>
void launch(Stream& stream, const Args& args) {
  simt::launch_flat<cast_flat_kernel<From, To>>(stream, simt::grid_for(stream, args.elements),
                                                static_cast<const From*>(args.x), static_cast<To*>(args.y),
                                                args.elements);
}

void run(Stream& stream, const Args& args) {
  check_args(args);
  lib::with_element(args.from, [&](auto from) {
    lib::with_element(
        args.to, [&](auto to) { launch<typename decltype(from)::type, typename decltype(to)::type>(stream, args); });
  });
}

}  // namespace

Variant flat() { return {"flat", run, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::cast

namespace gradring::kernels::relu {
inline namespace GRADRING_KERNEL_COPY {
namespace {

template <class T>
__global__ void relu_forward_flat_kernel(const T* x, T* y, std::size_t elements) {
  for (std::size_t i : simt::grid_range(elements)) {
    const float value = lib::to_f32(x[i]);
    y[i] = lib::from_f32<T>(value < 0.0f ? 0.0f : value);  // not max(): NaN must stay
  }
}

template <class T>
__global__ void relu_backward_flat_kernel(const T* y, const T* dy, T* dx, std::size_t elements) {
  for (std::size_t i : simt::grid_range(elements))
    dx[i] = lib::from_f32<T>(lib::to_f32(y[i]) > 0.0f ? lib::to_f32(dy[i]) : 0.0f);
}

void forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<relu_forward_flat_kernel<T>>(stream, simt::grid_for(stream, args.elements),
                                                   static_cast<const T*>(args.x), static_cast<T*>(args.y),
                                                   args.elements);
  });
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<relu_backward_flat_kernel<T>>(stream, simt::grid_for(stream, args.elements),
                                                    static_cast<const T*>(args.y), static_cast<const T*>(args.dy),
                                                    static_cast<T*>(args.dx), args.elements);
  });
}

}  // namespace

Variant flat() { return {"flat", forward, backward, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::relu
