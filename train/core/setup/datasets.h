// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/datasets/dataset.h"
#include "train/core/config/train_config.h"
#include "train/core/trainer/training_state.h"

namespace gradring::train {

/// The data of a training.
struct Datasets {
  std::shared_ptr<const data::Dataset> train_set;
  std::shared_ptr<const data::Dataset> validation_set;  ///< held out of the training set (--val-split); null: none
  std::shared_ptr<const data::Dataset> test_set;
  std::shared_ptr<const data::Dataset> whole;  ///< train_set and validation_set are its parts; null: train_set is whole
  std::vector<std::string> remarks{};  ///< what data::DatasetSpec::say received, and classes that a split left empty

  /// The set that selects checkpoints.
  const data::Dataset& selecting() const { return validation_set ? *validation_set : *test_set; }
};

/// Holds the validation set out of `train_set`, as open_datasets does, and checks that these sets can be trained on.
/// Without a `test_set` (null) the validation set is the test set, too.
///
/// Errors    as open_datasets, without data::open_dataset.
Datasets make_datasets(const TrainConfig& config, std::shared_ptr<const data::Dataset> train_set,
                       std::shared_ptr<const data::Dataset> test_set);

/// The hashes that bind a training to its data.
///
/// Cost      as data::content_hash of each.
DataHashes hashes_of(const Datasets& sets);

/// Opens the data sets that the options name, and holds out the validation set: the samples that
/// torch.utils.data.random_split would take with --seed, or with --stratify a share of every class; in every start of a
/// run and on every rank. Of data without a test set, the validation set is the test set, too.
///
/// Errors    as data::open_dataset; DataError if training and test set are of different kinds; UsageError if --val-split
///           or --batch-size does not fit the number of samples.
Datasets open_datasets(const TrainConfig& config);

/// The first two of them, with the remarks: what is trained on, for a command that does not evaluate.
///
/// Errors    as data::open_dataset; UsageError if --val-split does not fit the number of samples.
Datasets open_train_set(const TrainConfig& config);

/// Opens the training set that the options name, and takes the validation set that another training held out of it.
///
/// Errors    as data::open_dataset; UsageError if that training's data set has another name; DataError if it has another
///           number of samples, or other ones.
std::unique_ptr<data::Dataset> open_validation_set(const TrainConfig& config, const HeldOut& held_out);

/// The part of the data that a finished training was evaluated on: kTestSplit; kValidationSplit if there are no test
/// files, but a validation set was held out.
std::string_view final_split(const TrainConfig& config, const std::optional<HeldOut>& held_out);

}  // namespace gradring::train
