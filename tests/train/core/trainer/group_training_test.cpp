// SPDX-License-Identifier: Apache-2.0
// Trainings with parameter groups, against a softmax regression in f64 that this file computes itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "data/datasets/open_dataset.h"
#include "tests/train/support/training_run.h"
#include "train/core/config/group_option.h"

namespace gradring::tests {
namespace {

constexpr std::int64_t kRegressionSamples = 20;

using Matrix = std::vector<std::vector<double>>;

/// logits = w x + b, trained by plain gradient descent on all samples at once.
class SoftmaxRegression {
 public:
  SoftmaxRegression(const data::Dataset& set, Matrix w, std::vector<double> b)
      : set_(set), w_(std::move(w)), b_(std::move(b)) {}

  /// The learning rates of w and b; `decay` is the L2 penalty of w.
  void step(double rate_of_w, double rate_of_b, double decay) {
    Matrix dw(w_.size(), std::vector<double>(w_[0].size()));
    std::vector<double> db(b_.size());
    for (std::int64_t i = 0; i < set_.size(); ++i) {
      const std::vector<double> x = image(i);
      std::vector<double> p(b_);
      for (std::size_t k = 0; k < p.size(); ++k)
        for (std::size_t j = 0; j < x.size(); ++j) p[k] += w_[k][j] * x[j];
      double sum = 0;
      for (double& value : p) sum += value = std::exp(value);
      for (std::size_t k = 0; k < p.size(); ++k) {
        const double d =
            (p[k] / sum - (static_cast<int>(k) == set_.label(i) ? 1 : 0)) / static_cast<double>(set_.size());
        db[k] += d;
        for (std::size_t j = 0; j < x.size(); ++j) dw[k][j] += d * x[j];
      }
    }
    for (std::size_t k = 0; k < b_.size(); ++k) {
      b_[k] -= rate_of_b * db[k];
      for (std::size_t j = 0; j < w_[k].size(); ++j) w_[k][j] -= rate_of_w * (dw[k][j] + decay * w_[k][j]);
    }
  }
  const Matrix& w() const { return w_; }
  const std::vector<double>& b() const { return b_; }

 private:
  std::vector<double> image(std::int64_t i) const {
    std::vector<double> x;
    for (const std::uint8_t pixel : set_.pixels(i)) x.push_back((pixel / 255.0 - 0.5) / 0.5);
    return x;
  }

  const data::Dataset& set_;
  Matrix w_;
  std::vector<double> b_;
};

class GroupTraining : public testing::TestWithParam<int> {
 protected:
  /// Five epochs of one step, by GetParam() ranks.
  train::TrainConfig config() const {
    train::TrainConfig config = config_for(5, kRegressionSamples / GetParam());
    config.model = "linear.toml";
    config.model_text = "layers = [{ flatten = 'flatten' }, { linear = 'fc', out = 'classes' }]";
    config.optimizer.kind = train::OptimizerKind::sgd;
    config.learning_rate = 0.1;
    return config;
  }
  static std::vector<double> values(const train::Checkpoint& checkpoint, const std::string& name) {
    const auto found = std::ranges::find(checkpoint.model, name, &train::TensorRecord::name);
    const auto read = train::values_of(*found).value();
    return {read.begin(), read.end()};
  }
  SoftmaxRegression expected() const {
    const nn::Model model = nn::make_model({"linear.toml", config().model_text}, set_.shape(), set_.classes());
    const auto drawn = nn::draw_torch_uniform(nn::parameters_of(model), config().seed);
    const std::size_t classes = drawn[1].size(), pixels = drawn[0].size() / classes;
    Matrix w;
    for (std::size_t k = 0; k < classes; ++k)
      w.emplace_back(drawn[0].begin() + static_cast<std::ptrdiff_t>(k * pixels),
                     drawn[0].begin() + static_cast<std::ptrdiff_t>((k + 1) * pixels));
    return {set_, w, {drawn[1].begin(), drawn[1].end()}};
  }
  static void expect_same(const train::Checkpoint& found, const SoftmaxRegression& expected) {
    const std::vector<double> w = values(found, "fc.weight"), b = values(found, "fc.bias");
    for (std::size_t k = 0; k < b.size(); ++k) {
      EXPECT_NEAR(b[k], expected.b()[k], 1e-6) << "bias " << k;
      for (std::size_t j = 0; j < expected.w()[k].size(); ++j)
        ASSERT_NEAR(w[k * expected.w()[k].size() + j], expected.w()[k][j], 1e-6) << "weight " << k << ", " << j;
    }
  }

  data::InMemoryDataset set_ = head_of(*data::open_dataset("digits", data::Split::train, ""), kRegressionSamples);
};

/// A linear schedule from 0.2 over three steps, while that of the other parameters spans all five.
TEST_P(GroupTraining, EndsTheTrainingOfAGroupAfterItsEpochs) {
  train::TrainConfig config = this->config();
  config.schedule.kind = train::ScheduleKind::linear;
  config.optimizer.groups = train::parse_groups("group", "*.bias:lr=0.2,epochs=3;*.weight:weight_decay=0.3");
  const TrainingRun run = train(GetParam(), config, set_, set_);
  SoftmaxRegression expected = this->expected();
  constexpr std::array kOfBias = {0.2, 0.2 * 2 / 3, 0.2 / 3, 0.0, 0.0};
  for (std::size_t step = 0; step < kOfBias.size(); ++step) {
    const double rate = 0.1 * (5 - static_cast<double>(step)) / 5;
    expected.step(rate, kOfBias[step], 0.3);
    SCOPED_TRACE("step " + std::to_string(step + 1));
    expect_same(run.checkpoints.of_step(static_cast<std::int64_t>(step) + 1), expected);
    EXPECT_NEAR(run.rank0.steps.at(step).learning_rate, rate, 1e-8) << "of the parameters in no group";
  }
  EXPECT_EQ(values(run.checkpoints.of_step(5), "fc.bias"), values(run.checkpoints.of_step(3), "fc.bias"));
}

TEST_P(GroupTraining, ResumesAfterTheEpochsOfAGroup) {
  train::TrainConfig config = this->config();
  config.optimizer.groups = train::parse_groups("group", "*.bias:epochs=2");
  const TrainingRun whole = train(GetParam(), config, set_, set_);
  for (const std::int64_t step : {1, 3}) {
    const TrainingRun resumed = train(GetParam(), config, set_, set_, [&](train::Trainer& trainer, int rank) {
      trainer.resume({.checkpoint = rank == 0 ? whole.checkpoints.of_step(step) : train::Checkpoint(), .from = "step"});
    });
    EXPECT_EQ(resumed.summaries.front().parameters_sha256, whole.summaries.front().parameters_sha256);
  }
}

/// Half a step is one, and half an epoch of one step too.
TEST_P(GroupTraining, TrainsAGroupForOneStepAtLeast) {
  train::TrainConfig config = this->config();
  config.optimizer.groups = train::parse_groups("group", "*.bias:epochs=0.01");
  const TrainingRun run = train(GetParam(), config, set_, set_);
  SoftmaxRegression expected = this->expected();
  for (int step = 0; step < 5; ++step) expected.step(0.1, step == 0 ? 0.1 : 0, 0);
  expect_same(run.checkpoints.of_step(5), expected);
}

INSTANTIATE_TEST_SUITE_P(Ranks, GroupTraining, testing::Values(1, 2));

}  // namespace
}  // namespace gradring::tests
