// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace gradring::kernels::bench {

/// Summary of repeated measurements. Of two runs on a busy machine the medians differ least.
///
/// Source    `spread`: Rousseeuw and Croux, "Alternatives to the Median Absolute Deviation", 1993; of normally distributed
///           measurements it estimates their standard deviation, and up to half of them may be outliers.
struct Statistics {
  std::size_t count = 0;
  double least = 0;
  double median = 0;  ///< of an even count, the mean of the middle two
  double p95 = 0;     ///< nearest rank: at least 95 of 100 measurements are no larger
  double p99 = 0;
  double most = 0;
  double mean = 0;
  double spread = 0;            ///< 1.4826 times the median absolute deviation from the median
  std::vector<double> samples;  ///< the measurements, in their order

  /// The spread as a fraction of the median; 0 if the median is 0.
  double noise() const { return median == 0 ? 0 : spread / median; }
};

/// Errors    InvalidArgument if there are no measurements.
Statistics statistics_of(std::vector<double> measurements);

/// Measures contenders in turns (a, b, a, b, ...), so that other load affects all alike.
///
/// `more(turn)`: whether there is another turn; `sample(contender, turn)`: one measurement.
/// Returns   for each contender its measurements, in their order.
template <class More, class Sample>
auto in_turns(std::size_t contenders, const More& more, const Sample& sample) {
  std::vector<std::vector<decltype(sample(std::size_t{0}, 0))>> measured(contenders);
  for (int turn = 0; more(turn); ++turn)
    for (std::size_t i = 0; i < contenders; ++i) measured[i].push_back(sample(i, turn));
  return measured;
}

/// The `more` of so many turns.
inline auto turns(int count) {
  return [count](int turn) { return turn < count; };
}

/// Seconds since it was made.
class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

/// Where and with what a result was measured; every table and file of results begins with it.
struct Provenance {
  std::string machine;  ///< "Intel(R) Xeon(R) Platinum 8481C, 2 cores, Linux 6.1.0"
  std::string date;     ///< "2026-11-20"
  std::string commit;   ///< kCommit
};

Provenance provenance();

/// The same in one line.
std::string to_string(const Provenance& provenance);

}  // namespace gradring::kernels::bench
