// SPDX-License-Identifier: Apache-2.0
#include "train/app/commands/checkpoint_choice.h"

#include <fmt/format.h>

#include "kernels/base/file.h"
#include "train/options/usage_error.h"

namespace gradring::train {

std::vector<Option> checkpoint_options(CheckpointChoice& choice) {
  return {text_option("checkpoint", "PATH",
                      "checkpoint, run directory (its newest valid checkpoint), or file of weights: .safetensors, .pt; "
                      "default: the first argument",
                      choice.path),
          switch_option("best", "the run's checkpoint with the highest accuracy instead of its newest", choice.best)};
}

void take_path(CheckpointChoice& choice, Words& words, std::string_view usage) {
  if (!choice.path.empty()) return;
  if (words.empty())
    throw UsageError(fmt::format(
        "the checkpoint is missing: give the path of a run directory, a checkpoint or a file of weights: {}", usage));
  choice.path = words.front();
  words.erase(words.begin());
}

NamedTensors read_choice(FileSystem& files, const CheckpointChoice& choice) {
  NamedTensors tensors = choice.best ? best_tensors(files, choice.path, "--checkpoint")
                                     : named_tensors(files, choice.path, "--checkpoint");
  for (const std::string& remark : tensors.remarks) print_to_stderr(remark + "\n");
  return tensors;
}

std::string source_text(const NamedTensors& tensors) {
  return tensors.from.string() + (tensors.which.empty() ? "" : " (" + tensors.which + ")");
}

}  // namespace gradring::train
