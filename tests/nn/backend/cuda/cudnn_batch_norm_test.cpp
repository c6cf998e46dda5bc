// SPDX-License-Identifier: Apache-2.0
// Against a fake of cuDNN that computes what it is told, so that what is told is tested. No GPU has run the real one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/host/host_device.h"
#include "nn/backend/cuda/cuda_backend.h"
#include "nn/backend/cuda/cudnn.h"
#include "tests/nn/backend/cuda/fake_cudnn.h"
#include "tests/support/expect_close.h"
#include "tests/support/values.h"

namespace gradring::tests {
namespace {

using kernels::DType;

constexpr std::int64_t kImages = 3, kSide = 4, kChannels = 8;

/// What a forward and a backward pass of a batch leave.
struct BatchNormResult {
  std::vector<double> y, dx, dresidual, dweight, dbias, running_mean, running_var;
};

class CudnnBatchNorm : public testing::Test {
 protected:
  /// BatchNorm2d, an Add and a ReLU, of which the latter two may be missing.
  static std::vector<nn::NodeSpec> nodes(DType dtype, bool residual, bool relu) {
    const nn::Shape shape = {kImages, kSide, kSide, kChannels};
    std::vector<nn::NodeSpec> nodes = {{nn::BatchNorm2d{.channels = kChannels, .eps = 1e-3f}, shape, shape, dtype}};
    if (residual) nodes.push_back({nn::Add{}, shape, shape, dtype});
    if (relu) nodes.push_back({nn::Relu{}, shape, shape, dtype});
    return nodes;
  }

  std::unique_ptr<nn::Plan> plan(const std::vector<nn::NodeSpec>& nodes, const std::string& conv) {
    const auto cudnn = std::make_shared<nn::Cudnn>(fake_.api(), device_, nn::CudaBackendOptions{});
    nn::CudaBackendOptions options;
    options.conv = conv;
    return nn::CudaBackend(kernels::kernel_set(), device_, options, {.cudnn = cudnn, .cublas = nullptr}).plan(nodes);
  }

  /// `recomputes`: forward runs again before backward, as with activation checkpointing.
  BatchNormResult run(nn::Plan& plan, DType dtype, bool residual, std::int64_t batch, bool recomputes) {
    const auto elements = static_cast<std::size_t>(batch * kSide * kSide * kChannels);
    const auto buffer = [&](const TypedArray& values) {
      kernels::Buffer made = allocate(values.elements() * size_of(values.dtype()));
      std::copy_n(static_cast<const std::byte*>(values.data()), made.size(), made.data());
      return made;
    };
    const auto random = [&](std::size_t count, std::uint64_t seed) {
      return buffer(TypedArray(dtype, random_values(count, seed, -2, 3)));
    };
    const auto unwritten = [&](DType type, std::size_t count) { return buffer(TypedArray::unwritten(type, count)); };
    const auto f32 = [&](double value) {
      return buffer(TypedArray(DType::f32, std::vector<double>(kChannels, value)));
    };
    const kernels::Buffer x = random(elements, 1), other = random(elements, 2), weight = random(kChannels, 3),
                          bias = random(kChannels, 4), y = unwritten(dtype, elements), dx = unwritten(dtype, elements),
                          dresidual = unwritten(dtype, elements), dweight = f32(0), dbias = f32(0),
                          running_mean = f32(0.5), running_var = f32(2);
    const kernels::Buffer dy = random(elements, 5);
    const kernels::Buffer kept = allocate(plan.kept_bytes()), workspace = allocate(plan.workspace_bytes());
    const std::vector<const void*> parameters = {weight.data(), bias.data()};
    const std::vector<float*> gradients = {dweight.as<float>(), dbias.as<float>()};
    const std::vector<float*> buffers = {running_mean.as<float>(), running_var.as<float>()};
    const auto stream = device_.make_stream(kernels::StreamMode::in_place);
    nn::ForwardPass forward{.batch = batch,
                            .x = x.data(),
                            .residual = residual ? other.data() : nullptr,
                            .y = y.data(),
                            .parameters = parameters,
                            .buffers = buffers,
                            .kept = kept.data(),
                            .workspace = workspace.data()};
    if (plan.has_statistics()) plan.enqueue_statistics(*stream, forward);
    plan.enqueue_forward(*stream, forward);
    forward.recomputed = true;
    if (recomputes) plan.enqueue_forward(*stream, forward);
    const nn::BackwardPass backward{.batch = batch,
                                    .x = x.data(),
                                    .y = y.data(),
                                    .dy = dy.data(),
                                    .dx = dx.data(),
                                    .dresidual = residual ? dresidual.data() : nullptr,
                                    .parameters = parameters,
                                    .gradients = gradients,
                                    .kept = kept.data(),
                                    .workspace = workspace.data()};
    if (plan.has_statistics()) plan.enqueue_sums(*stream, backward);
    plan.enqueue_backward(*stream, backward);
    stream->synchronize(Deadline::after(std::chrono::minutes(1)));
    const auto values = [](const kernels::Buffer& of, DType type) {
      TypedArray array = TypedArray::unwritten(type, of.size() / size_of(type));
      std::copy_n(of.data(), of.size(), static_cast<std::byte*>(array.data()));
      return array.values();
    };
    return {.y = values(y, dtype),
            .dx = values(dx, dtype),
            .dresidual = residual ? values(dresidual, dtype) : std::vector<double>(),
            .dweight = values(dweight, DType::f32),
            .dbias = values(dbias, DType::f32),
            .running_mean = values(running_mean, DType::f32),
            .running_var = values(running_var, DType::f32)};
  }

  kernels::Buffer allocate(std::size_t bytes) { return device_.allocate(bytes, kernels::MemoryKind::device); }

  kernels::HostDevice device_;
  FakeCudnn fake_;
};

/// In every type, with and without Add and ReLU, in the full batch and a short one, recomputed or not.
TEST_F(CudnnBatchNorm, AgreesWithOurKernels) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const bool residual : {false, true})
      for (const bool relu : {false, true})
        for (const std::int64_t batch : {kImages, std::int64_t{2}}) {
          SCOPED_TRACE(testing::Message()
                       << name_of(dtype) << " residual " << residual << " relu " << relu << " batch " << batch);
          const auto spec = nodes(dtype, residual, relu);
          const auto cudnn = plan(spec, "cudnn"), ours = plan(spec, "direct");
          ASSERT_EQ(cudnn->description(), "cudnn");
          EXPECT_THAT(ours->description(), testing::StartsWith("batch_norm/"));
          EXPECT_EQ(cudnn->nodes(), spec.size());
          const BatchNormResult actual = run(*cudnn, dtype, residual, batch, dtype == DType::bf16);
          const BatchNormResult expected = run(*ours, dtype, residual, batch, false);
          const double step = dtype == DType::f32 ? 1e-5 : dtype == DType::f16 ? 4e-3 : 3e-2;
          const auto compare = [&](const std::vector<double>& a, const std::vector<double>& e, double bound) {
            expect_close(a, e, [&](std::size_t i) { return bound * (1 + std::abs(e[i])); });
          };
          compare(actual.y, expected.y, step);
          compare(actual.dx, expected.dx, step);
          compare(actual.dresidual, expected.dresidual, step);
          compare(actual.dweight, expected.dweight, 10 * step);
          compare(actual.dbias, expected.dbias, 10 * step);
          compare(actual.running_mean, expected.running_mean, 1e-6);
          compare(actual.running_var, expected.running_var, 1e-6);
        }
}

TEST_F(CudnnBatchNorm, IsOursUnlessCudnnIsNamedAndHasAnEngine) {
  const auto spec = nodes(DType::f32, false, true);
  EXPECT_THAT(plan(spec, "auto")->description(), testing::StartsWith("batch_norm/"));
  fake_.mode_a.emplace();
  EXPECT_THAT(plan(spec, "cudnn")->description(), testing::StartsWith("batch_norm/"));
}

/// A batch for which cuDNN has no engine, as our kernels compute an empty one.
TEST_F(CudnnBatchNorm, LeavesBatchesWithoutAnEngineToOurKernels) {
  const auto spec = nodes(DType::f32, true, true);
  const auto cudnn = plan(spec, "cudnn"), ours = plan(spec, "direct");
  fake_.mode_a.emplace();
  const BatchNormResult actual = run(*cudnn, DType::f32, true, 2, false);
  const BatchNormResult expected = run(*ours, DType::f32, true, 2, false);
  EXPECT_EQ(actual.y, expected.y);
  EXPECT_EQ(actual.dx, expected.dx);
  EXPECT_EQ(actual.dweight, expected.dweight);
  EXPECT_EQ(actual.running_var, expected.running_var);
}

TEST_F(CudnnBatchNorm, IsOursForChannelsThatAreNotAligned) {
  const nn::Shape shape = {kImages, kSide, kSide, 5};
  EXPECT_THAT(plan({{nn::BatchNorm2d{.channels = 5}, shape, shape, DType::f32}}, "cudnn")->description(),
              testing::StartsWith("batch_norm/"));
}

TEST_F(CudnnBatchNorm, IsOursInEvaluation) {
  auto spec = nodes(DType::f32, false, true);
  for (nn::NodeSpec& node : spec) node.backward = nn::Backward::none;
  EXPECT_THAT(plan(spec, "cudnn")->description(), testing::StartsWith("batch_norm/"));
}

}  // namespace
}  // namespace gradring::tests
