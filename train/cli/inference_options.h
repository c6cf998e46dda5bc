// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "train/cli/command_line.h"
#include "train/config/resolve.h"
#include "train/setup/compute.h"
#include "train/setup/named_checkpoint.h"

namespace gradring::train {

/// What eval and predict are told alike.
struct InferenceOptions {
  std::string checkpoint;
  OptionTexts given;   ///< options that training has too
  std::string logits;  ///< a .npy file to write; empty: none
  bool ema = false;    ///< the averaged weights, instead of those that were trained
  bool json = false;
};

/// Those options, read into `options`.
std::vector<CommandOption> inference_options(InferenceOptions& options);

/// Asks for averaged weights.
CommandOption ema_switch(bool& on);

/// An option that training has, too, explained anew; its text goes to `given`.
CommandOption option_of_training(const std::string& name, const std::string& help, OptionTexts& given);

/// A checkpoint and all that is needed to compute with it.
struct InferenceSetting {
  TrainConfig config;  ///< data set and model are those that the checkpoint names, unless others were given
  NamedTensors tensors;
  Compute compute;
};

/// Reads the checkpoint and opens the device. What was passed over is said on stderr.
///
/// Errors    UsageError without a checkpoint, or if nobody says on what it was trained; CheckpointError; as make_compute.
InferenceSetting prepare_inference(const InferenceOptions& options);

/// Writes the logits of `samples` samples as a new .npy of f32, if the options ask for it.
///
/// Errors    FileError.
void write_logits(const InferenceOptions& options, std::int64_t samples, const std::vector<float>& logits);

}  // namespace gradring::train
