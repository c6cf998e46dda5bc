// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "train/records/trace/step_timeline.h"
#include "train/records/trace/trace_file.h"

namespace gradring::train {

/// The chain of work that determined how long a step took, as nanoseconds of each category: walked back from the last
/// end. Where a rank waits, the chain goes on at the rank that came last to the collective; the time from there to its
/// end is "communication".
std::map<std::string, std::int64_t> critical_path(const StepTimeline& step);

/// The rank that the others waited for in a step.
struct StepStraggler {
  int rank = -1;           ///< -1: nobody, as of one rank
  std::int64_t delay = 0;  ///< ns by which it came to the collectives later than the median of the others, in total
  std::string cause;       ///< category in which it spent most more time than the median of the others
  std::int64_t cause_delay = 0;  ///< how much more, in ns
};

StepStraggler straggler_of(const StepTimeline& step);

/// Times of a step, in seconds: means over the ranks, unless said otherwise.
struct StepFigures {
  std::int64_t step = 0;
  double seconds = 0;
  double compute = 0;                             ///< forward, backward and optimizer, without waits
  double communication = 0;                       ///< in collectives, with the wait for late ranks
  double exposed = 0;                             ///< waiting for collectives
  double sync = 0;                                ///< waiting for other ranks on the host
  double data = 0;                                ///< waiting for the loader
  std::map<std::string, double> critical_path{};  ///< by category; empty without one time of all ranks
  int straggler = -1;                             ///< rank; -1: there is one rank only, or no time of all ranks
  double delay = 0;                               ///< of the straggler
  std::string cause{};                            ///< category in which it spent more time than the others
  double cause_delay = 0;                         ///< how much more

  /// Share of communication that computing hid; nothing without communication.
  std::optional<double> overlap() const;
};

/// The rank that the others wait for most.
struct RunStraggler {
  int rank = -1;
  std::int64_t steps = 0;   ///< in which it was the straggler
  double median_delay = 0;  ///< over these
  double total_delay = 0;
  std::string cause{};            ///< the most frequent one
  double median_cause_delay = 0;  ///< over the steps with that cause
};

struct TraceSummary : TraceFacts {
  std::vector<StepFigures> steps;
  StepFigures mean;
  RunStraggler straggler;
};

/// Errors    data::DataError if the trace has no step.
TraceSummary summarize(const TraceFile& file, const std::string& path);

/// A table, and a sentence about the straggler.
std::string to_text(const TraceSummary& summary);
/// The same as JSON.
std::string to_json(const TraceSummary& summary);

}  // namespace gradring::train
