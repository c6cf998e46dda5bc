// SPDX-License-Identifier: Apache-2.0
// Against a stand-in for cuBLASLt that computes what it is told, so that what is told is tested. No GPU has run the real one yet.
#include "nn/backend/cuda/cuda_libraries.h"

#include <gtest/gtest.h>

#include "tests/nn/backend/cuda/fake_cublaslt.h"
#include "tests/nn/backend/cuda/plan_rig.h"

namespace gradring::tests {
namespace {

using kernels::DType;

constexpr nn::Linear kLayers[] = {{.in_features = 7, .out_features = 3}, {.in_features = 2, .out_features = 9}};

class CublasLtLinear : public testing::Test {
 protected:
  std::unique_ptr<nn::Plan> plan(PlanRig& rig) {
    const DType dtype = rig.nodes().front().dtype;
    return nn::plan_cublaslt_linear(rig.nodes(), std::make_shared<nn::CublasLt>(fake_.api(), rig.device()),
                                    nn::HelperKernels::pick(kernels::kernel_set(), rig.device(), dtype));
  }

  void expect_agreement() {
    for (const nn::Linear& layer : kLayers)
      for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
        for (const bool relu : {false, true}) {
          SCOPED_TRACE(testing::Message() << layer.in_features << " features " << name_of(dtype) << " relu " << relu);
          PlanRig rig(layer_nodes(layer, {5, layer.in_features}, relu, dtype));
          const auto cublas = plan(rig);
          ASSERT_NE(cublas, nullptr);
          EXPECT_EQ(cublas->nodes(), rig.nodes().size());
          for (const std::int64_t batch : {5, 1}) expect_same(rig.run({cublas.get()}, batch), rig.run_ours(batch));
        }
  }

  FakeCublasLt fake_;
};

TEST_F(CublasLtLinear, AgreesWithOurKernels) {
  expect_agreement();
  EXPECT_TRUE(fake_.executed.contains(CUBLASLT_EPILOGUE_RELU_BIAS));
  EXPECT_TRUE(fake_.executed.contains(CUBLASLT_EPILOGUE_BIAS));
  EXPECT_TRUE(fake_.executed.contains(CUBLASLT_EPILOGUE_BGRADB));
}

TEST_F(CublasLtLinear, AgreesWhereNoEpilogueFits) {
  fake_.refused = {CUBLASLT_EPILOGUE_RELU_BIAS, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BGRADB};
  expect_agreement();
}

TEST_F(CublasLtLinear, AgreesWhereBiasAloneFits) {
  fake_.refused = {CUBLASLT_EPILOGUE_RELU_BIAS};
  expect_agreement();
}

TEST_F(CublasLtLinear, IsNoneWithoutAnAlgorithm) {
  fake_.refused = {CUBLASLT_EPILOGUE_DEFAULT};  // the gradient of the data has no other
  PlanRig rig(layer_nodes(kLayers[0], {2, 7}, false, DType::f16));
  EXPECT_EQ(plan(rig), nullptr);
}

TEST(CublasCheck, NamesTheCallAndItsPlace) {
  FakeCublasLt fake;
  try {
    nn::cublas_check(fake.api(), CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmul");
    FAIL();
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("cublasLtMatmul failed: CUBLAS_STATUS_FAKED"), text.npos) << text;
    EXPECT_NE(text.find("cublaslt_linear_test.cpp:"), text.npos) << text;
  }
}

}  // namespace
}  // namespace gradring::tests
