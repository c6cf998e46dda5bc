// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/check_case.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/runtime/timed_calls.h"

namespace gradring::kernels::bench {
namespace {

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
std::optional<WrongElement> first_difference(const KernelCase& c, const OutputBytes& before, const OutputValues& values,
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

/// Runs a candidate on the first values, with its launches recorded; if it is wrong, once more for the probe.
Measured compared(const Task& task, const KernelCase::Candidate& candidate, Measured::Kind kind, Stream& stream,
                  ResultProbe* probe, Comparisons comparisons) {
  const KernelCase& c = task.c;
  const auto run = [&](const WrongElement* element) {
    if (task.memory != nullptr) reset(*task.memory, stream);
    reset(c, stream);
    if (probe != nullptr) probe->before_run(element);
    candidate.run(stream);
    stream.synchronize(call_deadline());
    return compare(c, author_of(kind), task.expected, stream);
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
    const OutputValues values = device_values(c, stream);
    reset(c, stream, Reset::all_but_workspaces);
    candidate.run(stream);
    stream.synchronize(call_deadline());
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

}  // namespace

CaseCheck::CaseCheck(const KernelCase& c, Stream& stream, Comparisons comparisons)
    : stream_(stream), comparisons_(comparisons) {
  tasks_.push_back({c, nullptr, reference_values(c, stream)});
  if (comparisons == Comparisons::all)
    for (const KernelCase& trial : c.trials) tasks_.push_back({trial, &c, reference_values(trial, stream)});
}

Measured CaseCheck::variant(const KernelCase::Candidate& candidate, Measured::Kind kind, ResultProbe* probe) const {
  Measured result = compared(tasks_.front(), candidate, kind, stream_, probe, comparisons_);
  for (std::size_t t = 1; t < tasks_.size() && result.right(); ++t) {
    const KernelCase& trial = tasks_[t].c;
    const KernelCase::Candidate* const own = candidate_of(trial, kind, candidate.name);
    if (own == nullptr) continue;
    Measured found = compared(tasks_[t], *own, kind, stream_, probe, comparisons_);
    result.error = std::max(result.error, found.error);
    result.first_wrong = std::move(found.first_wrong);
    if (!result.first_wrong) continue;
    result.first_wrong->trial = trial.trial;
    result.first_wrong->shape = trial.shape;
  }
  return result;
}

Measured CaseCheck::peer(const KernelCase::Candidate& peer, Device& device) const {
  try {
    Measured result = compared(tasks_.front(), peer, Measured::Kind::peer, stream_, nullptr, Comparisons::reference);
    if (result.right())
      TimedCalls(
          device, stream_, [&] { peer.run(stream_); }, 1);
    return result;
  } catch (const DeviceError& error) {
    stream_.synchronize(call_deadline());  // throws if it is the device that failed
    return {.name = peer.name, .kind = Measured::Kind::peer, .failure = error.what()};
  }
}

std::vector<Chosen> chosen_variants(const KernelCase& c, const std::string& name) {
  std::vector<Chosen> chosen;
  const auto add = [&](const std::vector<KernelCase::Candidate>& candidates, Measured::Kind kind) {
    for (const KernelCase::Candidate& candidate : candidates)
      if (name.empty() || candidate.name == name) chosen.push_back({&candidate, kind});
  };
  add(c.variants, Measured::Kind::variant);
  add(c.emulated, Measured::Kind::emulated);
  return chosen;
}

std::vector<Measured> check(const KernelCase& c, Stream& stream, const std::string& variant, ResultProbe* probe,
                            Comparisons comparisons) {
  const auto chosen = chosen_variants(c, variant);
  if (chosen.empty()) return {};
  const CaseCheck checked(c, stream, comparisons);
  std::vector<Measured> results;
  for (const auto& [candidate, kind] : chosen) results.push_back(checked.variant(*candidate, kind, probe));
  return results;
}

}  // namespace gradring::kernels::bench
