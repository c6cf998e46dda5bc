// SPDX-License-Identifier: Apache-2.0
// The arguments of the API's functions, as the rooms of train take them.
#pragma once

#include <gradring/dataset.h>
#include <gradring/model.h>
#include <gradring/options.h>

#include <memory>

#include "data/datasets/dataset.h"
#include "train/core/config/train_config.h"

namespace gradring::train::api {

/// A copy of all samples.
///
/// Errors    InvalidArgument if size, shape, classes, a label or the name is not allowed; what read() throws, as a
///           caller's error; as data::require_memory.
std::shared_ptr<const data::Dataset> copy_of(const Dataset& dataset);

/// The options, resolved as those of `gradring train` are, for this model and data set.
///
/// Errors    as resolve_own.
TrainConfig config_of(const Options& options, const Model& model, const data::Dataset& dataset);

}  // namespace gradring::train::api
