// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <type_traits>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "kernels/simt/simt.h"

/// The types of activations inside kernels. A kernel is a template on its element type T, reads with to_f32, computes
/// in float, and writes with from_f32<T>; a launch wrapper picks the instance with with_element.
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

__device__ inline float to_f32(float value) { return value; }
__device__ inline float to_f32(__half value) { return __half2float(value); }
__device__ inline float to_f32(__nv_bfloat16 value) { return __bfloat162float(value); }

template <class T>
__device__ inline T from_f32(float value);
template <>
__device__ inline float from_f32<float>(float value) {
  return value;
}
template <>
__device__ inline __half from_f32<__half>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ inline __nv_bfloat16 from_f32<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

/// 16-bit elements of a 16-byte vector: what one load, one cp.async and one row of ldmatrix move.
inline constexpr int kVectorElements = 8;

/// A type as a value: `using T = typename decltype(element)::type` inside with_element's visitor.
template <class T>
struct Element {
  using type = T;
};

/// Calls visit(Element<T>()) with the device's type for `dtype`.
///
/// Errors    InvalidArgument if the device has no such type; check_args has rejected it before.
template <class Visit>
void with_element(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::f32: return visit(Element<float>());
    case DType::f16: return visit(Element<__half>());
    case DType::bf16: return visit(Element<__nv_bfloat16>());
    default:
      throw InvalidArgument("kernels do not support dtype " + std::string(name_of(dtype)) + ": use f32, f16 or bf16");
  }
}

/// The same for kernels on tensor cores.
template <class Visit>
void with_half(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::f16: return visit(Element<__half>());
    case DType::bf16: return visit(Element<__nv_bfloat16>());
    default:
      throw InvalidArgument("tensor cores do not support dtype " + std::string(name_of(dtype)) + ": use f16 or bf16");
  }
}

/// Calls visit(std::bool_constant): the instance of a kernel for a value known at launch.
template <class Visit>
void with_bool(bool value, Visit visit) {
  if (value)
    visit(std::true_type());
  else
    visit(std::false_type());
}

/// The kind of device that this copy of the kernel text runs on.
#ifdef __CUDACC__
inline constexpr DeviceKind kCopyKind = DeviceKind::cuda;
#else
inline constexpr DeviceKind kCopyKind = DeviceKind::cpu;
#endif

/// Variant::supports of a kernel without special needs.
inline bool supports_floating(const Device& device, DType dtype) {
  return device.id().kind == kCopyKind && is_floating(dtype);
}

/// Of a kernel that GPUs want, while CPUs have better: they run it in tests only, where Variant::computes lets them.
inline bool supports_cuda_floating(const Device& device, DType dtype) {
  return device.id().kind == DeviceKind::cuda && supports_floating(device, dtype);
}

inline bool supports_cuda_half(const Device& device, DType dtype) {
  return supports_cuda_floating(device, dtype) && is_half(dtype);
}

/// The same for a kernel in instructions that only sm_90a has: H100, H200.
inline bool supports_hopper_half(const Device& device, DType dtype) {
  return supports_cuda_half(device, dtype) && simt::compute_capability(device) == 90;
}

/// The same for a kernel that has only one type, or treats all alike.
inline bool supports_any(const Device& device, DType) { return device.id().kind == kCopyKind; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
