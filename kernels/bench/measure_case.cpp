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

void reset(const KernelCase& c, Stream& stream) {
  for (const auto& array : c.arrays) array->reset(stream);
}

/// Relative to the allowed error.
double error_of(double actual, double expected, double allowed) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return 0;
  return std::fabs(actual - expected) / allowed;
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
      double error = error_of(actual[i], expected[o][i], c.outputs[o].bound(expected[o][i]));
      if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
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

/// One run of a candidate on the first values, with its launches recorded; if it is wrong, another one for the probe.
Measured checked(const KernelCase& c, const KernelCase::Candidate& candidate, Measured::Kind kind,
                 const Expected& expected, Stream& stream, ResultProbe* probe = nullptr) {
  const auto run = [&](const WrongElement* element) {
    reset(c, stream);
    if (probe != nullptr) probe->before_run(element);
    candidate.run(stream);
    stream.synchronize(deadline());
    return compare(c, kind, expected, stream);
  };
  const LaunchLog log(stream);
  Comparison found = run(nullptr);
  Measured result{.name = candidate.name, .kind = kind, .error = found.largest_error, .launches = log.launches()};
  if (probe != nullptr && found.first_wrong) {
    const Comparison again = run(&*found.first_wrong);
    const bool is_same = again.first_wrong && again.first_wrong->data == found.first_wrong->data;
    found.first_wrong->writer = probe->after_run() + (is_same ? "" : "; the same run again gave another result");
  }
  result.first_wrong = std::move(found.first_wrong);
  return result;
}

/// The same for a library's call, which may fail, or not be recordable, as timing it requires.
Measured checked_peer(const KernelCase& c, const KernelCase::Candidate& peer, const Expected& expected, Device& device,
                      Stream& stream) {
  try {
    Measured result = checked(c, peer, Measured::Kind::peer, expected, stream);
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
                                    const std::function<double(std::size_t)>& sample) {
  const double budget = effort.seconds * static_cast<double>(contenders);
  const Stopwatch watch;
  const auto more = [&](int turn) {
    return turn < effort.most_samples && (turn < kLeastSamples || watch.seconds() < budget);
  };
  std::vector<Statistics> statistics;
  for (auto& all : in_turns(contenders, more, [&](std::size_t i, int) { return sample(i); }))
    statistics.push_back(statistics_of(std::move(all)));
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

std::vector<Statistics> time_hot(const std::vector<Run>& runs, Device& device, Stream& stream, const Effort& effort) {
  std::vector<TimedCalls> timed;
  for (const Run& run : runs) timed.push_back(timed_calls(device, stream, run));
  return in_turns_by(effort, runs.size(), [&](std::size_t i) { return timed[i].seconds(deadline()); });
}

std::vector<Statistics> time_flushed(const KernelCase& c, const std::vector<Run>& runs, Device& device, Stream& stream,
                                     Machine& machine, const Effort& effort) {
  std::vector<TimedCalls> timed;
  for (const Run& run : runs) timed.emplace_back(device, stream, run, 1);
  return in_turns_by(effort, runs.size(), [&](std::size_t i) {
    return timed[i].seconds_after([&] { machine.flush(c, stream); }, deadline());
  });
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

}  // namespace

std::vector<Measured> check(const KernelCase& c, Stream& stream, const std::string& variant, ResultProbe* probe) {
  const auto chosen = wanted(c, variant);
  if (chosen.empty()) return {};
  const Expected expected = reference_of(c, stream);
  std::vector<Measured> results;
  for (const auto& [candidate, kind] : chosen) results.push_back(checked(c, *candidate, kind, expected, stream, probe));
  return results;
}

std::vector<Measured> measure(const KernelCase& c, Device& device, Stream& stream, Machine& machine,
                              const Effort& effort, const std::string& variant) {
  const auto chosen = wanted(c, variant);
  if (chosen.empty()) return {};
  const Expected expected = reference_of(c, stream);
  std::vector<Measured> results;
  std::vector<std::size_t> timed;  // indices into results
  std::vector<Run> runs;
  const auto take = [&](const KernelCase::Candidate& candidate, Measured result) {
    results.push_back(std::move(result));
    if (!results.back().right() || results.back().kind == Measured::Kind::emulated) return;
    timed.push_back(results.size() - 1);
    runs.emplace_back([&candidate, &stream] { candidate.run(stream); });
  };
  for (const auto& [candidate, kind] : chosen) take(*candidate, checked(c, *candidate, kind, expected, stream));
  for (const KernelCase::Candidate& peer : c.peers) take(peer, checked_peer(c, peer, expected, device, stream));
  if (c.plain_loop) {
    results.push_back({.name = kPlainLoop, .kind = Measured::Kind::plain_loop});
    timed.push_back(results.size() - 1);
    runs.push_back(c.plain_loop);
  }
  if (runs.empty()) return results;
  reset(c, stream);
  const std::vector<Statistics> hot = time_hot(runs, device, stream, effort);
  const std::vector<Statistics> flushed = time_flushed(c, runs, device, stream, machine, effort);
  for (std::size_t i = 0; i < timed.size(); ++i) {
    results[timed[i]].hot = hot[i];
    results[timed[i]].flushed = flushed[i];
  }
  return results;
}

}  // namespace gradring::kernels::bench
