// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/datasets.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "data/datasets/class_names.h"
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

/// The data set of the options, which says each remark once to `remarks`: one rank prints them.
data::DatasetSpec spec_with(const TrainConfig& config, std::vector<std::string>& remarks) {
  data::DatasetSpec spec = dataset_spec(config);
  spec.say = [&remarks](const std::string& text) {
    if (std::ranges::find(remarks, text) == remarks.end()) remarks.push_back(text);
  };
  return spec;
}

/// Remarks on the classes of which --val-split drew all samples into the other part.
void remark_on_classes(Datasets& sets, const char* name, const data::Dataset& part, const data::Dataset& other,
                       bool stratified) {
  const std::vector<std::int64_t> here = data::samples_of_class(part), there = data::samples_of_class(other);
  std::vector<std::string> empty;
  for (std::size_t i = 0; i < here.size(); ++i)
    if (here[i] == 0 && there[i] > 0) empty.push_back(part.class_names()[i]);
  if (empty.empty()) return;
  sets.remarks.push_back(fmt::format(
      "{}: --val-split leaves the {} set no samples of {} of its {} classes ({}); {}", part.name(), name, empty.size(),
      here.size(), data::list_of(empty),
      stratified ? "hold out more samples" : "use --stratify on, which holds out the same share of every class"));
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
  if (sets.validation_set) {
    remark_on_classes(sets, "training", *sets.train_set, *sets.validation_set, is_stratified(config));
    remark_on_classes(sets, "validation", *sets.validation_set, *sets.train_set, is_stratified(config));
  }
  return sets;
}

DataHashes hashes_of(const Datasets& sets) {
  DataHashes hashes = {{kTrainingData, data::to_hex(data::content_hash(sets.whole ? *sets.whole : *sets.train_set))}};
  if (sets.test_set) hashes[kTestData] = data::to_hex(data::content_hash(*sets.test_set));
  return hashes;
}

Datasets open_train_set(const TrainConfig& config) {
  std::vector<std::string> remarks;
  Datasets sets = split(config, data::open_dataset(spec_with(config, remarks), data::Split::train));
  sets.remarks = std::move(remarks);
  return sets;
}

Datasets open_datasets(const TrainConfig& config) {
  std::vector<std::string> remarks;
  const data::DatasetSpec spec = spec_with(config, remarks);
  std::shared_ptr<const data::Dataset> train_set = data::open_dataset(spec, data::Split::train), test_set;
  if (!config.val_split || data::has_test_set(spec)) test_set = data::open_dataset(spec, data::Split::test);
  Datasets sets = make_datasets(config, std::move(train_set), std::move(test_set));
  sets.remarks.insert(sets.remarks.begin(), remarks.begin(), remarks.end());
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

std::string_view final_split(const TrainConfig& config, const std::optional<HeldOut>& held_out) {
  return held_out && !data::has_test_set(dataset_spec(config)) ? kValidationSplit : kTestSplit;
}

}  // namespace gradring::train
