// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "nn/backend/cuda/cublaslt_api.h"

namespace gradring::nn {

/// cuBLASLt on one device. Shared by the plans of a backend.
///
/// Threads   any: its handle has no state that calls change.
class CublasLt {
 public:
  /// Errors    DeviceError if cuBLASLt does not start on this device.
  CublasLt(CublasLtApi api, const kernels::Device& device);

  const CublasLtApi& api() const { return api_; }
  cublasLtHandle_t handle() const { return handle_.get(); }
  const kernels::Device& device() const { return device_; }

 private:
  struct Destroy {
    const CublasLtApi* api;
    void operator()(cublasLtHandle_t handle) const noexcept { (void)api->destroy(handle); }
  };
  using Handle = std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, Destroy>;
  Handle make_handle();

  CublasLtApi api_;
  const kernels::Device& device_;
  Handle handle_;
};

/// What is done to a product before it is stored, or beside it.
enum class Epilogue : std::uint8_t {
  none,
  bias,       ///< adds bias[i] to row i
  bias_relu,  ///< and then takes the maximum with 0
  sum_b,      ///< also writes sum_k op(B)[k,j] to bias[j]: the gradient of a bias
};

/// D = op(A) op(B) in cuBLAS's column-major words: op(A) is [m, k], op(B) is [k, n], D is [m, n], each column contiguous.
struct MatmulSpec {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  kernels::DType dtype = kernels::DType::f32;    ///< of A and B; sums in f32, f32 factors are not shortened
  kernels::DType d_dtype = kernels::DType::f32;  ///< of D and of the bias
  Epilogue epilogue = Epilogue::none;
};

/// Pointers of one product.
struct MatmulPointers {
  const void* a = nullptr;
  const void* b = nullptr;
  void* d = nullptr;
  const void* bias = nullptr;  ///< read, or written by sum_b
  void* workspace = nullptr;   ///< CublasLtMatmul::kWorkspaceBytes
};

/// One product of fixed sizes, with the algorithm that cuBLASLt's heuristic puts first.
class CublasLtMatmul {
 public:
  static constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // what NVIDIA advises for Hopper

  /// Nothing if cuBLASLt has no algorithm for it.
  ///
  /// Errors    DeviceError if a call of it fails.
  static std::optional<CublasLtMatmul> make(std::shared_ptr<CublasLt> cublas, const MatmulSpec& spec);

  /// Errors    DeviceError if it cannot be enqueued.
  void enqueue(kernels::Stream& stream, const MatmulPointers& pointers);

 private:
  struct Destroy {
    const CublasLtApi* api;
    void operator()(cublasLtMatmulDesc_t description) const noexcept { (void)api->matmul_destroy(description); }
    void operator()(cublasLtMatrixLayout_t layout) const noexcept { (void)api->layout_destroy(layout); }
  };
  using Description = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, Destroy>;
  using Layout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>, Destroy>;

  CublasLtMatmul(std::shared_ptr<CublasLt> cublas, const MatmulSpec& spec);
  Description make_description() const;
  Layout make_layout(kernels::DType dtype, std::int64_t rows, std::int64_t columns) const;
  bool choose_algorithm();

  std::shared_ptr<CublasLt> cublas_;  // shared with the backend and its other plans: one handle for all
  MatmulSpec spec_;
  Description description_;
  Layout a_;
  Layout b_;
  Layout d_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace gradring::nn
