// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/measure_case.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <utility>

#include "kernels/bench/statistics.h"
#include "kernels/runtime/timed_calls.h"

namespace gradring::kernels::bench {
namespace {

/// A call shorter than this is repeated, so that reading the clock costs nothing, and launching is done meanwhile.
constexpr double kLeastSeconds = 50e-6;
constexpr int kLeastSamples = 5;

/// What a timed call enqueues.
using Run = std::function<void()>;

/// Statistics of sample(i) for each contender, as long as the effort allows.
std::vector<Statistics> in_turns_by(const Effort& effort, std::size_t contenders,
                                    const std::function<double(std::size_t, int)>& sample) {
  const double budget = effort.seconds * static_cast<double>(contenders);
  const Stopwatch watch;
  const auto more = [&](int turn) {
    return turn < effort.most_samples && (turn < kLeastSamples || watch.seconds() < budget);
  };
  std::vector<Statistics> statistics;
  for (auto& all : in_turns(contenders, more, sample)) statistics.push_back(statistics_of(std::move(all)));
  return statistics;
}

/// As many calls as take kLeastSeconds. The first also warm up code, data and pages.
TimedCalls timed_calls(Device& device, Stream& stream, const Run& run) {
  constexpr int kMostCalls = 1000;
  for (int calls = 1;; calls = std::min(4 * calls, kMostCalls)) {
    TimedCalls timed(device, stream, run, calls);
    if (timed.seconds(call_deadline()) * calls >= kLeastSeconds || calls == kMostCalls) return timed;
  }
}

/// A candidate while it is timed.
struct Contender {
  Run run;
  Measured* result = nullptr;
};

/// Values for repetitions, and what the reference makes of some.
class FreshValues {
 public:
  FreshValues(const KernelCase& c, const OutputValues& of_first, Stream& stream)
      : c_(c), of_first_(of_first), stream_(stream) {
    if (!c.may_move) return;
    of_unseen_ = reference_values(c, stream, kUnseen);
  }

  /// Before a repetition: values that none before it had, so that a result that was remembered is of no use.
  void restore() { reset(c_, stream_, Reset::all, ++moved_); }
  /// After the last repetition: notes whether `again`, the recorded calls, still leaves what the reference does.
  void check(Measured& result, const std::function<void()>& again) const {
    if (result.kind == Measured::Kind::plain_loop) return;
    check(result, again, of_first_, 0);
    if (c_.may_move) check(result, again, of_unseen_, kUnseen);
  }

 private:
  /// More than there are repetitions; a prime, so that few arrays have as many elements, or a multiple.
  static constexpr std::size_t kUnseen = 1'000'003;

  void check(Measured& result, const std::function<void()>& again, const OutputValues& expected,
             std::size_t moved) const {
    reset(c_, stream_, Reset::all, moved);
    again();
    Comparison found = compare(c_, author_of(result.kind), expected, stream_);
    if (!found.first_wrong || !result.right()) return;
    found.first_wrong->why = WrongElement::Why::timed;
    result.first_wrong = std::move(found.first_wrong);
    result.error = std::numeric_limits<double>::infinity();
  }

  const KernelCase& c_;
  const OutputValues& of_first_;
  OutputValues of_unseen_;
  Stream& stream_;
  std::size_t moved_ = 0;
};

void time_hot(const std::vector<Contender>& contenders, const KernelCase& c, FreshValues& fresh, Device& device,
              Stream& stream, const Effort& effort) {
  std::vector<TimedCalls> timed;
  for (const Contender& each : contenders) timed.push_back(timed_calls(device, stream, each.run));
  const auto hot = in_turns_by(effort, contenders.size(), [&](std::size_t i, int) {
    fresh.restore();
    return timed[i].seconds(call_deadline());
  });
  // Only then calls that follow each other leave what one leaves.
  const bool is_idempotent = std::ranges::all_of(c.outputs, &KernelCase::Output::is_overwritten);
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    contenders[i].result->hot = hot[i];
    if (is_idempotent) fresh.check(*contenders[i].result, [&] { timed[i].seconds(call_deadline()); });
  }
}

void time_flushed(const std::vector<Contender>& contenders, const KernelCase& c, FreshValues& fresh, Device& device,
                  Stream& stream, Machine& machine, const Effort& effort) {
  std::vector<TimedCalls> timed;
  for (const Contender& each : contenders) timed.emplace_back(device, stream, each.run, 1);
  const auto call = [&](std::size_t i) {
    return timed[i].seconds_after([&] { machine.flush(c, stream); }, call_deadline());
  };
  const auto flushed = in_turns_by(effort, contenders.size(), [&](std::size_t i, int) {
    fresh.restore();
    return call(i);
  });
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    contenders[i].result->flushed = flushed[i];
    fresh.check(*contenders[i].result, [&] { call(i); });
  }
}

}  // namespace

std::vector<Measured> measure(const KernelCase& c, Device& device, Stream& stream, Machine& machine,
                              const Effort& effort, const std::string& variant) {
  const auto chosen = chosen_variants(c, variant);
  if (chosen.empty()) return {};
  const CaseCheck checked(c, stream, Comparisons::all);
  std::vector<Measured> results;
  results.reserve(chosen.size() + c.peers.size() + 1);  // contenders point into it
  std::vector<Contender> contenders;
  const auto take = [&](const KernelCase::Candidate& candidate, Measured result) {
    results.push_back(std::move(result));
    if (!results.back().right() || results.back().kind == Measured::Kind::emulated) return;
    contenders.push_back({[&candidate, &stream] { candidate.run(stream); }, &results.back()});
  };
  for (const auto& [candidate, kind] : chosen) take(*candidate, checked.variant(*candidate, kind));
  for (const KernelCase::Candidate& peer : c.peers) take(peer, checked.peer(peer, device));
  if (c.plain_loop) {
    results.push_back({.name = kPlainLoop, .kind = Measured::Kind::plain_loop});
    contenders.push_back({c.plain_loop, &results.back()});
  }
  if (contenders.empty()) return results;
  FreshValues fresh(c, checked.expected(), stream);
  time_hot(contenders, c, fresh, device, stream, effort);
  time_flushed(contenders, c, fresh, device, stream, machine, effort);
  return results;
}

}  // namespace gradring::kernels::bench
