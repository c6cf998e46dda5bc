// SPDX-License-Identifier: Apache-2.0
// Which plans of a program may leave partial sums, and where.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "nn/backend/decorators.h"
#include "nn/models/model.h"
#include "tests/nn/support/program_rig.h"

namespace gradring::tests {
namespace {

/// Leaves the gradients that another plan computes as two halves, and NaN where they belong.
class Halves {
 public:
  explicit Halves(std::span<const nn::NodeSpec> nodes) {
    for (const nn::NodeSpec& node : nodes)
      for (const nn::Parameter& parameter : nn::parameters_of(node.layer, node.input))
        elements_.push_back(parameter.shape.elements());
  }
  std::size_t bytes() const {
    std::size_t all = 0;
    for (const std::int64_t elements : elements_) all += 2 * static_cast<std::size_t>(elements) * sizeof(float);
    return all;
  }
  void leave(kernels::Stream& stream, std::span<float* const> gradients, const nn::PartialSumsTo& to) const {
    if (!to.list) return;
    auto* memory = reinterpret_cast<float*>(to.memory);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i]) continue;
      stream.enqueue([gradient = gradients[i], memory, elements = elements_.at(i)] {
        for (std::int64_t e = 0; e < elements; ++e) memory[e] = memory[elements + e] = gradient[e] / 2;
        std::fill_n(gradient, elements, std::nanf(""));
      });
      to.list->push_back({memory, 2, elements_[i], elements_[i], gradients[i]});
      memory += 2 * elements_[i];
    }
  }

 private:
  std::vector<std::int64_t> elements_;  // of each parameter
};

class LeavingPlan final : public nn::PlanDecorator {
 public:
  LeavingPlan(std::unique_ptr<nn::Plan> inner, const Halves& halves)
      : PlanDecorator(std::move(inner)), halves_(halves) {}
  std::size_t partial_sum_bytes() const override { return halves_.bytes(); }
  void enqueue_backward(kernels::Stream& stream, const nn::BackwardPass& pass) override {
    nn::BackwardPass complete = pass;
    complete.partial_sums = {};
    PlanDecorator::enqueue_backward(stream, complete);
    halves_.leave(stream, pass.gradients, pass.partial_sums);
  }

 private:
  Halves halves_;
};

class LeavingLossPlan final : public nn::LossPlanDecorator {
 public:
  LeavingLossPlan(std::unique_ptr<nn::LossPlan> inner, const Halves& halves)
      : LossPlanDecorator(std::move(inner)), halves_(halves) {}
  std::size_t partial_sum_bytes() const override { return halves_.bytes(); }
  void enqueue(kernels::Stream& stream, const nn::LossPass& pass) override {
    nn::LossPass complete = pass;
    complete.partial_sums = {};
    LossPlanDecorator::enqueue(stream, complete);
    halves_.leave(stream, pass.gradients, pass.partial_sums);
  }

 private:
  Halves halves_;
};

class LeavingBackend final : public nn::BackendDecorator {
 public:
  explicit LeavingBackend(std::unique_ptr<nn::Backend> inner) : BackendDecorator(*inner), inner_(std::move(inner)) {}
  std::unique_ptr<nn::Plan> plan(std::span<const nn::NodeSpec> nodes) override {
    auto plan = inner_->plan(nodes);
    const Halves halves(nodes.first(plan->nodes()));
    return std::make_unique<LeavingPlan>(std::move(plan), halves);
  }
  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec& spec,
                                                   const nn::NodeSpec* last) override {
    auto plan = inner_->plan_cross_entropy(spec, last);
    const Halves halves(std::span(last, plan->nodes()));
    return std::make_unique<LeavingLossPlan>(std::move(plan), halves);
  }

 private:
  std::unique_ptr<nn::Backend> inner_;
};

constexpr std::int64_t kBatch = 5;
constexpr std::size_t kPlenty = 1 << 20;

RigDevice leaving(const std::string& backend) {
  RigDevice on = on_host(backend);
  on.backend = std::make_unique<LeavingBackend>(std::move(on.backend));
  return on;
}

/// A small ConvNet, whose plans may leave partial sums in so many bytes.
class SmallRig : public ProgramRig {
 public:
  SmallRig(const std::string& backend, std::size_t most_bytes, nn::ProgramMode mode = nn::ProgramMode::training)
      : ProgramRig(nn::convnet({12, 12, 1}, 3), kBatch, leaving(backend), mode, kernels::DType::f32, {}, most_bytes) {
    draw_weights(1);
    std::vector<float> images;
    for (int i = 0; i < kBatch * 12 * 12; ++i) images.push_back(static_cast<float>(i * 7 % 31) / 16 - 1);
    run(images, {0, 1, 2, 1, 0});
  }
  std::vector<std::vector<float>> all_gradients() const {
    std::vector<std::vector<float>> all;
    for (std::size_t i = 0; i < parameters().size(); ++i) all.push_back(gradient(i));
    return all;
  }
};

class PartialSumsOf : public testing::TestWithParam<const char*> {};

TEST_P(PartialSumsOf, AllPlansAddUpToTheGradients) {
  const SmallRig complete(GetParam(), 0), left(GetParam(), kPlenty);
  EXPECT_EQ(complete.partial_sums(), 0u);
  EXPECT_EQ(left.partial_sums(), left.parameters().size());
  EXPECT_EQ(left.all_gradients(), complete.all_gradients());
  std::size_t bytes = 0;
  for (const nn::Parameter& parameter : left.parameters())
    bytes += 2 * static_cast<std::size_t>(parameter.shape.elements()) * sizeof(float);
  EXPECT_GE(left.program().memory().workspace, complete.program().memory().workspace + bytes);
}

TEST_P(PartialSumsOf, SomePlansStayWithinTheMemory) {
  const SmallRig complete(GetParam(), 0);
  for (const std::size_t most : {std::size_t{100}, std::size_t{4096}, std::size_t{200'000}}) {
    const SmallRig some(GetParam(), most);
    EXPECT_LT(some.partial_sums(), some.parameters().size()) << most;
    if (most > 100) {
      EXPECT_GT(some.partial_sums(), 0u) << most;
    }
    EXPECT_EQ(some.all_gradients(), complete.all_gradients()) << most;
    EXPECT_LE(some.program().memory().workspace, complete.program().memory().workspace + most);
  }
}

TEST_P(PartialSumsOf, NoEvaluationHaveMemory) {
  const SmallRig with(GetParam(), kPlenty, nn::ProgramMode::evaluation),
      without(GetParam(), 0, nn::ProgramMode::evaluation);
  EXPECT_EQ(with.program().memory().workspace, without.program().memory().workspace);
}

INSTANTIATE_TEST_SUITE_P(Backends, PartialSumsOf, testing::Values("reference", "cpu", "kernels"));

}  // namespace
}  // namespace gradring::tests
