// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/datasets.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "data/datasets/open_dataset.h"
#include "data/files/byte_source.h"
#include "data/loader/random_split.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

void check_batch_size(const TrainConfig& config, const data::Dataset& train_set) {
  if (config.batch_size > train_set.size())
    throw UsageError(fmt::format("--batch-size is {}, but {} has {} training samples{}: lower it", config.batch_size,
                                 train_set.name(), train_set.size(),
                                 config.val_split ? " without those of --val-split" : ""));
}

void check_same_kind(const data::Dataset& train_set, const data::Dataset& test_set, const std::string& folder) {
  if (train_set.shape() == test_set.shape() && train_set.classes() == test_set.classes()) return;
  throw data::DataError(
      folder,
      fmt::format("{} has training samples of {} in {} classes, but test samples of {} in {} classes", train_set.name(),
                  train_set.shape().to_string(), train_set.classes(), test_set.shape().to_string(), test_set.classes()),
      "use files of one data set");
}

Datasets split(const TrainConfig& config, std::shared_ptr<const data::Dataset> whole) {
  if (!config.val_split) return {.train_set = std::move(whole)};
  const std::int64_t held_out = validation_samples(config.val_split, whole->size());
  data::RandomSplit split = is_stratified(config) ? data::stratified_split(whole, held_out, config.seed)
                                                  : data::random_split(whole, held_out, config.seed);
  return {.train_set = std::move(split.rest),
          .validation_set = std::move(split.held_out),
          .test_set = {},
          .whole = std::move(whole)};
}

}  // namespace

Datasets make_datasets(const TrainConfig& config, std::shared_ptr<const data::Dataset> train_set,
                       std::shared_ptr<const data::Dataset> test_set) {
  Datasets sets = split(config, std::move(train_set));
  sets.test_set = test_set ? std::move(test_set) : sets.validation_set;
  check_same_kind(*sets.train_set, *sets.test_set, config.data_dir);
  check_batch_size(config, *sets.train_set);
  return sets;
}

DataHashes hashes_of(const Datasets& sets) {
  DataHashes hashes = {{kTrainingData, data::to_hex(data::content_hash(sets.whole ? *sets.whole : *sets.train_set))}};
  if (sets.test_set) hashes[kTestData] = data::to_hex(data::content_hash(*sets.test_set));
  return hashes;
}

Datasets open_train_set(const TrainConfig& config) {
  return split(config, data::open_dataset(dataset_spec(config), data::Split::train));
}

Datasets open_datasets(const TrainConfig& config) {
  std::vector<std::string> remarks;
  data::DatasetSpec spec = dataset_spec(config);
  spec.say = [&remarks](const std::string& text) { remarks.push_back(text); };
  std::shared_ptr<const data::Dataset> train_set = data::open_dataset(spec, data::Split::train), test_set;
  if (!config.val_split || data::has_test_set(spec)) test_set = data::open_dataset(spec, data::Split::test);
  Datasets sets = make_datasets(config, std::move(train_set), std::move(test_set));
  sets.remarks = std::move(remarks);
  return sets;
}

std::unique_ptr<data::Dataset> open_validation_set(const TrainConfig& config, const HeldOut& held_out) {
  const std::shared_ptr<const data::Dataset> whole = data::open_dataset(dataset_spec(config), data::Split::train);
  if (whole->name() != held_out.dataset)
    throw UsageError(fmt::format("--dataset is {}, but the validation set is a part of {}: leave it out", whole->name(),
                                 held_out.dataset));
  if (whole->size() != held_out.samples + held_out.train_samples)
    throw data::DataError(
        config.data_dir,
        fmt::format("{} has {} training samples, but the training had {}, of which it held out {}", whole->name(),
                    whole->size(), held_out.samples + held_out.train_samples, held_out.samples),
        "use the files that it was trained on");
  if (const std::string hash = data::to_hex(data::content_hash(*whole));
      !held_out.sha256.empty() && hash != held_out.sha256)
    throw data::DataError(
        config.data_dir,
        fmt::format(
            "{} has other training samples than the training had, with the SHA-256 {:.16} instead of {:.16}, so "
            "that samples it was trained on could be held out here",
            whole->name(), hash, held_out.sha256),
        fmt::format("use {}", kUseItsFiles));
  const auto split = held_out.stratified ? data::stratified_split : data::random_split;
  return std::move(split(whole, held_out.samples, held_out.seed).held_out);
}

}  // namespace gradring::train
