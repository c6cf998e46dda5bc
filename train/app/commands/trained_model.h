// SPDX-License-Identifier: Apache-2.0
#pragma once

// What commands that read a trained model share: `gradring eval`, `predict`, `export` and `ckpt`.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "train/core/config/resolve.h"
#include "train/core/inference/inference.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/named_output.h"
#include "train/core/setup/start.h"
#include "train/options/commands.h"
#include "train/records/checkpoint/file_system.h"

namespace gradring::train {

/// The checkpoint that a command reads: its first word, or --checkpoint.
struct CheckpointChoice {
  std::string path;   ///< --checkpoint; empty: the first word
  bool best = false;  ///< of a run directory, the best instead of the newest
};

/// --checkpoint and --best.
std::vector<Option> checkpoint_options(CheckpointChoice& choice);

/// Takes the first of `words` as the path if --checkpoint is missing.
///
/// Errors    UsageError with `usage`, "gradring eval RUN", if there is neither.
void take_path(CheckpointChoice& choice, Words& words, std::string_view usage);

/// Reads it, and prints remarks on standard error.
///
/// Errors    as named_tensors and best_tensors.
NamedTensors read_choice(FileSystem& files, const CheckpointChoice& choice);

/// The tensor of that name, of the weights or of the state.
///
/// Errors    UsageError that names the nearest.
const TensorRecord& tensor_named(const Checkpoint& checkpoint, const std::string& name);

/// "runs/a/checkpoints/step-40 (newest of runs/a)"
std::string source_text(const NamedTensors& tensors);

/// Options that eval and predict share.
struct InferenceOptions {
  CheckpointChoice checkpoint;
  OptionTexts given;                  ///< options that training has too
  std::string default_batch = "250";  ///< larger than in training: no gradients are kept
  std::string logits;                 ///< a .npy file to write; empty: none
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

/// --tta, of the views whose logits are averaged.
Option tta_option(OptionTexts& given);

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
