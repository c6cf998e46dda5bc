// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/kernels_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "train/bench/commands/options.h"
#include "train/options/exit_code.h"
#include "train/options/print_text.h"

namespace gradring::train {
namespace {

namespace kb = kernels::bench;

constexpr double kPerGiga = 1e-9;

std::string_view name_of(kb::Measured::Kind kind) {
  switch (kind) {
    case kb::Measured::Kind::variant: return "variant";
    case kb::Measured::Kind::emulated: return "emulated";
    case kb::Measured::Kind::peer: return "peer";
    case kb::Measured::Kind::plain_loop: return "plain_loop";
  }
  return "";
}

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

/// Prints the GPU resources of each kernel of a call.
void print_launches(const std::vector<kernels::LaunchReport>& launches) {
  for (const kernels::LaunchReport& launch : launches)
    if (launch.resources) print_text("      {}\n", to_string(launch));
}

}  // namespace

void KernelsTable::begin() {
  limits_ = machine_.limits();
  print_text("{}\n\n", limits_);
  print_text("{:<24} {:<14} {:>6} {:>9} {:>9} {:>7} {:>7} {:>8} {:>6} {:>7}   {:>9} {:>9} {:>7} {:>6} {:>7}\n", "", "",
             "error", "hot us", "p95", "noise", "GB/s", "GFLOP/s", "roof", "x peer", "flushed", "p95", "noise", "roof",
             "x peer");
}

void KernelsTable::add(const kb::KernelCase& c, const std::vector<kb::Measured>& results) {
  print_text("{} [{}] {}\n", c.name, c.shape, name_of(c.dtype));
  const kb::Measured* beside = yardstick_of(results);
  nlohmann::json variants = nlohmann::json::array();
  for (const kb::Measured& result : results)
    variants.push_back(!result.right()                               ? wrong(result)
                       : result.kind == kb::Measured::Kind::emulated ? emulated(result)
                                                                     : row(c, result, beside));
  flush_standard_output();
  cases_.push_back({{"name", c.name},
                    {"shape", c.shape},
                    {"dtype", name_of(c.dtype)},
                    {"bytes", c.bytes},
                    {"flops", c.flops},
                    {"variants", variants}});
}

nlohmann::json KernelsTable::results() { return {{"limits", limits_}, {"cases", cases_}}; }

nlohmann::json KernelsTable::wrong(const kb::Measured& result) {
  if (!result.failure.empty()) {
    print_text("  {:<36} FAILED: {}\n", result.name, result.failure);
    return {{"name", result.name}, {"kind", name_of(result.kind)}, {"failure", result.failure}, {"right", false}};
  }
  if (result.kind != kb::Measured::Kind::peer) ++wrong_;
  print_text("  {:<36} WRONG: an error of {:.3g} times what is allowed\n", result.name, result.error);
  return {{"name", result.name},
          {"kind", name_of(result.kind)},
          {"error", std::min(result.error, 1e300)},
          {"right", false}};
}

nlohmann::json KernelsTable::emulated(const kb::Measured& result) {
  print_text("  {:<36} {:>6.2f} not timed: made for GPUs, emulated on a CPU\n", result.name, result.error);
  return {{"name", result.name}, {"kind", name_of(result.kind)}, {"error", result.error}, {"right", true}};
}

nlohmann::json KernelsTable::row(const kb::KernelCase& c, const kb::Measured& result, const kb::Measured* beside) {
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
  print_launches(result.launches);
  add_measurements(c, result);
  nlohmann::json json = {{"name", result.name},
                         {"kind", name_of(result.kind)},
                         {"error", result.error},
                         {"right", true},
                         {"hot_microseconds", to_json(result.hot, kMicroseconds)},
                         {"hot_share_of_roof", hot_roof},
                         {"flushed_microseconds", to_json(result.flushed, kMicroseconds)},
                         {"flushed_share_of_roof", flushed_roof}};
  if (beside) json[fmt::format("times_{}", name_of(beside->kind))] = hot / beside->hot.median;
  for (const kernels::LaunchReport& launch : result.launches) json["launches"].push_back(to_json(launch));
  return json;
}

void KernelsTable::add_measurements(const kb::KernelCase& c, const kb::Measured& result) {
  for (const auto& [cache, seconds] : {std::pair("hot", &result.hot), std::pair("flushed", &result.flushed)})
    run_.add(in_microseconds({{"case", c.name},
                              {"shape", c.shape},
                              {"dtype", std::string(name_of(c.dtype))},
                              {"variant", result.name},
                              {"cache", cache}},
                             *seconds));
}

}  // namespace gradring::train
