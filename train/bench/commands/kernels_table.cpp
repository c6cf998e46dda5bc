// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/kernels_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/simulated_gpu/counters/counters_table.h"
#include "train/bench/commands/options.h"
#include "train/bench/counted_launches.h"
#include "train/options/exit_code.h"
#include "train/options/print_text.h"

namespace gradring::train {
namespace {

namespace kb = kernels::bench;
using simulated_gpu::CountedWork;
using simulated_gpu::LaunchCounts;

constexpr double kPerGiga = 1e-9;
constexpr double kMostError = 1e300;  // JSON has no infinity

/// In the order of kb::Measured::Kind.
constexpr std::string_view kKinds[] = {"variant", "emulated", "peer", "plain_loop"};

std::string_view name_of(kb::Measured::Kind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

kb::Work work_of(const kb::KernelCase& c) {
  kb::Work work{.footprint_bytes = 0,
                .traffic_bytes = c.bytes,
                .unread_bytes = c.unread_bytes,
                .flops = c.flops,
                .factors = c.factors};
  for (const auto& array : c.arrays) work.footprint_bytes += static_cast<double>(array->bytes());
  return work;
}

/// The library's result if it is correct, else the plain loop's; null without both.
const kb::Measured* yardstick_of(const std::vector<kb::Measured>& results) {
  for (const auto kind : {kb::Measured::Kind::peer, kb::Measured::Kind::plain_loop})
    for (const kb::Measured& result : results)
      if (result.kind == kind && result.right()) return &result;
  return nullptr;
}

/// Asks a simulated GPU which thread and instruction wrote a wrong element: the same launches run again, in the same
/// order of warps and blocks, and the element is watched.
class WriterProbe final : public kb::ResultProbe {
 public:
  explicit WriterProbe(const simulated_gpu::SimulatedGpu& gpus) : gpus_(gpus) {}

  void before_run(const kb::WrongElement* element) override {
    if (element == nullptr) {
      first_launch_ = gpus_.launches();
      return;
    }
    gpus_.repeat_from(first_launch_);
    gpus_.watch(element->data, element->bytes);
  }

  /// "written once, by thread (3, 0, 0) of block (1, 0, 0)", kernel, line and instruction; or "nobody wrote it".
  std::string after_run() override {
    const simulated_gpu::WatchedWrites writes = gpus_.watched();
    gpus_.watch(nullptr, 0);
    if (writes.count == 0) return "nobody wrote it";
    return writes.count == 1 ? "written once, by " + writes.last
                             : fmt::format("written {} times, last by {}", writes.count, writes.last);
  }

 private:
  const simulated_gpu::SimulatedGpu& gpus_;
  std::uint64_t first_launch_ = 0;
};

std::vector<LaunchCounts> launches_of(std::vector<CountedWork> work) {
  std::vector<LaunchCounts> launches;
  for (CountedWork& each : work)
    if (each.launch) launches.push_back(std::move(*each.launch));
  return launches;
}

void print_launches(std::span<const LaunchCounts> launches) {
  std::vector<const LaunchCounts*> all;
  print_text("{}\n", simulated_gpu::counters_header());
  for (const LaunchCounts& launch : launches) {
    print_text("{}\n    {}\n", simulated_gpu::counters_row(launch), simulated_gpu::instruction_mix(launch));
    all.push_back(&launch);
  }
  print_text("{}", simulated_gpu::costly_lines(simulated_gpu::merged_lines(all)));
}

/// "dx[37] is 0.25, expected 0.5; 5 of its 1024 elements are wrong", who wrote it, and in which trial.
std::string described(const kb::WrongElement& element) {
  std::string where;
  if (element.trial != kb::Trial::none)
    where = fmt::format("[{}]{} in memory of more: ", element.shape,
                        element.trial == kb::Trial::non_finite ? " with NaN and infinities," : "");
  const std::string name = fmt::format("   {}{}[{}]", where, element.output, element.index);
  switch (element.why) {
    case kb::WrongElement::Why::behind:
      return fmt::format("{} is behind its {} elements and is written: a byte is {}, and was {}", name,
                         element.elements, element.value, element.expected);
    case kb::WrongElement::Why::repetition:
      return fmt::format("{} is {}, and was {} when the same call ran before", name, element.value, element.expected);
    case kb::WrongElement::Why::timed:
      return fmt::format("{} is {} after the timed calls, expected {}: it was right when it was checked before", name,
                         element.value, element.expected);
    case kb::WrongElement::Why::value: break;
  }
  return fmt::format("{} is {}, expected {}; {} of its {} elements are wrong{}{}", name, element.value,
                     element.expected, element.wrong_elements, element.elements, element.writer.empty() ? "" : "\n   ",
                     element.writer);
}

}  // namespace

void KernelsTable::add_case(const kb::KernelCase& c, const nlohmann::json& variants) {
  flush_standard_output();
  cases.push_back({{"name", c.name}, {"shape", c.shape}, {"dtype", name_of(c.dtype)}, {"variants", variants}});
}

void KernelsTable::add_measurement(const kb::KernelCase& c, const std::string& variant, bench::MeasurementKey more,
                                   bench::BenchMeasurement measured) {
  measured.key = bench::joined(
      {{"case", c.name}, {"shape", c.shape}, {"dtype", std::string(name_of(c.dtype))}, {"variant", variant}}, more);
  run_.add(std::move(measured));
}

TimedKernels::TimedKernels(kb::Machine& machine, bench::CountedBounds bounds, bench::BenchRun& run)
    : KernelsTable(run), limits(machine.limits()), machine_(machine), bounds_(std::move(bounds)) {
  print_text("{}\n\n", limits);
  print_text("{:<24} {:<14} {:>6} {:>9} {:>9} {:>7} {:>7} {:>8} {:>6} {:>7}   {:>9} {:>9} {:>7} {:>6} {:>7}\n", "", "",
             "error", "hot us", "p95", "noise", "GB/s", "GFLOP/s", "roof", "x peer", "flushed", "p95", "noise", "roof",
             "x peer");
}

void TimedKernels::add(const kb::KernelCase& c, const std::vector<kb::Measured>& results) {
  print_text("{} [{}] {}\n", c.name, c.shape, name_of(c.dtype));
  const kb::Measured* beside = yardstick_of(results);
  nlohmann::json variants = nlohmann::json::array();
  for (const kb::Measured& result : results) {
    nlohmann::json json = result.right() ? row(c, result, beside) : wrong_row(result);
    json.update({{"name", result.name}, {"kind", name_of(result.kind)}, {"right", result.right()}});
    variants.push_back(std::move(json));
  }
  add_case(c, variants);
  cases.back().update({{"bytes", c.bytes}, {"flops", c.flops}});
}

nlohmann::json TimedKernels::wrong_row(const kb::Measured& result) {
  if (!result.failure.empty()) {
    print_text("  {:<36} FAILED: {}\n", result.name, result.failure);
    return {{"failure", result.failure}};
  }
  if (result.kind != kb::Measured::Kind::peer) ++wrong;
  print_text("  {:<36} WRONG: an error of {:.3g} times what is allowed\n", result.name, result.error);
  if (result.first_wrong) print_text("{}\n", described(*result.first_wrong));
  return {{"error", std::min(result.error, kMostError)}};
}

nlohmann::json TimedKernels::row(const kb::KernelCase& c, const kb::Measured& result, const kb::Measured* beside) {
  if (result.kind == kb::Measured::Kind::emulated) {
    print_text("  {:<36} {:>6.2f} not timed: made for GPUs, emulated on a CPU\n", result.name, result.error);
    return {{"error", result.error}};
  }
  if (const std::string why = bounds_.contradiction(c, result); !why.empty()) {
    ++wrong;
    print_text("  {:<36} IMPOSSIBLE: {}\n", result.name, why);
    return {{"error", result.error}, {"impossible", why}};
  }
  const double hot = result.hot.median;
  const double flushed = result.flushed.median;
  const double hot_roof = machine_.least_seconds(work_of(c), false) / hot;
  const double flushed_roof = machine_.least_seconds(work_of(c), true) / flushed;
  const auto times = [beside](double seconds, const kb::Statistics kb::Measured::*way) {
    return beside ? fmt::format("{:.2f}", seconds / (beside->*way).median) : std::string();
  };
  print_text(
      "  {:<36} {:>6.2f} {:>9.1f} {:>9.1f} {:>7} {:>7.1f} {:>8} {:>4.0f} % {:>7}   {:>9.1f} {:>9.1f} {:>7} {:>4.0f} % "
      "{:>7}\n",
      result.name, result.error, hot * kMicroseconds, result.hot.p95 * kMicroseconds, noise_text(result.hot),
      c.bytes / hot * kPerGiga, c.flops > 0 ? fmt::format("{:.1f}", c.flops / hot * kPerGiga) : "", 100 * hot_roof,
      times(hot, &kb::Measured::hot), flushed * kMicroseconds, result.flushed.p95 * kMicroseconds,
      noise_text(result.flushed), 100 * flushed_roof, times(flushed, &kb::Measured::flushed));
  for (const kernels::LaunchReport& launch : result.launches)
    if (launch.resources) print_text("      {}\n", to_string(launch));
  for (const auto& [cache, seconds] : {std::pair("hot", &result.hot), std::pair("flushed", &result.flushed)})
    add_measurement(c, result.name, {{"cache", cache}}, in_microseconds({}, *seconds));
  nlohmann::json json = {{"error", result.error},
                         {"hot_microseconds", to_json(result.hot, kMicroseconds)},
                         {"hot_share_of_roof", hot_roof},
                         {"flushed_microseconds", to_json(result.flushed, kMicroseconds)},
                         {"flushed_share_of_roof", flushed_roof}};
  if (beside) json[fmt::format("times_{}", name_of(beside->kind))] = hot / beside->hot.median;
  for (const kernels::LaunchReport& launch : result.launches) json["launches"].push_back(to_json(launch));
  return json;
}

void SimulatedKernels::check(const kb::KernelCase& c, kernels::Stream& stream, const std::string& variant) {
  WriterProbe probe(gpus_);
  if (counts_) gpus_.begin_counting(annotation_.is_wanted());
  const std::vector<kb::Measured> results = kb::check(c, stream, variant, counts_ ? nullptr : &probe,
                                                      counts_ ? kb::Comparisons::reference : kb::Comparisons::all);
  const std::vector<LaunchCounts> launches = counts_ ? launches_of(gpus_.end_counting()) : std::vector<LaunchCounts>();
  std::size_t reported = 0;
  for (const kb::Measured& result : results) reported += result.launches.size();
  if (counts_ && reported != launches.size())
    throw Error(fmt::format("{} has {} launches, of which {} were counted", c.name, reported, launches.size()));
  nlohmann::json variants = nlohmann::json::array();
  std::span<const LaunchCounts> rest = launches;
  for (const kb::Measured& result : results) {
    const std::size_t own = counts_ ? result.launches.size() : 0;
    variants.push_back(row(c, result, rest.first(own)));
    rest = rest.subspan(own);
  }
  if (!results.empty()) add_case(c, variants);
}

void SimulatedKernels::write_annotated_source() const {
  if (annotation_.is_wanted()) annotated_.write();
}

nlohmann::json SimulatedKernels::row(const kb::KernelCase& c, const kb::Measured& result,
                                     std::span<const LaunchCounts> launches) {
  ++count;
  wrong += result.right() ? 0 : 1;
  print_text("{} [{}] {} {}: {}an error of {:.3g} times what is allowed\n", c.name, c.shape, name_of(c.dtype),
             result.name, result.right() ? "" : "WRONG, ", result.error);
  if (result.first_wrong) print_text("{}\n", described(*result.first_wrong));
  nlohmann::json json = {{"name", result.name},
                         {"kind", "variant"},
                         {"error", std::min(result.error, kMostError)},
                         {"right", result.right()}};
  if (launches.empty()) return json;
  print_launches(launches);
  std::vector<const LaunchCounts*> all;
  for (const LaunchCounts& launch : launches) {
    json["counters"].push_back(to_json(launch));
    annotated_.add(launch);
    all.push_back(&launch);
  }
  for (const bench::BenchMeasurement& measured : bench::counter_measurements({{"device", device_}}, all))
    add_measurement(c, result.name, measured.key, measured);
  return json;
}

}  // namespace gradring::train
