// SPDX-License-Identifier: Apache-2.0
#include "train/bench/pytorch_peer.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <variant>
#include <vector>

#include "comm/bench/gloo_peer.h"
#include "kernels/base/child_process.h"
#include "nn/models/model.h"
#include "train/core/config/resolve.h"
#include "train/core/config/train_config.h"
#include "train/core/trainer/whitening.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/line_file.h"

namespace gradring::train::bench {
namespace {

namespace fs = std::filesystem;

constexpr auto kPatience = std::chrono::hours(1);
constexpr int kWarmupSteps = 10;
constexpr int kTrialSteps = 10;
constexpr int kTrialRounds = 3;

/// As pytorch_training.py reads them.
nlohmann::json layers_of(const nn::Model& model) {
  const std::vector<std::vector<std::size_t>> reads = nn::reads_of(model);
  nlohmann::json layers = nlohmann::json::array();
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto& [name, layer, inputs] = model.layers[i];
    std::vector<std::string> frozen;
    for (const std::string parameter : {"weight", "bias"})
      if (model.frozen.contains(name + "." + parameter)) frozen.push_back(parameter);
    layers.push_back({{"module", std::visit([](const auto& one) { return one.torch_module(); }, layer)},
                      {"reads", reads[i]},
                      {"frozen", frozen}});
  }
  return layers;
}

nlohmann::json settings_of(const TrainingLayout& layout, const TrainingTask& task, const RawDataset& data,
                           PyTorchStyle style, const fs::path& store) {
  return {{"images", data.images},
          {"labels", data.labels},
          {"test_images", data.test_images},
          {"test_labels", data.test_labels},
          {"weights", data.weights},
          {"shape", data.shape.extents()},
          {"layers", layers_of(nn::make_model(named_model(task.model), data.shape, data.classes))},
          {"batch_size", layout.global_batch / layout.ranks},
          {"epochs", task.epochs},
          {"steps", task.steps},
          {"warmup", kWarmupSteps},
          {"threads", layout.threads},
          {"channels_last", style.channels_last},
          {"dataloader", style.dataloader},
          {"seed", TrainConfig().seed},
          {"store", store}};
}

/// The processes of one training.
class PyTorchPeer {
 public:
  PyTorchPeer(const std::string& python, const TrainingLayout& layout, const TrainingTask& task, const RawDataset& data,
              PyTorchStyle style);

  Measurement train();

  std::string blas;  ///< as Contestant's

 private:
  std::vector<std::unique_ptr<ChildProcess>> ranks_;
  double epochs_;
  std::int64_t samples_;  // of an epoch
};

PyTorchPeer::PyTorchPeer(const std::string& python, const TrainingLayout& layout, const TrainingTask& task,
                         const RawDataset& data, PyTorchStyle style)
    : samples_(data.samples) {
  const std::int64_t steps_per_epoch = (samples_ + layout.global_batch - 1) / layout.global_batch;
  const std::int64_t all = task.epochs * steps_per_epoch;
  epochs_ =
      static_cast<double>(task.steps > 0 ? std::min(task.steps, all) : all) / static_cast<double>(steps_per_epoch);
  const fs::path store =
      data.images.parent_path() / fmt::format("store_{:d}_{:d}", style.channels_last, style.dataloader);
  fs::remove(store);  // left by an earlier peer
  const std::string settings = settings_of(layout, task, data, style, store).dump();
  for (int rank = 0; rank < layout.ranks; ++rank) {
    ChildCommand command = comm::bench::rank_in_python(python, kPyTorchScript, rank, layout.ranks);
    command.variables.emplace_back("PYTHONWARNINGS", "ignore");
    ranks_.push_back(std::make_unique<ChildProcess>(command));
    ranks_.back()->write_line(settings);
  }
  for (auto& rank : ranks_)
    blas = nlohmann::json::parse(rank->read_line(Deadline::after(kPatience))).at("blas").get<std::string>();
}

Measurement PyTorchPeer::train() {
  for (auto& rank : ranks_) rank->write_line("train");
  std::vector<double> seconds;
  double processor_seconds = 0;
  double losses = 0;
  double resident_bytes = 0;
  std::optional<double> accuracy;
  for (auto& rank : ranks_) {
    const auto answer = nlohmann::json::parse(rank->read_line(Deadline::after(kPatience)));
    seconds.push_back(answer.at("seconds"));
    processor_seconds += answer.at("processor_seconds").get<double>();
    losses += answer.at("loss").get<double>();
    resident_bytes += answer.at("resident_bytes").get<double>();
    if (answer.contains("accuracy")) accuracy = answer.at("accuracy").get<double>();
  }
  return {.seconds = seconds.front(),
          .seconds_per_epoch = seconds.front() / epochs_,
          .samples_per_second = static_cast<double>(samples_) * epochs_ / seconds.front(),
          .processor_seconds = processor_seconds,
          .accuracy = accuracy,
          .loss = losses / static_cast<double>(ranks_.size()),
          .resident_bytes = resident_bytes};
}

}  // namespace

RawDataset RawDataset::write(const data::Dataset& dataset, const fs::path& folder) {
  if (dataset.classes() > 256)
    throw UsageError(
        fmt::format("{} has {} classes, but the files for PyTorch hold one byte a label: use data of at "
                    "most 256 classes",
                    dataset.name(), dataset.classes()));
  std::string images;
  std::string labels;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const data::Sample sample = dataset.get(i);
    images.append(sample.pixels.begin(), sample.pixels.end());
    labels.push_back(static_cast<char>(sample.label));
  }
  RawDataset raw{.images = folder / "images",
                 .labels = folder / "labels",
                 .shape = dataset.shape(),
                 .classes = dataset.classes(),
                 .samples = dataset.size()};
  write_file_whole(raw.images, images);
  write_file_whole(raw.labels, labels);
  return raw;
}

fs::path write_first_weights(const std::string& model, const data::Dataset& dataset, const fs::path& folder) {
  const auto parameters = nn::parameters_of(nn::make_model(named_model(model), dataset.shape(), dataset.classes()));
  auto weights = nn::draw_torch_uniform(parameters, TrainConfig().seed);
  for (auto& [number, values] : whitened_parameters(parameters, dataset, {})) weights.at(number) = values;
  std::string bytes;
  for (const std::vector<float>& values : weights)
    bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  fs::path file = folder / "weights";
  write_file_whole(file, bytes);
  return file;
}

Contestant pytorch_contestant(const std::string& python, const TrainingLayout& layout, const TrainingTask& task,
                              const RawDataset& data, PyTorchStyle style) {
  const auto peer = std::make_shared<PyTorchPeer>(python, layout, task, data, style);
  return {.layout = layout, .framework = "PyTorch", .train = [peer] { return peer->train(); }, .blas = peer->blas};
}

FormatTrial try_memory_formats(const std::string& python, const TrainingLayout& layout, TrainingTask task,
                               const RawDataset& data) {
  task.epochs = 1;
  task.steps = kTrialSteps;
  const auto rows = measure_rounds({pytorch_contestant(python, layout, task, data, {.channels_last = false}),
                                    pytorch_contestant(python, layout, task, data, {.channels_last = true})},
                                   kTrialRounds, [](int, const Contestant&, const Measurement&) {});
  return {.contiguous = *rows[0].median(&Measurement::seconds),
          .channels_last = *rows[1].median(&Measurement::seconds)};
}

}  // namespace gradring::train::bench
