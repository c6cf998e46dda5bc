// SPDX-License-Identifier: Apache-2.0
#include "train/bench/layout_training.h"

#include <chrono>
#include <exception>
#include <thread>

#include "comm/in_process_hub.h"
#include "train/setup/compute.h"
#include "train/trainer/trainer.h"

namespace gradring::train::bench {
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

/// Losses, and the first gradients, while they are there: the next step, or a look at the weights, takes their place.
class Listener final : public MetricsSink {
 public:
  explicit Listener(LayoutTraining& training) : training_(training) {}
  void listen_to(Trainer& trainer) { trainer_ = &trainer; }

  void step(const StepRecord& record) override {
    training_.losses.push_back(record.loss);
    if (training_.gradients.empty() && !record.skipped) copy_gradients(static_cast<float>(record.loss_scale));
  }
  void eval(const EvalRecord& /*record*/) override {}
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
class Keeper final : public CheckpointSink {
 public:
  Keeper(std::int64_t step, Checkpoint& kept) : step_(step), kept_(kept) {}
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
  Listener listener(training);
  Keeper keeper(spec.save_at, training.checkpoint);
  Trainer trainer(config, {.device = *compute.device,
                           .kernels = compute.kernels,
                           .backend = *compute.backend,
                           .group = group,
                           .train_set = spec.train_set,
                           .test_set = spec.test_set,
                           .metrics = listener,
                           .checkpoints = group.rank() == 0 ? &keeper : nullptr});
  listener.listen_to(trainer);
  if (from) trainer.resume({.checkpoint = group.rank() == 0 ? *from : Checkpoint(), .from = "the checkpoint"});
  training.parameters_sha256 = trainer.run().parameters_sha256;
  return training;
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

}  // namespace gradring::train::bench
