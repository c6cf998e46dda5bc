// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/bench/statistics.h"

namespace gradring::train::bench {

/// Where the time of training steps goes: how long each named part of a step took, step by step. A part that runs several
/// times in a step counts with the sum. Whatever belongs to no part is the rest.
///
/// Threads   one.
class StepTimes {
 public:
  using Duration = std::chrono::duration<double>;

  /// Within a step.
  void add(std::string_view part, Duration duration);
  /// The step is over and took `whole`.
  void end_step(Duration whole);
  /// As if nothing had been measured: after the steps that warm up.
  void clear();

  struct Part {
    std::string name;
    kernels::bench::Statistics seconds;
  };
  struct Table {
    kernels::bench::Statistics step;  ///< seconds
    std::vector<Part> parts;          ///< in the order in which they first ran; last "the rest"
  };
  /// Errors    InvalidArgument if no step has ended.
  Table table() const;

 private:
  struct Row {
    std::string name;
    double running = 0;           // of the step that is not over
    std::vector<double> steps{};  // those before
  };
  Row& row(std::string_view part);

  std::vector<Row> rows_;
  std::vector<double> whole_;
};

/// Adds the time of its own life to a part.
class TimedPart {
 public:
  TimedPart(StepTimes& times, std::string_view part) : times_(times), part_(part), begin_(Clock::now()) {}
  ~TimedPart() { times_.add(part_, Clock::now() - begin_); }
  TimedPart(const TimedPart&) = delete;
  TimedPart& operator=(const TimedPart&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  StepTimes& times_;
  std::string_view part_;
  Clock::time_point begin_;
};

}  // namespace gradring::train::bench
