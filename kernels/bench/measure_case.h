// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/machine.h"
#include "kernels/bench/statistics.h"
#include "kernels/runtime/device.h"

namespace gradring::kernels::bench {

/// How much to measure.
struct Effort {
  double seconds = 0.3;  ///< for each candidate, and for each way to time it
  int most_samples = 200;
};

/// The first element of an output that is wrong.
struct WrongElement {
  enum class Why : std::uint8_t {
    value,       ///< it differs from the reference by more than the contract allows
    repetition,  ///< its bits differ from those of the same call before: `expected` is the value of that
    behind,      ///< it is behind the output, and was written: `expected` is the byte that was there
    timed,       ///< it was right when the candidate was checked, but not after the timed calls
  };
  std::string output;  ///< its name
  std::size_t index = 0;
  double value = 0;
  double expected = 0;
  std::size_t wrong_elements = 0;  ///< of this output
  std::size_t elements = 0;        ///< of this output
  const void* data = nullptr;      ///< the device's memory
  std::size_t bytes = 0;
  std::string writer{};  ///< what a probe found out
  Why why = Why::value;
  Trial trial = Trial::none;
  std::string shape{};  ///< of the trial
};

/// Finds out who wrote a wrong element, where a device can tell: the candidate runs again for that.
class ResultProbe {
 public:
  virtual ~ResultProbe() = default;
  /// The first values are in place. `element`: what to look at; null in the first run of a candidate.
  virtual void before_run(const WrongElement* element) = 0;
  /// After the second run: what to report.
  virtual std::string after_run() = 0;
};

/// The result of one candidate of a case. Emulated variants, candidates with wrong results, and peers that fail are not
/// timed.
struct Measured {
  enum class Kind : std::uint8_t { variant, emulated, peer, plain_loop };
  std::string name;  ///< of the variant or the library, or "plain loop"
  Kind kind = Kind::variant;
  double error = 0;      ///< the largest, relative to what the contract allows: above 1 the result is wrong
  Statistics hot{};      ///< seconds a call, its arrays in cache as far as they fit
  Statistics flushed{};  ///< seconds a call, its arrays in no cache
  std::optional<WrongElement> first_wrong{};
  std::vector<LaunchReport> launches{};  ///< the kernels of one call, ours only: those of a library are not reported

  std::string failure{};  ///< why a peer could not be run or recorded; empty if it could

  bool right() const { return error <= 1 && failure.empty(); }
};

inline constexpr const char* kPlainLoop = "plain loop";

/// What a candidate of ours is compared with.
enum class Comparisons : std::uint8_t {
  reference,  ///< with the reference, after one run
  all,        ///< also, bit for bit, with a second run, whose workspaces hold what the first left; and in each trial
};

/// Runs every variant, then the peers, and compares their results with the reference's and, of ours, as Comparisons::all
/// says; then times those that are right, and the plain loop, interleaved. `variant`: if not empty, the only one to run.
///
/// Times are the device's (TimedCalls): of hot calls that follow each other, and of one flushed call. What the host needs
/// to launch them is not included. The values are restored before each repetition, and where inputs do not depend on each
/// other (KernelCase::may_move) differ from all before. After the last one the recorded calls run once more, and
/// their results are compared: a candidate that does less when it is timed is wrong.
///
/// Errors    what a variant throws, or the failure of the device. What else a peer throws is its result.
std::vector<Measured> measure(const KernelCase& c, Device& device, Stream& stream, Machine& machine,
                              const Effort& effort, const std::string& variant);

/// The same without times, which a simulated GPU does not have. What differs from the reference runs once more for the
/// probe, if there is one.
///
/// Errors    what a variant throws, or the failure of the device.
std::vector<Measured> check(const KernelCase& c, Stream& stream, const std::string& variant,
                            ResultProbe* probe = nullptr, Comparisons comparisons = Comparisons::all);

}  // namespace gradring::kernels::bench
