// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cublaslt.h"

#include <string>

#include "kernels/base/error.h"

namespace gradring::nn {
namespace {

using kernels::DType;

/// Guaranteed alignment of pointers in bytes; arenas and buffers have more.
constexpr std::uint32_t kAlignment = 16;

/// A pointer of exactly that alignment, never read.
const void* least_aligned_pointer() { return reinterpret_cast<const void*>(std::uintptr_t{kAlignment}); }

cudaDataType_t cublas_type(DType dtype) {
  switch (dtype) {
    case DType::f32: return CUDA_R_32F;
    case DType::f16: return CUDA_R_16F;
    case DType::bf16: return CUDA_R_16BF;
    default:
      throw InvalidArgument("cuBLAS does not multiply " + std::string(kernels::name_of(dtype)) +
                            ", expected f32, f16 or bf16");
  }
}

cublasLtEpilogue_t cublas_epilogue(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none: return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias: return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::sum_b: return CUBLASLT_EPILOGUE_BGRADB;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

}  // namespace

CublasLtApi CublasLtApi::load() {
  return {.from = LibraryFunctions("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR))};
}

void cublas_check(const CublasLtApi& api, cublasStatus_t status, std::string_view call, std::source_location where) {
  check<DeviceError>(
      status == CUBLAS_STATUS_SUCCESS, [&] { return std::string(call) + " failed: " + api.get_status_string(status); },
      where);
}

CublasLt::CublasLt(CublasLtApi api, const kernels::Device& device)
    : api_(api), device_(device), handle_(make_handle(device, api_.create, api_.destroy, [this](cublasStatus_t status) {
        cublas_check(api_, status, "cublasLtCreate");
      })) {}

std::optional<CublasLtMatmul> CublasLtMatmul::make(std::shared_ptr<CublasLt> cublas, const MatmulSpec& spec) {
  CublasLtMatmul matmul(std::move(cublas), spec);
  if (!matmul.choose_algorithm()) return std::nullopt;
  return matmul;
}

CublasLtMatmul::CublasLtMatmul(std::shared_ptr<CublasLt> cublas, const MatmulSpec& spec)
    : cublas_(std::move(cublas)),
      spec_(spec),
      description_(make_description()),
      a_(make_layout(spec.dtype, spec.transpose_a ? spec.k : spec.m, spec.transpose_a ? spec.m : spec.k)),
      b_(make_layout(spec.dtype, spec.transpose_b ? spec.n : spec.k, spec.transpose_b ? spec.k : spec.n)),
      d_(make_layout(spec.d_dtype, spec.m, spec.n)) {}

CublasLtMatmul::Description CublasLtMatmul::make_description() const {
  const CublasLtApi& api = cublas_->api();
  cublasLtMatmulDesc_t handle = nullptr;
  cublas_check(api, api.matmul_create(&handle, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
  Description description(handle, Destroy{&api});
  const auto set = [&](cublasLtMatmulDescAttributes_t name, const auto& value) {
    cublas_check(api, api.matmul_set(handle, name, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, spec_.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, spec_.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, cublas_epilogue(spec_.epilogue));
  if (spec_.epilogue != Epilogue::none) {
    const void* const stand_in = least_aligned_pointer();  // the heuristic reads its alignment; enqueue() sets the bias
    set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, cublas_type(spec_.d_dtype));
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, stand_in);
  }
  return description;
}

CublasLtMatmul::Layout CublasLtMatmul::make_layout(DType dtype, std::int64_t rows, std::int64_t columns) const {
  const CublasLtApi& api = cublas_->api();
  cublasLtMatrixLayout_t layout = nullptr;
  cublas_check(api,
               api.layout_create(&layout, cublas_type(dtype), static_cast<std::uint64_t>(rows),
                                 static_cast<std::uint64_t>(columns), rows),
               "cublasLtMatrixLayoutCreate");
  return Layout(layout, Destroy{&api});
}

bool CublasLtMatmul::choose_algorithm() {
  const CublasLtApi& api = cublas_->api();
  make_current(cublas_->device());
  cublasLtMatmulPreference_t handle = nullptr;
  cublas_check(api, api.preference_create(&handle), "cublasLtMatmulPreferenceCreate");
  const auto destroy = [&api](cublasLtMatmulPreference_t preference) { (void)api.preference_destroy(preference); };
  const std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, decltype(destroy)> owner(handle, destroy);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, const auto& value) {
    cublas_check(api, api.preference_set(handle, name, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  // Parts of a sum are added in f32, never in the 16-bit type of the output.
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  for (const auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                          CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(name, kAlignment);

  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const cublasStatus_t status = api.get_heuristic(cublas_->handle(), description_.get(), a_.get(), b_.get(), d_.get(),
                                                  d_.get(), handle, 1, &result, &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && found == 0)) return false;
  cublas_check(api, status, "cublasLtMatmulAlgoGetHeuristic");
  algorithm_ = result.algo;
  return result.state == CUBLAS_STATUS_SUCCESS;
}

void CublasLtMatmul::enqueue(kernels::Stream& stream, const MatmulPointers& pointers) const {
  const CublasLtApi& api = cublas_->api();
  make_current(cublas_->device());
  if (spec_.epilogue != Epilogue::none)
    cublas_check(
        api,
        api.matmul_set(description_.get(), CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pointers.bias, sizeof pointers.bias),
        "cublasLtMatmulDescSetAttribute");
  const float one = 1;
  const float zero = 0;
  cublas_check(api,
               api.matmul(cublas_->handle(), description_.get(), &one, pointers.a, a_.get(), pointers.b, b_.get(),
                          &zero, pointers.d, d_.get(), pointers.d, d_.get(), &algorithm_, pointers.workspace,
                          kWorkspaceBytes, static_cast<cudaStream_t>(stream.native_handle())),
               "cublasLtMatmul");
}

}  // namespace gradring::nn
