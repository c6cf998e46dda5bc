// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/measure_case.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/bench/statistics.h"
#include "kernels/runtime/timed_calls.h"

namespace gradring::kernels::bench {
namespace {

constexpr auto kMeasureTimeout = std::chrono::minutes(10);
/// A call shorter than this is repeated, so that reading the clock costs nothing, and launching is done meanwhile.
constexpr double kLeastSeconds = 50e-6;
constexpr int kLeastSamples = 5;

/// What a timed call enqueues.
using Run = std::function<void()>;

Deadline deadline() { return Deadline::after(kMeasureTimeout); }

/// The values before a call.
enum class Reset : std::uint8_t { all, all_but_workspaces };

void reset(const KernelCase& c, Stream& stream, Reset what = Reset::all, std::size_t moved = 0) {
  for (const auto& array : c.arrays)
    if (what == Reset::all || !array->is_workspace) array->reset(stream, c.may_move ? moved : 0);
}

/// Relative to the allowed error. Sums of infinities may end as NaN or not, by their order.
double error_of(double actual, double expected, const KernelCase::Output& output, Trial trial) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return 0;
  const bool may_be_non_finite = !std::isfinite(expected) ? output.bound(0) > 0 : output.spreads;
  if (trial == Trial::non_finite && may_be_non_finite && !std::isfinite(actual)) return 0;
  const double error = std::fabs(actual - expected) / output.bound(expected);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

using Expected = std::vector<std::vector<double>>;

/// What the device's outputs are in comparison with the expected ones.
struct Comparison {
  double largest_error = 0;
  std::optional<WrongElement> first_wrong{};
};

Comparison compare(const KernelCase& c, Measured::Kind kind, const Expected& expected, Stream& stream) {
  Comparison found;
  for (std::size_t o = 0; o < c.outputs.size(); ++o) {
    if (kind == Measured::Kind::peer && !c.outputs[o].is_of_peers) continue;
    const std::vector<double> actual = c.outputs[o].array->values(Side::device, stream);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double error = error_of(actual[i], expected[o][i], c.outputs[o], c.trial);
      found.largest_error = std::max(found.largest_error, error);
      if (error <= 1) continue;
      if (!found.first_wrong) {
        const std::size_t bytes = c.outputs[o].array->element_bytes();
        found.first_wrong = {.output = c.outputs[o].name,
                             .index = i,
                             .value = actual[i],
                             .expected = expected[o][i],
                             .elements = actual.size(),
                             .data = c.outputs[o].array->as<std::byte>(Side::device) + i * bytes,
                             .bytes = bytes};
      }
      if (found.first_wrong->output == c.outputs[o].name) ++found.first_wrong->wrong_elements;
    }
  }
  return found;
}

using OutputBytes = std::vector<std::vector<std::byte>>;

OutputBytes outputs_of(const KernelCase& c, Stream& stream) {
  OutputBytes all;
  for (const KernelCase::Output& output : c.outputs) all.push_back(output.array->device_bytes(stream));
  return all;
}

OutputBytes bytes_behind(const KernelCase& c, Stream& stream) {
  OutputBytes all;
  for (const KernelCase::Output& output : c.outputs) all.push_back(output.array->bytes_behind(stream));
  return all;
}

double number(std::byte byte) { return std::to_integer<int>(byte); }

/// Where the results of two equal calls differ.
std::optional<WrongElement> first_difference(const KernelCase& c, const OutputBytes& before, const Expected& values,
                                             Stream& stream) {
  for (std::size_t o = 0; o < c.outputs.size(); ++o) {
    const BenchArray& array = *c.outputs[o].array;
    const std::vector<std::byte> now = array.device_bytes(stream);
    const auto at = std::ranges::mismatch(before[o], now).in2;
    if (at == now.end()) continue;
    const std::size_t index = static_cast<std::size_t>(at - now.begin()) / array.element_bytes();
    return WrongElement{.output = c.outputs[o].name,
                        .index = index,
                        .value = array.values(Side::device, stream)[index],
                        .expected = values[o][index],
                        .wrong_elements = 1,
                        .elements = array.elements(),
                        .why = WrongElement::Why::repetition};
  }
  return std::nullopt;
}

/// Where a call wrote behind its outputs.
std::optional<WrongElement> first_behind(const KernelCase& c, const OutputBytes& before, Stream& stream) {
  const OutputBytes now = bytes_behind(c, stream);
  for (std::size_t o = 0; o < c.outputs.size(); ++o) {
    const auto [was, is] = std::ranges::mismatch(before[o], now[o]);
    if (is == now[o].end()) continue;
    const BenchArray& array = *c.outputs[o].array;
    return WrongElement{
        .output = c.outputs[o].name,
        .index = array.elements() + static_cast<std::size_t>(is - now[o].begin()) / array.element_bytes(),
        .value = number(*is),
        .expected = number(*was),
        .wrong_elements = 1,
        .elements = array.elements(),
        .why = WrongElement::Why::behind};
  }
  return std::nullopt;
}

Expected device_values(const KernelCase& c, Stream& stream) {
  Expected values;
  for (const KernelCase::Output& output : c.outputs) values.push_back(output.array->values(Side::device, stream));
  return values;
}

/// A case, or a trial of one, with what its reference computes.
struct Task {
  const KernelCase& c;
  const KernelCase* memory = nullptr;  ///< of a trial: the case whose memory it shares
  Expected expected;
};

/// Runs a candidate on the first values, with its launches recorded; if it is wrong, once more for the probe.
Measured compared(const Task& task, const KernelCase::Candidate& candidate, Measured::Kind kind, Stream& stream,
                  ResultProbe* probe, Comparisons comparisons) {
  const KernelCase& c = task.c;
  const auto run = [&](const WrongElement* element) {
    if (task.memory != nullptr) reset(*task.memory, stream);
    reset(c, stream);
    if (probe != nullptr) probe->before_run(element);
    candidate.run(stream);
    stream.synchronize(deadline());
    return compare(c, kind, task.expected, stream);
  };
  const OutputBytes behind = task.memory == nullptr ? OutputBytes(c.outputs.size()) : [&] {
    reset(*task.memory, stream);
    return bytes_behind(c, stream);
  }();
  const LaunchLog log(stream);
  Comparison found = run(nullptr);
  Measured result{.name = candidate.name, .kind = kind, .error = found.largest_error, .launches = log.launches()};
  if (probe != nullptr && found.first_wrong) {
    const Comparison again = run(&*found.first_wrong);
    const bool is_same = again.first_wrong && again.first_wrong->data == found.first_wrong->data;
    found.first_wrong->writer = probe->after_run() + (is_same ? "" : "; the same run again gave another result");
  }
  result.first_wrong = std::move(found.first_wrong);
  if (comparisons == Comparisons::reference || result.first_wrong) return result;
  if (task.memory != nullptr) result.first_wrong = first_behind(c, behind, stream);
  if (!result.first_wrong) {
    const OutputBytes before = outputs_of(c, stream);
    const Expected values = device_values(c, stream);
    reset(c, stream, Reset::all_but_workspaces);
    candidate.run(stream);
    stream.synchronize(deadline());
    result.first_wrong = first_difference(c, before, values, stream);
  }
  if (result.first_wrong) result.error = std::numeric_limits<double>::infinity();
  return result;
}

/// The candidate of that name, or null.
const KernelCase::Candidate* candidate_of(const KernelCase& c, Measured::Kind kind, const std::string& name) {
  const auto& candidates = kind == Measured::Kind::emulated ? c.emulated : c.variants;
  const auto found = std::ranges::find(candidates, name, &KernelCase::Candidate::name);
  return found == candidates.end() ? nullptr : &*found;
}

/// A candidate of ours in the case, and then, while it is right, in each of its trials.
Measured checked(const std::vector<Task>& tasks, const KernelCase::Candidate& candidate, Measured::Kind kind,
                 Stream& stream, ResultProbe* probe, Comparisons comparisons) {
  Measured result = compared(tasks.front(), candidate, kind, stream, probe, comparisons);
  for (std::size_t t = 1; t < tasks.size() && result.right(); ++t) {
    const KernelCase& trial = tasks[t].c;
    const KernelCase::Candidate* const own = candidate_of(trial, kind, candidate.name);
    if (own == nullptr) continue;
    Measured found = compared(tasks[t], *own, kind, stream, probe, comparisons);
    result.error = std::max(result.error, found.error);
    result.first_wrong = std::move(found.first_wrong);
    if (!result.first_wrong) continue;
    result.first_wrong->trial = trial.trial;
    result.first_wrong->shape = trial.shape;
  }
  return result;
}

/// The same for a library's call, which may fail, or not be recordable, as timing it requires.
Measured checked_peer(const Task& task, const KernelCase::Candidate& peer, Device& device, Stream& stream) {
  try {
    Measured result = compared(task, peer, Measured::Kind::peer, stream, nullptr, Comparisons::reference);
    if (result.right())
      TimedCalls(
          device, stream, [&] { peer.run(stream); }, 1);
    return result;
  } catch (const DeviceError& error) {
    stream.synchronize(deadline());  // throws if it is the device that failed
    return {.name = peer.name, .kind = Measured::Kind::peer, .failure = error.what()};
  }
}

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
    if (timed.seconds(deadline()) * calls >= kLeastSeconds || calls == kMostCalls) return timed;
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
  FreshValues(const KernelCase& c, const Expected& of_first, Stream& stream)
      : c_(c), of_first_(of_first), stream_(stream) {
    if (!c.may_move) return;
    reset(c, stream, Reset::all, kUnseen);
    c.reference();
    for (const auto& output : c.outputs) of_unseen_.push_back(output.array->values(Side::host, stream));
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

  void check(Measured& result, const std::function<void()>& again, const Expected& expected, std::size_t moved) const {
    reset(c_, stream_, Reset::all, moved);
    again();
    Comparison found = compare(c_, result.kind, expected, stream_);
    if (!found.first_wrong || !result.right()) return;
    found.first_wrong->why = WrongElement::Why::timed;
    result.first_wrong = std::move(found.first_wrong);
    result.error = std::numeric_limits<double>::infinity();
  }

  const KernelCase& c_;
  const Expected& of_first_;
  Expected of_unseen_;
  Stream& stream_;
  std::size_t moved_ = 0;
};

void time_hot(const std::vector<Contender>& contenders, const KernelCase& c, FreshValues& fresh, Device& device,
              Stream& stream, const Effort& effort) {
  std::vector<TimedCalls> timed;
  for (const Contender& each : contenders) timed.push_back(timed_calls(device, stream, each.run));
  const auto hot = in_turns_by(effort, contenders.size(), [&](std::size_t i, int) {
    fresh.restore();
    return timed[i].seconds(deadline());
  });
  // Only then calls that follow each other leave what one leaves.
  const bool is_idempotent = std::ranges::all_of(c.outputs, &KernelCase::Output::is_overwritten);
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    contenders[i].result->hot = hot[i];
    if (is_idempotent) fresh.check(*contenders[i].result, [&] { timed[i].seconds(deadline()); });
  }
}

void time_flushed(const std::vector<Contender>& contenders, const KernelCase& c, FreshValues& fresh, Device& device,
                  Stream& stream, Machine& machine, const Effort& effort) {
  std::vector<TimedCalls> timed;
  for (const Contender& each : contenders) timed.emplace_back(device, stream, each.run, 1);
  const auto call = [&](std::size_t i) {
    return timed[i].seconds_after([&] { machine.flush(c, stream); }, deadline());
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

struct Chosen {
  const KernelCase::Candidate* candidate;
  Measured::Kind kind;
};

/// The variants to run: all if `name` is empty.
std::vector<Chosen> wanted(const KernelCase& c, const std::string& name) {
  std::vector<Chosen> chosen;
  const auto add = [&](const std::vector<KernelCase::Candidate>& candidates, Measured::Kind kind) {
    for (const KernelCase::Candidate& candidate : candidates)
      if (name.empty() || candidate.name == name) chosen.push_back({&candidate, kind});
  };
  add(c.variants, Measured::Kind::variant);
  add(c.emulated, Measured::Kind::emulated);
  return chosen;
}

Expected reference_of(const KernelCase& c, Stream& stream) {
  reset(c, stream);
  c.reference();
  Expected expected;
  for (const auto& output : c.outputs) expected.push_back(output.array->values(Side::host, stream));
  return expected;
}

/// The case, and its trials.
std::vector<Task> tasks_of(const KernelCase& c, Stream& stream, Comparisons comparisons) {
  std::vector<Task> tasks;
  tasks.push_back({c, nullptr, reference_of(c, stream)});
  if (comparisons == Comparisons::all)
    for (const KernelCase& trial : c.trials) tasks.push_back({trial, &c, reference_of(trial, stream)});
  return tasks;
}

}  // namespace

std::vector<Measured> check(const KernelCase& c, Stream& stream, const std::string& variant, ResultProbe* probe,
                            Comparisons comparisons) {
  const auto chosen = wanted(c, variant);
  if (chosen.empty()) return {};
  const std::vector<Task> tasks = tasks_of(c, stream, comparisons);
  std::vector<Measured> results;
  for (const auto& [candidate, kind] : chosen)
    results.push_back(checked(tasks, *candidate, kind, stream, probe, comparisons));
  return results;
}

std::vector<Measured> measure(const KernelCase& c, Device& device, Stream& stream, Machine& machine,
                              const Effort& effort, const std::string& variant) {
  const auto chosen = wanted(c, variant);
  if (chosen.empty()) return {};
  const std::vector<Task> tasks = tasks_of(c, stream, Comparisons::all);
  std::vector<Measured> results;
  results.reserve(chosen.size() + c.peers.size() + 1);  // contenders point into it
  std::vector<Contender> contenders;
  const auto take = [&](const KernelCase::Candidate& candidate, Measured result) {
    results.push_back(std::move(result));
    if (!results.back().right() || results.back().kind == Measured::Kind::emulated) return;
    contenders.push_back({[&candidate, &stream] { candidate.run(stream); }, &results.back()});
  };
  for (const auto& [candidate, kind] : chosen)
    take(*candidate, checked(tasks, *candidate, kind, stream, nullptr, Comparisons::all));
  for (const KernelCase::Candidate& peer : c.peers) take(peer, checked_peer(tasks.front(), peer, device, stream));
  if (c.plain_loop) {
    results.push_back({.name = kPlainLoop, .kind = Measured::Kind::plain_loop});
    contenders.push_back({c.plain_loop, &results.back()});
  }
  if (contenders.empty()) return results;
  FreshValues fresh(c, tasks.front().expected, stream);
  time_hot(contenders, c, fresh, device, stream, effort);
  time_flushed(contenders, c, fresh, device, stream, machine, effort);
  return results;
}

}  // namespace gradring::kernels::bench
