// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/simulated_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "train/bench/commands/options.h"
#include "train/bench/counters_table.h"
#include "train/options/exit_code.h"
#include "train/options/print_text.h"

namespace gradring::train {
namespace {

namespace kb = kernels::bench;
using simulated_gpu::CountedWork;
using simulated_gpu::LaunchCounts;

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
  print_text("{}\n", bench::counters_header());
  for (const LaunchCounts& launch : launches) {
    print_text("{}\n    {}\n", bench::counters_row(launch), bench::instruction_mix(launch));
    all.push_back(&launch);
  }
  print_text("{}", bench::costly_lines(bench::merged_lines(all)));
}

/// "dx[37] is 0.25, expected 0.5; 5 of its 1024 elements are wrong", and who wrote it.
std::string described(const kb::WrongElement& element) {
  return fmt::format("   {}[{}] is {}, expected {}; {} of its {} elements are wrong\n   {}", element.output,
                     element.index, element.value, element.expected, element.wrong_elements, element.elements,
                     element.writer);
}

}  // namespace

void SimulatedKernels::check(const kb::KernelCase& c, kernels::Stream& stream, const std::string& variant) {
  WriterProbe probe(gpus_);
  if (counts_) gpus_.begin_counting();
  const std::vector<kb::Measured> results = kb::check(c, stream, variant, counts_ ? nullptr : &probe);
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
  flush_standard_output();
  if (!results.empty())
    cases_.push_back({{"name", c.name}, {"shape", c.shape}, {"dtype", name_of(c.dtype)}, {"variants", variants}});
}

nlohmann::json SimulatedKernels::row(const kb::KernelCase& c, const kb::Measured& result,
                                     std::span<const LaunchCounts> launches) {
  ++count_;
  wrong_ += result.right() ? 0 : 1;
  print_text("{} [{}] {} {}: {}an error of {:.3g} times what is allowed\n", c.name, c.shape, name_of(c.dtype),
             result.name, result.right() ? "" : "WRONG, ", result.error);
  if (result.first_wrong) print_text("{}\n", described(*result.first_wrong));
  nlohmann::json json = {
      {"name", result.name}, {"kind", "variant"}, {"error", std::min(1e300, result.error)}, {"right", result.right()}};
  if (launches.empty()) return json;
  print_launches(launches);
  for (const LaunchCounts& launch : launches) json["counters"].push_back(bench::to_json(launch));
  add_measurements(c, result.name, launches);
  return json;
}

void SimulatedKernels::add_measurements(const kb::KernelCase& c, const std::string& variant,
                                        std::span<const LaunchCounts> launches) {
  double instructions = 0, seconds = 0;
  for (const LaunchCounts& launch : launches) {
    instructions += static_cast<double>(launch.all_warp_instructions());
    seconds += launch.bound.seconds();
  }
  const auto key = [&](const char* counter) {
    return bench::MeasurementKey{{"case", c.name},     {"shape", c.shape},  {"dtype", std::string(name_of(c.dtype))},
                                 {"variant", variant}, {"device", device_}, {"counter", counter}};
  };
  run_.add({.key = key("warp instructions"), .unit = "instructions", .samples = {instructions}});
  run_.add({.key = key("bound of the time"), .unit = "us", .samples = {seconds * kMicroseconds}});
}

}  // namespace gradring::train
