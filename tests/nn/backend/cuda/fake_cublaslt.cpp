// SPDX-License-Identifier: Apache-2.0
#include "tests/nn/backend/cuda/fake_cublaslt.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "kernels/runtime/dtype.h"

namespace gradring::tests {
namespace {

FakeCublasLt* the_fake = nullptr;

struct Description {
  std::map<int, std::vector<std::byte>> values;

  template <class T>
  T get(cublasLtMatmulDescAttributes_t name) const {
    T value{};
    std::memcpy(&value, values.at(name).data(), sizeof value);
    return value;
  }
};
Description& of(cublasLtMatmulDesc_t handle) { return *reinterpret_cast<Description*>(handle); }

struct Layout {
  cudaDataType type{};
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;
};
Layout& of(cublasLtMatrixLayout_t handle) { return *reinterpret_cast<Layout*>(handle); }

double load(const void* data, cudaDataType type, std::int64_t index) {
  const auto i = static_cast<std::size_t>(index);
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[i];
  if (type == CUDA_R_16F) return kernels::to_float(static_cast<const kernels::Half*>(data)[i]);
  return kernels::to_float(static_cast<const kernels::BFloat16*>(data)[i]);
}

void store(void* data, cudaDataType type, std::int64_t index, double value) {
  const auto i = static_cast<std::size_t>(index);
  const auto number = static_cast<float>(value);
  if (type == CUDA_R_32F) static_cast<float*>(data)[i] = number;
  if (type == CUDA_R_16F) static_cast<kernels::Half*>(data)[i] = kernels::to_half(number);
  if (type == CUDA_R_16BF) static_cast<kernels::BFloat16*>(data)[i] = kernels::to_bfloat16(number);
}

/// op(X)[i, j]
double element(const void* data, const Layout& layout, cublasOperation_t op, std::int64_t i, std::int64_t j) {
  if (op == CUBLAS_OP_T) std::swap(i, j);
  return load(data, layout.type, i + j * layout.leading);
}

const char* get_status_string(cublasStatus_t) { return "CUBLAS_STATUS_FAKED"; }
std::size_t get_version() { return CUBLAS_VERSION; }
cublasStatus_t create(cublasLtHandle_t* handle) {
  static int anything = 0;
  *handle = reinterpret_cast<cublasLtHandle_t>(&anything);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t destroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }

/// What MatmulSpec states: sums in f32 of factors that are not rounded.
cublasStatus_t matmul_create(cublasLtMatmulDesc_t* handle, cublasComputeType_t compute, cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  *handle = reinterpret_cast<cublasLtMatmulDesc_t>(new Description());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t matmul_destroy(cublasLtMatmulDesc_t handle) {
  delete &of(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t matmul_set(cublasLtMatmulDesc_t handle, cublasLtMatmulDescAttributes_t name, const void* value,
                          std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(value);
  of(handle).values[name].assign(first, first + bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layout_create(cublasLtMatrixLayout_t* handle, cudaDataType type, std::uint64_t rows,
                             std::uint64_t columns, std::int64_t leading) {
  *handle = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{type, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t layout_destroy(cublasLtMatrixLayout_t handle) {
  delete &of(handle);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_create(cublasLtMatmulPreference_t* handle) {
  static int anything = 0;
  *handle = reinterpret_cast<cublasLtMatmulPreference_t>(&anything);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t preference_destroy(cublasLtMatmulPreference_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t preference_set(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t name, const void* value,
                              std::size_t bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, value, std::min(bytes, sizeof number));
  the_fake->preferences[name] = number;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t get_heuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t,
                             cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                             cublasLtMatmulPreference_t, int, cublasLtMatmulHeuristicResult_t* results, int* found) {
  constexpr cublasLtEpilogue_t kKnown[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS,
                                           CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_BGRADB};
  *found = 0;
  ++the_fake->asked;
  const auto epilogue = of(description).get<cublasLtEpilogue_t>(CUBLASLT_MATMUL_DESC_EPILOGUE);
  if (std::ranges::find(kKnown, epilogue) == std::end(kKnown)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (of(description).values.contains(CUBLASLT_MATMUL_DESC_BIAS_POINTER))
    the_fake->bias_pointers.push_back(of(description).get<const void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER));
  if (the_fake->refused.contains(epilogue)) return CUBLAS_STATUS_NOT_SUPPORTED;
  *found = 1;
  results->state = CUBLAS_STATUS_SUCCESS;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t matmul(cublasLtHandle_t, cublasLtMatmulDesc_t handle, const void* alpha, const void* a,
                      cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                      const void*, cublasLtMatrixLayout_t, void* d, cublasLtMatrixLayout_t d_layout,
                      const cublasLtMatmulAlgo_t*, void* workspace, std::size_t workspace_bytes, cudaStream_t) {
  const Description& description = of(handle);
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto op_a = description.get<cublasOperation_t>(CUBLASLT_MATMUL_DESC_TRANSA);
  const auto op_b = description.get<cublasOperation_t>(CUBLASLT_MATMUL_DESC_TRANSB);
  const auto epilogue = description.get<cublasLtEpilogue_t>(CUBLASLT_MATMUL_DESC_EPILOGUE);
  const Layout& result = of(d_layout);
  const std::int64_t inner = op_a == CUBLAS_OP_T ? of(a_layout).rows : of(a_layout).columns;
  if (inner != (op_b == CUBLAS_OP_T ? of(b_layout).columns : of(b_layout).rows)) return CUBLAS_STATUS_INVALID_VALUE;
  constexpr std::size_t kRubbish = 4096;  // at both ends: all of it would take most of the test's time
  std::memset(workspace, 0xff, std::min(kRubbish, workspace_bytes));
  std::memset(static_cast<std::byte*>(workspace) + workspace_bytes - std::min(kRubbish, workspace_bytes), 0xff,
              std::min(kRubbish, workspace_bytes));
  void* bias = nullptr;
  cudaDataType bias_type{};
  if (epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
    bias = description.get<void*>(CUBLASLT_MATMUL_DESC_BIAS_POINTER);
    bias_type = description.get<cudaDataType>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE);
  }
  for (std::int64_t j = 0; j < result.columns; ++j) {
    double sum_b = 0;
    for (std::int64_t k = 0; k < inner; ++k) sum_b += element(b, of(b_layout), op_b, k, j);
    if (epilogue == CUBLASLT_EPILOGUE_BGRADB) store(bias, bias_type, j, sum_b);
    for (std::int64_t i = 0; i < result.rows; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < inner; ++k)
        sum += element(a, of(a_layout), op_a, i, k) * element(b, of(b_layout), op_b, k, j);
      if (epilogue & CUBLASLT_EPILOGUE_BIAS) sum += load(bias, bias_type, i);
      if (epilogue & CUBLASLT_EPILOGUE_RELU) sum = sum > 0 ? sum : 0;  // as the real one may: NaN becomes 0
      store(d, result.type, i + j * result.leading, sum);
    }
  }
  the_fake->executed.insert(epilogue);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

FakeCublasLt::FakeCublasLt() { the_fake = this; }
FakeCublasLt::~FakeCublasLt() { the_fake = nullptr; }

nn::CublasLtApi FakeCublasLt::api() const {
  return {.get_version = get_version,
          .get_status_string = get_status_string,
          .create = create,
          .destroy = destroy,
          .matmul_create = matmul_create,
          .matmul_destroy = matmul_destroy,
          .matmul_set = matmul_set,
          .layout_create = layout_create,
          .layout_destroy = layout_destroy,
          .preference_create = preference_create,
          .preference_destroy = preference_destroy,
          .preference_set = preference_set,
          .get_heuristic = get_heuristic,
          .matmul = matmul};
}

}  // namespace gradring::tests
