// SPDX-License-Identifier: Apache-2.0
// Against a fake of cuBLASLt that computes what it is told, so that what is told is tested. No GPU has run the real one
// yet.
#include "nn/backend/cuda/cuda_libraries.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nn/models/model.h"
#include "tests/nn/backend/cuda/fake_cublaslt.h"
#include "tests/nn/backend/cuda/plan_rig.h"

namespace gradring::tests {
namespace {

using kernels::DType;

constexpr nn::Linear kLayers[] = {{.in_features = 7, .out_features = 3},
                                  {.in_features = 2, .out_features = 9},
                                  {.in_features = 4, .out_features = 5, .bias = false}};

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
  EXPECT_TRUE(fake_.executed.contains(CUBLASLT_EPILOGUE_BIAS));
  EXPECT_TRUE(fake_.executed.contains(CUBLASLT_EPILOGUE_BGRADB));
}

TEST_F(CublasLtLinear, AsksForNoEpilogueWithoutABias) {
  PlanRig rig(layer_nodes(kLayers[2], {5, 4}, false, DType::f32));
  rig.run({plan(rig).get()}, 5);
  EXPECT_THAT(fake_.executed, testing::Each(CUBLASLT_EPILOGUE_DEFAULT));
}

TEST_F(CublasLtLinear, AgreesWhereNoEpilogueFits) {
  fake_.refused = {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_BGRADB};
  expect_agreement();
}

/// It keeps a NaN; cuBLASLt does not say that its own does.
TEST_F(CublasLtLinear, ComputesReluWithOurKernel) {
  PlanRig rig(layer_nodes(kLayers[0], {5, 7}, true, DType::f16));
  int relus = 0;
  static int* counted = nullptr;
  counted = &relus;
  nn::HelperKernels helpers = nn::HelperKernels::pick(kernels::kernel_set(), rig.device(), DType::f16);
  helpers.relu.forward = [](kernels::Stream&, const kernels::relu::ForwardArgs&) { ++*counted; };
  const auto cublas =
      nn::plan_cublaslt_linear(rig.nodes(), std::make_shared<nn::CublasLt>(fake_.api(), rig.device()), helpers);
  const PlanResult result = rig.run({cublas.get()}, 5);
  EXPECT_EQ(relus, 1);
  EXPECT_THAT(result.y, testing::Contains(testing::Lt(0))) << "before the ReLU";
}

TEST_F(CublasLtLinear, AddsPartialSumsInF32) {
  PlanRig rig(layer_nodes(kLayers[0], {2, 7}, false, DType::f16));
  ASSERT_NE(plan(rig), nullptr);
  EXPECT_EQ(fake_.preferences.at(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK),
            std::uint64_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
}

TEST_F(CublasLtLinear, IsNoneWithoutAnAlgorithm) {
  fake_.refused = {CUBLASLT_EPILOGUE_DEFAULT};  // the gradient of the data has no other
  PlanRig rig(layer_nodes(kLayers[0], {2, 7}, false, DType::f16));
  EXPECT_EQ(plan(rig), nullptr);
}

/// The heuristic reads the pointer's alignment: equal layers must be planned alike in every process.
TEST_F(CublasLtLinear, GivesTheHeuristicAConstantBiasPointer) {
  PlanRig rig(layer_nodes(kLayers[0], {2, 7}, true, DType::f16));
  const auto first = plan(rig), second = plan(rig);
  ASSERT_GE(fake_.bias_pointers.size(), 4u);
  for (const void* const pointer : fake_.bias_pointers) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer), 16u);
}

TEST_F(CublasLtLinear, PlansOnlyRequestedGradients) {
  const auto products = [&](nn::Backward backward) {
    std::vector<nn::NodeSpec> nodes = layer_nodes(kLayers[0], {2, 7}, false, DType::f32);
    nodes.front().backward = backward;
    PlanRig rig(nodes);
    fake_.asked = 0;
    EXPECT_NE(plan(rig), nullptr);
    return fake_.asked;
  };
  EXPECT_EQ(products(nn::Backward::all), 3);
  EXPECT_EQ(products(nn::Backward::parameters), 2);
  EXPECT_EQ(products(nn::Backward::none), 1);
}

/// cuBLASLt itself checks descriptions, layouts and preferences, and needs no GPU for that; its heuristic does.
class RealCublasLt : public testing::Test {
 protected:
  void SetUp() override {
    try {
      real_ = nn::CublasLtApi::load();
    } catch (const DeviceError& error) {
      GTEST_SKIP() << error.what();
    }
  }
  /// The real functions, with a heuristic that always knows an algorithm.
  nn::CublasLtApi api() const {
    const nn::CublasLtApi fake = fake_.api();
    nn::CublasLtApi api = real_;
    api.create = fake.create;
    api.destroy = fake.destroy;
    api.get_heuristic = [](cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                           cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                           cublasLtMatmulHeuristicResult_t* result, int* found) {
      result->state = CUBLAS_STATUS_SUCCESS;
      *found = 1;
      return CUBLAS_STATUS_SUCCESS;
    };
    return api;
  }

  FakeCublasLt fake_;
  nn::CublasLtApi real_;
};

TEST_F(RealCublasLt, AcceptsThePlansOfEveryModel) {
  kernels::HostDevice device;
  const auto cublas = std::make_shared<nn::CublasLt>(api(), device);
  int plans = 0;
  for (const std::string_view name : nn::model_names())
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      for (const std::int64_t batch : {1, 96, 128, 2048}) {
        const nn::Model model = nn::make_model(name, {28, 28, 1}, 10);
        const std::vector<nn::Activations> inputs = nn::inputs_of(model, batch);
        for (std::size_t i = 0; i < model.layers.size(); ++i) {
          const nn::NamedLayer& named = model.layers[i];
          const nn::Shape input = inputs[i].shape;
          if (!std::holds_alternative<nn::Linear>(named.layer)) continue;
          SCOPED_TRACE(testing::Message() << name << " " << named.name << " " << name_of(dtype) << " " << batch);
          EXPECT_NO_THROW(++plans;
                          nn::plan_cublaslt_linear(layer_nodes(named.layer, input, true, dtype), cublas,
                                                   nn::HelperKernels::pick(kernels::kernel_set(), device, dtype)));
        }
      }
  EXPECT_EQ(plans, 120);
}

TEST_F(RealCublasLt, AcceptsEveryEpilogue) {
  using enum nn::Epilogue;
  kernels::HostDevice device;
  const auto cublas = std::make_shared<nn::CublasLt>(api(), device);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const auto& [epilogue, d_dtype] :
         {std::pair{none, dtype}, {bias, dtype}, {none, DType::f32}, {sum_b, DType::f32}}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << ", epilogue " << static_cast<int>(epilogue));
      const nn::MatmulSpec spec{.m = 8, .n = 16, .k = 24, .dtype = dtype, .d_dtype = d_dtype, .epilogue = epilogue};
      EXPECT_NO_THROW(EXPECT_TRUE(nn::CublasLtMatmul::make(cublas, spec).has_value()));
    }
}

TEST_F(RealCublasLt, RejectsAttributesOfWrongSize) {
  cublasLtMatmulDesc_t description = nullptr;
  ASSERT_EQ(real_.matmul_create(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), CUBLAS_STATUS_SUCCESS);
  const char too_small = 0;
  EXPECT_NE(real_.matmul_set(description, CUBLASLT_MATMUL_DESC_EPILOGUE, &too_small, sizeof too_small),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(real_.matmul_destroy(description), CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulPreference_t preference = nullptr;
  ASSERT_EQ(real_.preference_create(&preference), CUBLAS_STATUS_SUCCESS);
  EXPECT_NE(real_.preference_set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &too_small, sizeof too_small),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(real_.preference_destroy(preference), CUBLAS_STATUS_SUCCESS);
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
