// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "train/trainer/on_nan.h"
#include "train/trainer/trainer_world.h"

namespace gradring::train {

/// The way back to the newest checkpoint (--on-nan rollback), which all ranks go at the same step without asking each other.
///
/// Threads   that of the trainer. The world must outlive it.
class Rollback {
 public:
  explicit Rollback(const TrainerWorld& world) : world_(world) {}

  /// Step `step` is to be undone, with all that were enqueued behind it. Every rank hears that of the same step.
  void ask(std::int64_t step, std::string trouble) { undone_ = {.step = step, .trouble = std::move(trouble)}; }
  bool asked() const { return undone_.has_value(); }
  /// Whether it is time, when so many steps are enqueued: where all ranks took all results (`all_taken`), or where even the rank
  /// that looks last has seen the one.
  bool is_due(std::int64_t enqueued, bool all_taken) const;
  /// Where to: what rank 0 reads, which must write nothing at that time. Blocks until all ranks have come.
  ///
  /// Errors    DivergedError if there is no checkpoint, or going back did not help often enough; comm::CommError; on rank 0 what
  ///           reading throws.
  ResumePoint take();
  /// The training stands where `steps` steps are behind it, once more: tells the person.
  void done(std::int64_t steps, std::int64_t epoch);
  /// On every rank: checkpoints of this step are saved, if any are.
  void saved(std::int64_t steps) { rollbacks_.saved(steps); }

 private:
  struct Undone {
    std::int64_t step = 0;
    std::string trouble;
  };
  std::optional<ResumePoint> read() const;

  const TrainerWorld& world_;
  std::optional<Undone> undone_;
  std::string trouble_;  // that led back last
  Rollbacks rollbacks_;
};

}  // namespace gradring::train
