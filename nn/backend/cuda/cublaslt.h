// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string_view>
#include <type_traits>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"
#include "nn/backend/cuda/cuda_libraries.h"

namespace gradring::nn {

/// The functions of cuBLASLt that we call, looked up when a backend is made, as CudnnApi.
struct CublasLtApi {
  LibraryFunctions from = {};
  decltype(&::cublasLtGetVersion) get_version = from["cublasLtGetVersion"];
  decltype(&::cublasLtGetStatusString) get_status_string = from["cublasLtGetStatusString"];
  decltype(&::cublasLtCreate) create = from["cublasLtCreate"];
  decltype(&::cublasLtDestroy) destroy = from["cublasLtDestroy"];
  decltype(&::cublasLtMatmulDescCreate) matmul_create = from["cublasLtMatmulDescCreate"];
  decltype(&::cublasLtMatmulDescDestroy) matmul_destroy = from["cublasLtMatmulDescDestroy"];
  decltype(&::cublasLtMatmulDescSetAttribute) matmul_set = from["cublasLtMatmulDescSetAttribute"];
  decltype(&::cublasLtMatrixLayoutCreate) layout_create = from["cublasLtMatrixLayoutCreate"];
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy = from["cublasLtMatrixLayoutDestroy"];
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create = from["cublasLtMatmulPreferenceCreate"];
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy = from["cublasLtMatmulPreferenceDestroy"];
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set = from["cublasLtMatmulPreferenceSetAttribute"];
  decltype(&::cublasLtMatmulAlgoGetHeuristic) get_heuristic = from["cublasLtMatmulAlgoGetHeuristic"];
  decltype(&::cublasLtMatmul) matmul = from["cublasLtMatmul"];

  /// Errors    DeviceError if libcublasLt of this build's major version is missing or lacks one of them.
  static CublasLtApi load();
};

/// Throws unless `status` is success. `call` is the name of the function that returned it.
///
/// Errors    DeviceError: the call, cuBLAS's name for the error, and the caller's location.
void cublas_check(const CublasLtApi& api, cublasStatus_t status, std::string_view call,
                  std::source_location where = std::source_location::current());

/// cuBLASLt on one device, shared by the plans of a backend.
///
/// Threads   any: calls do not change the state of the handle.
class CublasLt {
 public:
  /// Errors    DeviceError if cuBLASLt does not start on this device.
  CublasLt(CublasLtApi api, const kernels::Device& device);

  const CublasLtApi& api() const { return api_; }
  cublasLtHandle_t handle() const { return handle_.get(); }
  const kernels::Device& device() const { return device_; }

 private:
  CublasLtApi api_;
  const kernels::Device& device_;
  LibraryHandle<cublasLtHandle_t> handle_;
};

/// What is computed with a product.
enum class Epilogue : std::uint8_t {
  none,
  bias,   ///< adds bias[i] to row i
  sum_b,  ///< also writes sum_k op(B)[k,j] to bias[j]: the gradient of a bias
};

/// D = op(A) op(B) in cuBLAS's column-major terms: op(A) is [m, k], op(B) is [k, n], D is [m, n], each column
/// contiguous.
struct MatmulSpec {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  kernels::DType dtype = kernels::DType::f32;    ///< of A and B; sums in f32, f32 factors are not rounded to TF32
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

/// One product of fixed sizes, with the first algorithm of cuBLASLt's heuristic.
class CublasLtMatmul {
 public:
  static constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;  // NVIDIA's advice for Hopper

  /// nullopt if cuBLASLt has no algorithm for it.
  ///
  /// Errors    DeviceError if a call fails.
  static std::optional<CublasLtMatmul> make(std::shared_ptr<CublasLt> cublas, const MatmulSpec& spec);

  /// Errors    DeviceError if it cannot be enqueued.
  void enqueue(kernels::Stream& stream, const MatmulPointers& pointers) const;

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

  std::shared_ptr<CublasLt> cublas_;  // one handle, shared with other plans
  MatmulSpec spec_;
  Description description_;
  Layout a_;
  Layout b_;
  Layout d_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace gradring::nn
