// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "train/view/runs/followed_file.h"
#include "train/view/runs/run.h"

namespace gradring::train {

/// The course of any number of values, in bounded memory: the values themselves, or the means of 2, 4, 8, ... values
/// that follow each other. Values that are not finite are left out of a mean.
///
/// Cost      constant for each value; memory for kMostMeans means.
class MeanCurve {
 public:
  static constexpr std::size_t kMostMeans = 2048;

  void add(double value);
  /// In the order of the values; NaN for a mean of none. The last mean may be of fewer values than the others.
  std::vector<double> means() const;

 private:
  struct Sum {
    double sum = 0;
    std::size_t finite = 0;
  };

  void halve();

  std::vector<Sum> sums_;
  std::size_t values_of_each_ = 1;
  std::size_t values_of_last_ = 0;
};

/// What the files of a run say about a rank. docs/runs.md tells how each is decided.
enum class RankState : std::uint8_t {
  starting,  ///< no step since the run's newest start
  training,
  evaluating,  ///< the last step of an epoch is made, its evaluation is not
  slow,        ///< the other ranks wait for it
  stalled,     ///< no sign of life for ten steps, and at least 10 s
  finished,
  stopped,
  failed,  ///< its log says so
  lost,    ///< the run has failed, and its log says nothing
};

std::string_view name_of(RankState state);

struct RankRow {
  std::size_t rank = 0;
  std::int64_t step = 0;  ///< the last that is known
  std::optional<double> steps_per_second{};
  std::optional<double> data_wait{};      ///< fraction of a step
  std::optional<double> communication{};  ///< the same, waiting for other ranks
  std::optional<double> memory{};         ///< peak, in bytes
  std::optional<double> loss{};           ///< in its log
  RankState state = RankState::starting;
  std::string note{};  ///< "+30.0 ms a step", an error message
};

/// logs/rank_<N>.log, as far as it is needed.
class RankLogReader {
 public:
  explicit RankLogReader(const std::filesystem::path& path) : file_(path, kMostLineOfLog) {}
  void poll();

  double written_at() const { return file_.written_at(); }
  std::optional<double> loss() const { return loss_; }
  /// Why its training ended; empty while it goes on.
  const std::string& end() const { return end_; }

 private:
  static constexpr std::size_t kMostLineOfLog = 1 << 16;  // bytes; there may be many logs

  void read(std::string_view line);

  FollowedFile file_;
  std::optional<double> loss_;
  std::string end_;
};

/// A run that may be in progress, read again and again. Reads only files of the run directory, which may be on a disk
/// shared with the run's machine, and writes none.
///
/// Threads   one.
/// Cost      for the run: nothing. A poll reads what was appended since the last one, in time and memory that do not
///           depend on the length of the run; the first one reads all. Memory for kMostRanks rows at most.
class LiveRun {
 public:
  /// Errors    UsageError if it is no run directory (find_run).
  explicit LiveRun(const std::filesystem::path& named);

  /// Reads what is new. `now` is in seconds since 1970.
  void poll(double now);

  /// Its history has the newest events of each kind only, at least kKeptEvents; of those of ranks() fewer.
  const Run& run() const { return run_; }
  static constexpr std::size_t kKeptEvents = 256;
  /// The training loss of all steps.
  std::vector<double> losses() const { return losses_.means(); }
  /// A row for each rank.
  std::vector<RankRow> ranks(double now) const;
  /// Steps a second over the last steps of this start; nothing before the second step.
  std::optional<double> pace() const;
  /// Seconds until the last step at this pace; nothing if the run does not run.
  std::optional<double> time_left() const;
  /// Whether the last step of an epoch is made and its evaluation is not.
  bool is_evaluating() const;

 private:
  void add(const TimedEvent& event);
  void poll_logs();
  const RankLogReader* log_of(std::size_t rank) const;
  RankState state_of(std::size_t rank, double now) const;
  bool is_silent(std::size_t rank, double now) const;
  bool has_stepped() const;

  Run run_;
  MeanCurve losses_;
  FollowedFile metrics_;
  std::size_t rank_count_ = 1;
  std::map<std::size_t, RankLogReader> logs_;  // those that there are, by rank
};

}  // namespace gradring::train
