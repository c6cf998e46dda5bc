// SPDX-License-Identifier: Apache-2.0
// What `gradring eval` and `gradring predict` share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "train/app/commands/checkpoint_choice.h"
#include "train/core/config/resolve.h"
#include "train/core/inference/inference.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/named_output.h"

namespace gradring::train {

/// Options that eval and predict share.
struct InferenceOptions {
  CheckpointChoice checkpoint;
  OptionTexts given;   ///< options that training has too
  std::string logits;  ///< a .npy file to write; empty: none
  Replace replace = Replace::ours;
  bool ema = false;  ///< averaged weights
  bool json = false;
};

/// A checkpoint and the device to run it on.
struct InferenceSetting {
  TrainConfig config;  ///< dataset and model as in the checkpoint, unless given
  NamedTensors tensors;
  Compute compute;

  kernels::DType precision() const;
};

/// An option that `gradring train` has too, with a help text of its own.
Option option_of_training(const std::string& name, const std::string& help, OptionTexts& given);

std::vector<Option> inference_options(InferenceOptions& options);

/// Reads the checkpoint and opens the device.
///
/// Errors    as read_choice, resolve and make_compute; UsageError if the data set is not known, or a file may not be
///           replaced.
InferenceSetting prepare_inference(const InferenceOptions& options);

/// Takes the weights out of `setting`, which must outlive the result. Prints remarks on their names to stderr.
///
/// Errors    as Inference.
std::unique_ptr<Inference> make_inference(InferenceSetting& setting, const kernels::Shape& sample, int classes,
                                          std::int64_t batch_size);

/// Writes --logits, if it was given.
///
/// Errors    EnvironmentError with path and reason.
void write_logits(const InferenceOptions& options, std::int64_t samples, const std::vector<float>& logits);

}  // namespace gradring::train
