// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::train {

enum class FaultKind : std::uint8_t {
  kill,   ///< SIGKILL, as from the kernel when memory is short
  stop,   ///< SIGSTOP: the process hangs
  delay,  ///< sleeps: a slow rank
  exit,   ///< exits with a code, without a message
  nan,    ///< the gradients of the step are NaN
};

/// A fault to inject into a training, for tests and for teaching: `--inject KIND:rank=R,step=N,...`.
struct Fault {
  FaultKind kind = FaultKind::kill;
  std::optional<int> rank;      ///< nullopt: drawn from all ranks
  std::int64_t first_step = 1;  ///< counted from 1; the step is drawn from first_step to last_step
  std::int64_t last_step = 1;
  std::uint64_t seed = 0;          ///< of the draws
  std::optional<int> attempt = 0;  ///< TORCHELASTIC_RESTART_COUNT; nullopt: every attempt
  std::chrono::milliseconds delay{0};
  int code = 1;  ///< exit code

  bool is_drawn() const { return !rank || first_step != last_step; }
  bool operator==(const Fault&) const = default;
};

/// Separates the faults of one option value.
inline constexpr char kBetweenFaults = ';';

std::string_view name_of(FaultKind kind);

/// "kill:rank=1,step=20;delay:rank=any,step=20..40,ms=500,seed=7"; empty text: no faults.
///
/// Errors    UsageError with the value found and the value expected.
std::vector<Fault> parse_faults(std::string_view text);

/// The inverse of parse_faults.
std::string show_faults(std::span<const Fault> faults);

/// A fault of this attempt after rank and step were drawn.
struct PlannedFault {
  FaultKind kind = FaultKind::kill;
  int rank = 0;
  std::int64_t step = 1;
  std::chrono::milliseconds delay{0};
  int code = 1;
  std::string seed_note{};  ///< " (seed 7)" if rank or step was drawn
};

/// The run that faults are planned for.
struct FaultedRun {
  int world_size = 1;
  int attempt = 0;        ///< TORCHELASTIC_RESTART_COUNT
  bool recorded = false;  ///< steps are CUDA graphs, which are all equal
};

/// The faults of this attempt, equal on every rank: draws depend only on seed, position in the list and attempt.
///
/// Errors    UsageError for a rank outside the world, or a NaN where steps are recorded.
std::vector<PlannedFault> plan_faults(std::span<const Fault> faults, const FaultedRun& run);

/// "kill, rank 1 in step 20"
std::string to_string(const PlannedFault& fault);

/// Called around every training step, on the trainer's thread.
class StepHook {
 public:
  virtual ~StepHook() = default;
  /// Before anything of step `step` of the run is enqueued, counted from 1.
  virtual void before_step(std::int64_t step) = 0;
  /// After everything of the step is enqueued.
  virtual void after_step() = 0;
};

}  // namespace gradring::train
