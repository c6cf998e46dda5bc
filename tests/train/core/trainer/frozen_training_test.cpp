// SPDX-License-Identifier: Apache-2.0
// Trainings of models with frozen parameters: in every layout these stay as they were, without gradient, state of the
// optimizer, or part in the norm; checkpoints hold them.
#include <gmock/gmock.h>

#include <ostream>

#include "data/datasets/open_dataset.h"
#include "kernels/base/error.h"
#include "tests/train/support/training_run.h"

namespace gradring::tests {
namespace {

/// Frozen: a first layer, part of a batch normalization, a layer between trained ones.
constexpr const char* kFrozenModel = R"(
layers = [
  { conv2d = "conv1", out = 6, kernel = 3, stride = 2, frozen = ["weight", "bias"] },
  { batch_norm2d = "bn1", frozen = ["bias"] },
  { relu = "relu1" },
  { conv2d = "conv2", out = 6, kernel = 3, padding = 1, bias = false, frozen = ["weight"] },
  { batch_norm2d = "bn2" },
  { add = "sum", inputs = ["bn2", "relu1"] },
  { relu = "relu2" },
  { conv2d = "conv3", out = 6, kernel = 3, frozen = ["weight"] },
  { global_avg_pool2d = "pool" },
  { flatten = "flatten" },
  { linear = "fc", out = "classes" },
]
)";

struct FrozenLayout {
  std::string name;
  int world = 1;
  std::function<void(train::TrainConfig&)> change{};
};
void PrintTo(const FrozenLayout& layout, std::ostream* out) { *out << layout.name; }

class FrozenTraining : public testing::TestWithParam<FrozenLayout> {
 protected:
  /// Two epochs of two steps.
  train::TrainConfig config(std::int64_t epochs = 2) const {
    train::TrainConfig config = config_for(epochs, 24 / GetParam().world);
    config.model = "frozen.toml";
    config.model_text = kFrozenModel;
    if (GetParam().change) GetParam().change(config);
    return config;
  }

  data::InMemoryDataset train_set_ = head_of(*data::open_dataset("digits", data::Split::train, ""), 48);
  data::InMemoryDataset test_set_ = head_of(*data::open_dataset("digits", data::Split::test, ""), 8);
};

bool is_frozen(std::string_view name) {
  return name == "conv1.weight" || name == "conv1.bias" || name == "bn1.bias" || name == "conv2.weight" ||
         name == "conv3.weight";
}

TEST_P(FrozenTraining, LeavesFrozenParametersAsTheyWereAndTrainsTheOthers) {
  const TrainingRun run = train(GetParam().world, config(), train_set_, test_set_);
  const nn::Model model = nn::make_model({"frozen.toml", kFrozenModel}, train_set_.shape(), train_set_.classes());
  const std::vector<nn::Parameter> parameters = nn::parameters_of(model);
  const auto drawn = nn::draw_torch_uniform(parameters, config().seed);
  const train::Checkpoint& saved = run.checkpoints.all.back();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto found = std::ranges::find(saved.model, parameters[i].name, &train::TensorRecord::name);
    ASSERT_NE(found, saved.model.end()) << parameters[i].name;
    const auto values = train::values_of(*found).value();
    EXPECT_EQ(std::equal(values.begin(), values.end(), drawn[i].begin()), is_frozen(parameters[i].name))
        << parameters[i].name;
  }
  EXPECT_FALSE(saved.state.empty());
  for (const train::TensorRecord& state : saved.state)
    EXPECT_FALSE(is_frozen(state.name.substr(state.name.find('.') + 1))) << state.name;
}

TEST_P(FrozenTraining, ResumesWithTheSameBits) {
  const TrainingRun whole = train(GetParam().world, config(), train_set_, test_set_);
  const train::Checkpoint& reached = whole.checkpoints.of_step(2);
  const TrainingRun resumed =
      train(GetParam().world, config(), train_set_, test_set_, [&](train::Trainer& trainer, int rank) {
        trainer.resume({.checkpoint = rank == 0 ? reached : train::Checkpoint(), .from = "step-2"});
      });
  EXPECT_EQ(resumed.rank0.steps.size(), 2u);
  EXPECT_EQ(resumed.summaries.front().parameters_sha256, whole.summaries.front().parameters_sha256);
  EXPECT_EQ(resumed.summaries.front().train_loss, whole.summaries.front().train_loss);
  EXPECT_EQ(resumed.summaries.front().accuracy, whole.summaries.front().accuracy);
}

using FrozenConfig = train::TrainConfig;
INSTANTIATE_TEST_SUITE_P(
    Layouts, FrozenTraining,
    testing::Values(
        FrozenLayout{"OneRank"}, FrozenLayout{"TwoRanks", 2},
        FrozenLayout{"Sgd", 1,
                     [](FrozenConfig& c) { c.optimizer = {.kind = train::OptimizerKind::sgd, .momentum = 0.9}; }},
        FrozenLayout{"MuonZero2", 2,
                     [](FrozenConfig& c) {
                       c.optimizer = {.kind = train::OptimizerKind::muon, .momentum = 0.9};
                       c.optimizer.groups = {{.pattern = "fc.weight", .kind = train::OptimizerKind::muon}};
                       c.zero = 2;
                     }},
        FrozenLayout{"Fp16", 2, [](FrozenConfig& c) { c.precision = train::Precision::fp16; }},
        FrozenLayout{"Zero1", 2, [](FrozenConfig& c) { c.zero = 1; }},
        FrozenLayout{"Zero2Averaging", 2, [](FrozenConfig& c) { c.zero = 2, c.optimizer.ema = 0.9; }},
        FrozenLayout{"Zero3Fp16Averaging", 2,
                     [](FrozenConfig& c) {
                       c.zero = 3, c.optimizer.ema = 0.9;
                       c.precision = train::Precision::fp16;
                     }},
        FrozenLayout{"Accumulated", 2, [](FrozenConfig& c) { c.batch_size = 4, c.accumulate = 3; }},
        FrozenLayout{"Recomputed", 2,
                     [](FrozenConfig& c) {
                       c.checkpointing = {.kind = nn::Checkpointing::Kind::segments, .segments = 3};
                       c.sync_batchnorm = true;
                     }},
        FrozenLayout{"SmallBuckets", 2,
                     [](FrozenConfig& c) { c.buckets = {.first_bytes = 64, .rest_bytes = 64}, c.zero = 3; }}),
    [](const auto& test) { return test.param.name; });

/// Each stage of ZeRO gives the bits of the others, as where all is trained.
TEST(FrozenParameters, HaveTheSameBitsAtEveryStageOfZero) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const data::InMemoryDataset train_set = head_of(*digits, 48), test_set = head_of(*digits, 8);
  train::TrainConfig config = config_for(1, 12);
  config.model = "frozen.toml";
  config.model_text = kFrozenModel;
  std::string first;
  for (const std::int64_t zero : {0, 1, 2, 3}) {
    config.zero = zero;
    const std::string sum = train(2, config, train_set, test_set).summaries.front().parameters_sha256;
    if (first.empty()) first = sum;
    EXPECT_EQ(sum, first) << "stage " << zero;
  }
}

TEST(FrozenParameters, AreNotPartOfTheNorm) {
  const auto digits = data::open_dataset("digits", data::Split::train, "");
  const data::InMemoryDataset train_set = head_of(*digits, 24), test_set = head_of(*digits, 8);
  const auto norm_of = [&](const std::string& frozen_conv, const std::string& frozen_fc) {
    train::TrainConfig config = config_for(1, 24);
    config.model = "frozen.toml";
    config.model_text = "layers = [{ conv2d = 'conv', out = 4, kernel = 3" + frozen_conv +
                        " }, { relu = 'relu' }, { flatten = 'flatten' }, { linear = 'fc', out = 'classes'" + frozen_fc +
                        " }]";
    return train(1, config, train_set, test_set).rank0.steps.at(0).gradient_norm;
  };
  const std::string all = ", frozen = ['weight', 'bias']";
  const double whole = norm_of("", ""), conv = norm_of("", all), fc = norm_of(all, "");
  EXPECT_NEAR(whole * whole, conv * conv + fc * fc, 1e-4 * whole * whole);
  EXPECT_GT(conv, 0);
  EXPECT_GT(fc, 0);
  EXPECT_THROW(norm_of(all, all), InvalidArgument) << "nothing to train";
}

}  // namespace
}  // namespace gradring::tests
