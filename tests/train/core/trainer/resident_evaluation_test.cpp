// SPDX-License-Identifier: Apache-2.0
// A resident data set is evaluated as one that is copied batch by batch, without the host.
#include "train/core/trainer/resident_evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/datasets/open_dataset.h"
#include "data/loader/random_split.h"
#include "kernels/host/host_device.h"
#include "tests/nn/support/program_rig.h"
#include "tests/train/support/rank_rig.h"
#include "tests/train/support/training_run.h"

namespace gradring::tests {
namespace {

using kernels::DType;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A CPU that counts recordings, and may have no room for a buffer of one size.
class ObservedDevice final : public kernels::Device {
 public:
  explicit ObservedDevice(std::size_t no_room_for = 0) : no_room_for_(no_room_for) {}

  kernels::DeviceId id() const override { return device_.id(); }
  std::string description() const override { return device_.description(); }
  kernels::Buffer allocate(std::size_t bytes, kernels::MemoryKind kind) override {
    if (bytes > 0 && bytes == no_room_for_) throw DeviceError("out of memory");
    return device_.allocate(bytes, kind);
  }
  std::unique_ptr<kernels::Stream> make_stream(kernels::StreamMode mode) override { return device_.make_stream(mode); }
  std::unique_ptr<kernels::Event> make_event() override { return device_.make_event(); }
  std::unique_ptr<kernels::Timer> make_timer() override { return device_.make_timer(); }
  std::unique_ptr<kernels::Recording> record(kernels::Stream& stream, std::function<void()> enqueue_work) override {
    ++recorded;
    return device_.record(stream, [this, work = std::move(enqueue_work)] {
      ++replayed;
      work();
    });
  }

  int recorded = 0, replayed = 0;

 private:
  kernels::HostDevice device_;
  std::size_t no_room_for_;
};

/// Counts what the host does between launches.
class ObservedStream final : public kernels::Stream {
 public:
  explicit ObservedStream(kernels::Stream& inner) : inner_(inner) {}

  void enqueue(std::function<void()> work) override { inner_.enqueue(std::move(work)); }
  void enqueue_copy(void* to, const void* from, std::size_t bytes) override {
    ++copies;
    inner_.enqueue_copy(to, from, bytes);
  }
  void enqueue_zero(void* to, std::size_t bytes) override { inner_.enqueue_zero(to, bytes); }
  void record(kernels::Event& event) override { inner_.record(event); }
  void enqueue_wait(const kernels::Event& event) override { inner_.enqueue_wait(event); }
  void synchronize(Deadline deadline) override {
    ++waits;
    inner_.synchronize(deadline);
  }
  void* native_handle() override { return inner_.native_handle(); }
  int device_index() const override { return inner_.device_index(); }

  int copies = 0, waits = 0;

 private:
  kernels::Stream& inner_;
};

/// Of the golden images, which have 10 classes.
constexpr std::int64_t kBatch = 50;

/// One rank's replica, and a program that evaluates it.
class EvaluationRig {
 public:
  EvaluationRig(comm::ProcessGroup& group, const data::Dataset& dataset, DType dtype = DType::f32)
      : group_(group),
        dataset_(dataset),
        backend_(make_backend("cpu", device)),
        rig_(group, dataset, {.precision = dtype, .device = &device}),
        stream(rig_.replica().stream()),
        program_(rig_.replica().model(), kBatch, nn::ProgramMode::evaluation, *backend_, device, dtype) {}

  train::Evaluation copied() {
    return train::evaluate({.device = device,
                            .stream = stream,
                            .kernels = kernels_,
                            .group = group_,
                            .program = program_,
                            .weights = rig_.replica().whole_weights().view,
                            .dataset = dataset_,
                            .normalize = normalize_});
  }
  std::unique_ptr<train::ResidentEvaluation> resident(bool recorded = true) {
    return std::make_unique<train::ResidentEvaluation>(train::ResidentEvaluation::Parts{.device = device,
                                                                                        .stream = stream,
                                                                                        .kernels = kernels_,
                                                                                        .group = group_,
                                                                                        .program = program_,
                                                                                        .dataset = dataset_,
                                                                                        .normalize = normalize_,
                                                                                        .recorded = recorded});
  }
  train::Replica& replica() { return rig_.replica(); }
  void step() { rig_.step({group_.rank() % dataset_.size()}, group_.world_size()); }

 private:
  comm::ProcessGroup& group_;
  const data::Dataset& dataset_;
  const kernels::KernelSet kernels_ = kernels::kernel_set();
  const data::NormalizeSpec normalize_{.mean = {0.3}, .std = {0.7}};

 public:
  ObservedDevice device;

 private:
  std::unique_ptr<nn::Backend> backend_;
  RankRig rig_;

 public:
  ObservedStream stream;

 private:
  nn::Program program_;
};

void expect_equal(const train::Evaluation& found, const train::Evaluation& expected) {
  EXPECT_EQ(found.accuracy, expected.accuracy);
  EXPECT_EQ(found.loss, expected.loss) << "to the last bit";
  EXPECT_EQ(found.samples, expected.samples);
  EXPECT_EQ(found.correct, expected.correct);
  EXPECT_EQ(found.correct_in_top, expected.correct_in_top);
  EXPECT_EQ(found.classes, expected.classes);
}

TEST(ResidentEvaluation, FindsWhatAnEvaluationOfCopiedBatchesFinds) {
  const auto images = golden_images();
  for (const std::int64_t samples : {1, 50, 103, 320})
    for (const int world : {1, 3})
      for (const DType dtype : {DType::f32, DType::f16})
        for (const bool recorded : {false, true}) {
          SCOPED_TRACE(std::to_string(samples) + " samples, " + std::to_string(world) + " ranks");
          const data::InMemoryDataset dataset = head_of(*images, samples);
          run_ranks(world, [&](comm::ProcessGroup& group) {
            EvaluationRig rig(group, dataset, dtype);
            const auto resident = rig.resident(recorded);
            for (int i = 0; i < 2; ++i) {
              expect_equal(resident->run(rig.replica().whole_weights().view), rig.copied());
              rig.step();
            }
          });
        }
}

TEST(ResidentEvaluation, CopiesAndWaitsOnceForAllBatches) {
  const auto dataset = golden_images();
  run_ranks(1, [&](comm::ProcessGroup& group) {
    EvaluationRig rig(group, *dataset);
    rig.copied();
    EXPECT_EQ(rig.stream.copies, 4 * 7) << "images, labels, loss and logits of each batch";
    EXPECT_EQ(rig.stream.waits, 7);
    const auto resident = rig.resident();
    rig.stream.copies = rig.stream.waits = 0;
    resident->run(rig.replica().whole_weights().view);
    EXPECT_EQ(rig.stream.copies, 3 + 1) << "order, position and number of the pass; the sums";
    EXPECT_EQ(rig.stream.waits, 1);
  });
}

TEST(ResidentEvaluation, RecordsABatchOfEachSizeOnceForTheSameWeights) {
  const auto dataset = golden_images();
  run_ranks(1, [&](comm::ProcessGroup& group) {
    EvaluationRig rig(group, *dataset);  // 6 batches of 50 and one of 20
    const auto resident = rig.resident();
    const auto run = [&](const nn::Weights& weights) {
      rig.device.recorded = rig.device.replayed = 0;
      resident->run(weights);
      return std::vector{rig.device.recorded, rig.device.replayed};
    };
    const nn::Weights weights = rig.replica().whole_weights().view;
    EXPECT_THAT(run(weights), ElementsAre(1, 5)) << "the first of each size runs without";
    EXPECT_THAT(run(weights), ElementsAre(1, 7));
    EXPECT_THAT(run(weights), ElementsAre(0, 7));
    const kernels::Buffer copy =
        rig.device.allocate(rig.replica().layout().elements() * sizeof(float), kernels::MemoryKind::device);
    rig.stream.enqueue_copy(copy.data(), weights.buckets.front(), copy.size());
    const nn::Weights others = nn::weights_at(weights.layout, DType::f32, copy.data());
    EXPECT_THAT(run(others), ElementsAre(2, 7));
    EXPECT_THAT(run(weights), ElementsAre(0, 7));
    EXPECT_THAT(run(others), ElementsAre(0, 7));
  });
}

TEST(ResidentEvaluation, OfATrainingChangesNoNumber) {
  const auto train_set = head_of(*data::open_dataset("digits", data::Split::train, ""), 60);
  const auto test_set = head_of(*data::open_dataset("digits", data::Split::test, ""), 70);
  const auto held_out = head_of(*data::open_dataset("digits", data::Split::test, ""), 31);
  for (const bool validates : {false, true})
    for (const int zero : {0, 3}) {
      train::TrainConfig config = config_for(2, 8);
      config.zero = zero;
      config.optimizer.ema = 0.9;
      config.tta = train::Tta::flip;
      TrainingRun runs[2];
      for (const bool resident : {false, true}) {
        config.resident = resident ? train::Resident::on : train::Resident::off;
        train(runs[resident], 2, config, train_set, test_set, {}, {}, validates ? &held_out : nullptr);
      }
      ASSERT_EQ(runs[1].rank0.evals.size(), runs[0].rank0.evals.size());
      for (std::size_t i = 0; i < runs[0].rank0.evals.size(); ++i) {
        const train::EvalRecord &found = runs[1].rank0.evals[i], &expected = runs[0].rank0.evals[i];
        EXPECT_EQ(found.accuracy, expected.accuracy);
        EXPECT_EQ(found.loss, expected.loss);
        EXPECT_EQ(found.ema_accuracy, expected.ema_accuracy);
        EXPECT_EQ(found.ema_loss, expected.ema_loss);
      }
      EXPECT_EQ(runs[1].summaries.front().tta_accuracy, runs[0].summaries.front().tta_accuracy);
      EXPECT_THAT(runs[1].rank0.remarks, ElementsAre());
    }
}

TEST(ResidentEvaluation, OfATrainingGivesWayWhereItDoesNotFit) {
  const auto train_set = head_of(*golden_images(), 12), test_set = head_of(*golden_images(), 300);
  run_ranks(1, [&](comm::ProcessGroup& group) {
    ObservedDevice device(static_cast<std::size_t>(test_set.size() * test_set.shape().elements()));
    const auto backend = make_backend("cpu", device);
    const kernels::KernelSet kernels = kernels::kernel_set();
    train::TrainConfig config = config_for(1, 4);
    config.resident = train::Resident::on;
    Recorder recorder;
    train::Trainer(config, {.device = device,
                            .kernels = kernels,
                            .backend = *backend,
                            .group = group,
                            .train_set = train_set,
                            .test_set = test_set,
                            .metrics = recorder})
        .run();
    EXPECT_EQ(recorder.evals.back().samples, 300);
    EXPECT_THAT(recorder.remarks, ElementsAre(HasSubstr("copy their samples to the device batch by batch: out of")));
  });
}

}  // namespace
}  // namespace gradring::tests
