// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/deadline.h"
#include "kernels/bench/case_values.h"
#include "kernels/bench/kernel_case.h"
#include "kernels/bench/statistics.h"
#include "kernels/runtime/device.h"

namespace gradring::kernels::bench {

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

/// What a candidate of ours is compared with.
enum class Comparisons : std::uint8_t {
  reference,  ///< with the reference, after one run
  all,        ///< also, bit for bit, with a second run, whose workspaces hold what the first left; and in each trial
};

/// Who computed what a candidate of that kind leaves.
constexpr Author author_of(Measured::Kind kind) { return kind == Measured::Kind::peer ? Author::peer : Author::us; }

/// For any call: one that takes longer hangs.
inline Deadline call_deadline() { return Deadline::after(std::chrono::minutes(10)); }

/// A case, or a trial of one, with what its reference computes.
struct Task {
  const KernelCase& c;
  const KernelCase* memory = nullptr;  ///< of a trial: the case whose memory it shares
  OutputValues expected;
};

/// The candidates of a case, compared with its reference.
class CaseCheck {
 public:
  CaseCheck(const KernelCase& c, Stream& stream, Comparisons comparisons);

  /// A variant in the case, and then, while it is right, in each of its trials. What differs from the reference runs
  /// once more for the probe, if there is one.
  Measured variant(const KernelCase::Candidate& candidate, Measured::Kind kind, ResultProbe* probe = nullptr) const;
  /// A library's call in the case, which may fail, or not be recordable, as timing it requires.
  Measured peer(const KernelCase::Candidate& peer, Device& device) const;

  /// What the reference makes of the first values.
  const OutputValues& expected() const { return tasks_.front().expected; }

 private:
  Stream& stream_;
  Comparisons comparisons_;
  std::vector<Task> tasks_;  // the case, and its trials
};

/// A variant to run.
struct Chosen {
  const KernelCase::Candidate* candidate;
  Measured::Kind kind;
};

/// The variants of that name: all if it is empty.
std::vector<Chosen> chosen_variants(const KernelCase& c, const std::string& name);

/// Runs the variants without timing them, as on a simulated GPU, and compares their results as CaseCheck does.
///
/// Errors    what a variant throws, or the failure of the device.
std::vector<Measured> check(const KernelCase& c, Stream& stream, const std::string& variant,
                            ResultProbe* probe = nullptr, Comparisons comparisons = Comparisons::all);

}  // namespace gradring::kernels::bench
