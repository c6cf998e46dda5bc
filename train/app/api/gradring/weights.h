// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <gradring/dataset.h>
#include <gradring/model.h>
#include <gradring/options.h>

namespace gradring {
inline namespace v1 {

/// The outputs of a model for a data set.
struct Evaluation {
  std::int64_t samples = 0;
  std::int64_t correct = 0;
  double accuracy = 0;        ///< correct / samples
  double loss = 0;            ///< cross-entropy, mean over the samples
  std::vector<float> logits;  ///< [samples, classes], in the data set's order
};

/// Evaluates weights on one device of this process, as `gradring eval` does.
///
/// `weights`: a run directory (its newest checkpoint), a checkpoint, or a .safetensors or .pt file, with PyTorch's names.
/// Of `options`, those count that `gradring eval` has: batch-size (default 250), precision, device, threads, ...
///
/// Errors    Error if they are missing, damaged, not finite or those of another model.
Evaluation evaluate(const std::string& weights, const Model& model, const Dataset& dataset,
                    const Options& options = {});

/// Writes the weights of a run directory (its newest checkpoint) or of a checkpoint to a new file, with PyTorch's names
/// and layout, in the format of its extension: .safetensors, .pt, .pth.
///
/// Errors    Error if the file exists or cannot be written, or the weights cannot be read.
void save_weights(const std::string& from, const std::string& file);

}  // namespace v1
}  // namespace gradring
