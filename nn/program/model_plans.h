// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nn/backend/backend.h"
#include "nn/models/model.h"
#include "nn/program/activation_memory.h"

namespace gradring::nn {

/// Instead of a stage's number: the program's input.
inline constexpr std::size_t kProgramInput = std::numeric_limits<std::size_t>::max();

/// One plan of a model, what it reads, and the memory that it needs from the program.
struct PlannedStage {
  std::unique_ptr<Plan> plan;
  std::size_t x = kProgramInput;                       ///< the stage whose output it reads
  std::optional<std::size_t> residual = std::nullopt;  ///< the stage of its second input, if it has one
  std::vector<int> parameters = {};                    ///< their indices in state_dict order
  std::vector<int> trained = {};                       ///< those of them that are not frozen
  bool backward = false;                               ///< it has a backward pass: something up to it is trained
  std::vector<int> buffers = {};                       ///< the same of buffers
  std::vector<std::string> layers = {};                ///< their names
  std::size_t output_bytes = 0;
  double forward_work = 0;                                 ///< approximate multiplications: the cost of recomputing it
  std::optional<std::size_t> partial_sums = std::nullopt;  ///< where it leaves them, in bytes from their start
};

/// The loss, and the layers fused with it.
struct PlannedHead {
  std::unique_ptr<LossPlan> plan;
  std::size_t x = kProgramInput;  ///< the stage whose output it reads
  bool masks_dx = false;          ///< x is a ReLU's output that nothing else reads: LossPass::x_is_relu
  std::vector<int> parameters;    ///< all trained
  std::vector<std::string> layers;
  std::size_t logits_bytes = 0;                            ///< that it writes; 0 if the last stage writes them
  std::optional<std::size_t> partial_sums = std::nullopt;  ///< as of a stage
};

/// A model as the plans of a backend, each after those that it reads.
struct ModelPlans {
  std::vector<PlannedStage> stages;
  PlannedHead head;
  std::unique_ptr<Plan> sum;  ///< of gradients of one output, an Add of [elements, 1]; null if all have one reader
  std::size_t workspace_bytes = 0;  ///< maximum over the plans
  std::size_t partial_sum_bytes = 0;

  /// Lets plans leave partial sums: those whose memory fits into `most_bytes`, from the loss on. Regions do not overlap,
  /// since all partial sums of a pass may wait for one addition.
  void assign_partial_sums(std::size_t most_bytes);
  /// Of each stage's output, the last stage that reads it; stages.size() for the head.
  std::vector<std::size_t> last_readers() const;
  /// The first stage with a backward pass; 0 in evaluation. Backward ends there.
  std::size_t first_of_backward() const;
  /// Whether all that read the model's input take it in that type, too (Plan::reads).
  bool read_input_as(kernels::DType x_dtype) const;
  /// Whether what it reads, a stage or the program's input, has a gradient.
  bool has_gradient(std::size_t stage) const { return stage != kProgramInput && stages[stage].backward; }
};

/// `trains`: there is a backward pass, and the backend may plan the loss together with the last layer.
///
/// Errors    InvalidArgument if the layers do not fit each other or the backend, or there is nothing to train.
ModelPlans plan_model(const Model& model, std::int64_t batch, kernels::DType dtype, bool trains, Backend& backend,
                      ReplicaStatistics* replicas = nullptr);

/// Bytes of each stage's output, saved and kept memory, for all shards.
std::vector<StageBytes> bytes_of(const std::vector<PlannedStage>& stages, const BatchShards& shards);

/// The segments of the stages from `first`.
///
/// Errors    as choose_segments.
Segmentation segments_of(const ModelPlans& plans, std::span<const StageBytes> bytes, std::size_t first,
                         const Checkpointing& checkpointing);

/// Whether a later stage has already written a gradient of what the stage reads, so that its own is added to it.
bool adds_dx(const ModelPlans& plans, std::size_t stage, std::span<const std::size_t> last_readers);
/// The same of its second input.
bool adds_dresidual(const ModelPlans& plans, std::size_t stage, std::span<const std::size_t> last_readers);

/// Positions of the gradients of the stages' outputs, then of summands. A gradient lives from the step that writes it
/// first, that of the stage's last reader, to that of its own stage. Where an earlier reader adds to it, the summand is in
/// memory of its own: two for each stage, of dx and of dresidual.
Placement place_gradients(const ModelPlans& plans, std::span<const StageBytes> bytes,
                          std::span<const std::size_t> last_readers);

}  // namespace gradring::nn
