// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "train/records/metrics/memory_ledger.h"
#include "train/records/metrics/summary.h"

namespace gradring::train {

// The events of a run, as docs/metrics.md describes them. Epochs and steps count from 1; a number of completed steps or
// epochs counts from 0. Times are seconds.

/// Parameters that are trained alike.
struct GroupRecord {
  std::vector<std::string> patterns{};  ///< of --group that match some of them; empty: of no group
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;  ///< elements of the tensors
  std::string optimizer{};
  double learning_rate = 0;  ///< peak
  double weight_decay = 0;
  std::optional<double> epochs{};  ///< trained for the first ones only
  bool frozen = false;
};

/// The start of a run, and each later start that resumes it.
struct RunHeader {
  std::string version{};               ///< of gradring
  std::string commit{};                ///< of its source
  std::vector<std::string> command{};  ///< of rank 0's process
  std::string start{};                 ///< the shell command that starts all ranks, with the variables that it reads
  std::string name{};                  ///< --name
  std::vector<std::string> tags{};     ///< --tags
  std::string host{};
  std::string machine{};  ///< "Intel(R) Xeon(R) Platinum 8481C, 2 cores, Linux 6.1.0"
  std::string device{};   ///< as Device::description
  std::string backend{};
  std::string precision{};
  std::string model{};
  std::int64_t parameters = 0;
  std::vector<GroupRecord> groups{};  ///< of parameters; empty: all are trained alike
  std::string dataset{};
  std::int64_t train_samples = 0;                    ///< without those held out for validation
  std::optional<std::int64_t> validation_samples{};  ///< empty: no --val-split
  std::int64_t test_samples = 0;
  int ranks = 1;
  std::int64_t global_batch = 0;  ///< samples
  std::int64_t steps_per_epoch = 0;
  std::int64_t total_steps = 0;
  std::int64_t resumed_from = 0;  ///< completed steps
  MemoryTable planned_memory{};   ///< of a rank's device
  /// Names of options and their values as TOML literals.
  std::vector<std::pair<std::string, std::string>> config{};
};

/// The shell command that started the run: RunHeader::start or, of a run that was recorded without it, rank 0's.
std::string start_command(const RunHeader& header);

/// An optimizer step: "train".
struct StepRecord {
  std::int64_t step = 0;
  std::int64_t epoch = 0;
  std::int64_t step_of_epoch = 0;   ///< not in metrics.jsonl
  std::int64_t steps_in_epoch = 0;  ///< that the run makes: --steps may end an epoch early; not in metrics.jsonl
  double loss = 0;                  ///< mean over the global batch, before the update
  double learning_rate = 0;
  std::int64_t samples = 0;  ///< in the global batch
  std::chrono::duration<double> duration{0};
  std::chrono::duration<double> data_wait{0};              ///< part of duration: waiting for the loader
  std::chrono::duration<double> exposed_communication{0};  ///< part of duration: waiting for gradients of other ranks
  /// Parts of duration, without waits for other ranks; empty where they are not measured, as on a GPU.
  std::optional<double> forward{};
  std::optional<double> backward{};  ///< with the loss
  std::optional<double> optimizer{};
  double gradient_norm = 0;         ///< L2, of the mean gradient, before clipping
  double loss_scale = 1;            ///< factor of the loss in the backward pass
  bool skipped = false;             ///< no weight was changed, because a gradient was not finite
  bool ends_run = false;            ///< the training ends with an error, which names the gradient
  std::string non_finite;           ///< the first parameter with such a gradient, if known
  std::optional<double> underflow;  ///< fraction of gradients that f16 would lose; empty without loss scaling

  double samples_per_second() const {
    return duration.count() > 0 ? static_cast<double>(samples) / duration.count() : 0;
  }
};

/// The times of every rank, in the order of ranks: means over the steps since the last such event.
struct RanksRecord {
  std::int64_t step = 0;   ///< the last of them
  std::int64_t steps = 0;  ///< how many (of rank 0)
  std::vector<double> seconds{};
  std::vector<double> data_wait{};
  std::vector<double> exposed_communication{};
  std::vector<double> memory{};  ///< peak allocation of the device so far, in bytes
};

/// EvalRecord::split.
inline constexpr const char* kTestSplit = "test";
inline constexpr const char* kValidationSplit = "validation";

/// A pass over the test set, or over the validation set (--val-split).
struct EvalRecord {
  std::int64_t step = 0;  ///< the last before it
  std::int64_t epoch = 0;
  bool ends_epoch = true;          ///< false within an epoch (--eval-every)
  std::string split = kTestSplit;  ///< kTestSplit or kValidationSplit
  double accuracy = 0;             ///< 0..1
  double loss = 0;                 ///< mean over the samples
  std::int64_t samples = 0;
  double seconds = 0;
  std::optional<double> top5_accuracy{};  ///< the class is among the five likeliest; empty with up to five classes
  std::optional<double> ema_accuracy{};   ///< of the averaged weights, if any
  std::optional<double> ema_loss{};
};

/// A start after the launcher restarted the ranks, because one was lost; a header comes before it.
struct RestartRecord {
  std::int64_t step = 0;  ///< the last completed one, from which the run goes on
  int attempt = 0;        ///< 1 for the first restart
};

/// A checkpoint that is on disk, as checkpoints/step-<N>.
struct CheckpointRecord {
  std::int64_t step = 0;
  double seconds = 0;  ///< of writing, beside the training
};

/// An injected fault (--inject), just before it happens.
struct FaultRecord {
  std::int64_t step = 0;  ///< before or in which it happens
  int rank = 0;
  std::string kind{};  ///< kill, stop, delay, exit, nan
};

/// The end of a run, unless it was killed.
struct EndRecord {
  Outcome outcome = Outcome::finished;
  std::string reason{};    ///< the error message
  std::int64_t steps = 0;  ///< completed
  double seconds = 0;      ///< of training, without evaluation and start-up
  double samples_per_second = 0;
  std::optional<double> accuracy{};  ///< of a run that finished
  std::optional<double> loss{};
  MemoryTable peak_memory{};  ///< of rank 0's device
};

using RunEvent = std::variant<RunHeader, StepRecord, RanksRecord, EvalRecord, RestartRecord, CheckpointRecord,
                              FaultRecord, EndRecord>;

/// An event and when it happened.
struct TimedEvent {
  double time = 0;  ///< seconds since 1970
  RunEvent event{};
};

}  // namespace gradring::train
