// SPDX-License-Identifier: Apache-2.0
#include "tests/train/support/layouts.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <limits>
#include <map>
#include <thread>
#include <utility>

#include "comm/groups.h"
#include "train/core/setup/compute.h"
#include "train/core/trainer/trainer.h"

namespace gradring::train::tests {
namespace {

TrainConfig config_of(const Layout& layout, const LayoutTrainingSpec& spec) {
  TrainConfig config = spec.config;
  config.zero = layout.zero;
  if (layout.passes > 0) {
    const std::int64_t per_step = layout.ranks * layout.passes;
    config.batch_size = (config.global_batch + per_step - 1) / per_step;
  }
  if (layout.recomputes) config.checkpointing = {.kind = nn::Checkpointing::Kind::segments, .segments = 2};
  config.save_every_steps = spec.save_at;
  return config;
}

/// Records the losses, and the gradients of the first step before the next step overwrites them.
class Recorder final : public MetricsSink {
 public:
  explicit Recorder(LayoutTraining& training) : training_(training) {}
  void observe(Trainer& trainer) { trainer_ = &trainer; }

  void event(const RunEvent& event) override {
    const auto* record = std::get_if<StepRecord>(&event);
    if (!record) return;
    training_.losses.push_back(record->loss);
    if (training_.gradients.empty() && !record->skipped) copy_gradients(static_cast<float>(record->loss_scale));
  }
  void remark(const std::string& /*text*/) override {}

 private:
  void copy_gradients(float scale) {
    Replica& replica = trainer_->replica();
    const kernels::Buffer host = replica.gradients_on_host(Deadline::after(kPatience));
    for (std::size_t i = 0; i < replica.parameters().size(); ++i) {
      const auto slice = replica.layout().parameter(static_cast<int>(i));
      const float* const first = host.as<float>() + slice.offset;
      auto& gradient = training_.gradients.emplace_back(first, first + slice.elements);
      for (float& value : gradient) value /= scale;
    }
  }

  static constexpr std::chrono::minutes kPatience{1};
  LayoutTraining& training_;
  Trainer* trainer_ = nullptr;
};

/// Keeps the checkpoint of one step.
class CheckpointKeeper final : public CheckpointSink {
 public:
  CheckpointKeeper(std::int64_t step, Checkpoint& kept) : step_(step), kept_(kept) {}
  void save(Checkpoint checkpoint) override {
    if (checkpoint.step == step_) kept_ = std::move(checkpoint);
  }
  std::vector<std::string> take_problems() override { return {}; }
  bool is_idle(std::chrono::milliseconds) override { return true; }
  int failures() const override { return 0; }
  void finish() override {}

 private:
  std::int64_t step_;
  Checkpoint& kept_;
};

LayoutTraining train_rank(const TrainConfig& config, const LayoutTrainingSpec& spec, comm::ProcessGroup& group,
                          const Checkpoint* from) {
  LayoutTraining training;
  const Compute compute = make_compute({.device = "cpu", .reproducible = true});
  Recorder recorder(training);
  CheckpointKeeper keeper(spec.save_at, training.checkpoint);
  Trainer trainer(config, {.device = *compute.device,
                           .kernels = compute.kernels,
                           .backend = *compute.backend,
                           .group = group,
                           .train_set = spec.train_set,
                           .test_set = spec.test_set,
                           .metrics = recorder,
                           .checkpoints = group.rank() == 0 ? &keeper : nullptr});
  recorder.observe(trainer);
  if (from) trainer.resume({.checkpoint = group.rank() == 0 ? *from : Checkpoint(), .from = "the checkpoint"});
  training.parameters_sha256 = trainer.run().parameters_sha256;
  return training;
}

constexpr double kIncomparable = std::numeric_limits<double>::infinity();

/// L2 norm of the difference, relative to that of `expected`.
double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  if (actual.size() != expected.size()) return kIncomparable;
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(actual[i]) - expected[i], 2);
    length += std::pow(static_cast<double>(expected[i]), 2);
  }
  return difference == 0 ? 0 : std::sqrt(difference / length);
}

/// The largest error(a[i], b[i]); infinity for NaN.
template <class T, class Error>
double largest(const std::vector<T>& a, const std::vector<T>& b, const Error& error) {
  if (a.size() != b.size()) return kIncomparable;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double here = error(a[i], b[i]);
    most = std::isnan(here) ? kIncomparable : std::max(most, here);
  }
  return most;
}

}  // namespace

LayoutTraining train_by(const Layout& layout, const LayoutTrainingSpec& spec, const Checkpoint* from) {
  const TrainConfig config = config_of(layout, spec);
  comm::InProcessHub hub(layout.ranks, config.timeout);
  LayoutTraining of_rank_0;
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(layout.ranks));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < layout.ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        const auto group = hub.join(rank);
        LayoutTraining training = train_rank(config, spec, *group, from);
        if (rank == 0) of_rank_0 = std::move(training);
      } catch (...) {
        errors[static_cast<std::size_t>(rank)] = std::current_exception();
      }
    });
  threads.clear();
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return of_rank_0;
}

std::vector<Layout> all_layouts(int most_ranks, const std::vector<std::int64_t>& passes) {
  std::vector<Layout> layouts;
  for (int ranks = 1; ranks <= most_ranks; ++ranks)
    for (const std::int64_t pass : passes)
      for (const bool recomputes : {false, true})
        for (const std::int64_t zero : {0, 1, 2, 3})
          layouts.push_back({.ranks = ranks, .passes = pass, .zero = zero, .recomputes = recomputes});
  return layouts;
}

Layout plainest(const Layout& layout) { return {.ranks = layout.ranks, .passes = layout.passes}; }

LayoutRow compare(const Layout& layout, const LayoutTraining& training, const LayoutTraining& first,
                  const std::string& same_bits, const Agreement& agreement) {
  LayoutRow row{.layout = layout, .parameters_sha256 = training.parameters_sha256};
  row.gradient_error = largest(training.gradients, first.gradients, relative_error);
  row.loss_error = largest(training.losses, first.losses, [](double a, double b) { return std::abs(a - b); });
  row.agrees =
      !training.gradients.empty() && row.gradient_error <= (agreement.exact ? 0 : agreement.most_gradient_error) &&
      row.loss_error <= (agreement.exact ? 0 : agreement.most_loss_error) && training.parameters_sha256 == same_bits;
  return row;
}

std::vector<LayoutRow> compare_layouts(const std::vector<Layout>& layouts, const LayoutTrainingSpec& spec,
                                       const Agreement& agreement, const std::function<void(const LayoutRow&)>& heard) {
  std::vector<LayoutRow> rows;
  LayoutTraining first, before;
  std::map<Layout, std::string> plain_weights;
  for (const Layout& layout : layouts) {
    LayoutTraining training = train_by(layout, spec);
    if (rows.empty()) first = training;
    if (layout == plainest(layout)) plain_weights[layout] = training.parameters_sha256;
    const std::string& same_bits = agreement.exact ? first.parameters_sha256 : plain_weights[plainest(layout)];
    LayoutRow row = compare(layout, training, first, same_bits, agreement);
    if (spec.save_at > 0 && !rows.empty()) {
      row.resumed_equal = train_by(layout, spec, &before.checkpoint).parameters_sha256 == first.parameters_sha256;
      row.agrees = row.agrees && *row.resumed_equal;
    }
    before = std::move(training);
    heard(row);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace gradring::train::tests
