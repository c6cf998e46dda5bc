// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_kernels_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "train/cli/bench_file.h"

namespace gradring::train {
namespace {

namespace kb = kernels::bench;

constexpr double kMicroseconds = 1e6;
constexpr double kGiga = 1e-9;

kb::Work work_of(const kb::KernelCase& c) {
  kb::Work work{.footprint_bytes = 0, .traffic_bytes = c.bytes, .unread_bytes = c.unread_bytes, .flops = c.flops};
  for (const auto& array : c.arrays) work.footprint_bytes += static_cast<double>(array->bytes());
  return work;
}

}  // namespace

void KernelsTable::begin() {
  limits_ = machine_.limits();
  fmt::print("{}\n\n", limits_);
  fmt::print("{:<24} {:<14} {:>6} {:>9} {:>9} {:>7} {:>8} {:>6} {:>7}   {:>9} {:>9} {:>6} {:>7}\n", "", "", "error",
             "hot us", "p95", "GB/s", "GFLOP/s", "roof", "x plain", "flushed", "p95", "roof", "x plain");
}

void KernelsTable::add(const kb::KernelCase& c, const std::vector<kb::Measured>& results) {
  fmt::print("{} [{}] {}\n", c.name, c.shape, name_of(c.dtype));
  const auto plain = std::ranges::find(results, kb::kPlainLoop, &kb::Measured::name);
  nlohmann::json variants = nlohmann::json::array();
  for (const kb::Measured& result : results)
    variants.push_back(result.right() ? row(c, result, plain == results.end() ? nullptr : &*plain) : wrong(result));
  std::fflush(stdout);
  cases_.push_back({{"name", c.name},
                    {"shape", c.shape},
                    {"dtype", name_of(c.dtype)},
                    {"bytes", c.bytes},
                    {"flops", c.flops},
                    {"variants", variants}});
}

nlohmann::json KernelsTable::results() { return {{"limits", limits_}, {"cases", cases_}}; }

nlohmann::json KernelsTable::wrong(const kb::Measured& result) {
  ++wrong_;
  fmt::print("  {:<36} WRONG: an error of {:.3g} times what is allowed\n", result.name, result.error);
  return {{"name", result.name}, {"error", std::min(result.error, 1e300)}, {"right", false}};
}

nlohmann::json KernelsTable::row(const kb::KernelCase& c, const kb::Measured& result, const kb::Measured* plain) {
  const double hot = result.hot.median;
  const double flushed = result.flushed.median;
  const double hot_roof = machine_.least_seconds(work_of(c), false) / hot;
  const double flushed_roof = machine_.least_seconds(work_of(c), true) / flushed;
  const auto beside = [plain](double seconds, const kb::Statistics kb::Measured::*way) {
    return plain ? fmt::format("{:.2f}", seconds / (plain->*way).median) : std::string();
  };
  fmt::print(
      "  {:<36} {:>6.2f} {:>9.1f} {:>9.1f} {:>7.1f} {:>8} {:>4.0f} % {:>7}   {:>9.1f} {:>9.1f} {:>4.0f} % {:>7}\n",
      result.name, result.error, hot * kMicroseconds, result.hot.p95 * kMicroseconds, c.bytes / hot * kGiga,
      c.flops > 0 ? fmt::format("{:.1f}", c.flops / hot * kGiga) : "", 100 * hot_roof, beside(hot, &kb::Measured::hot),
      flushed * kMicroseconds, result.flushed.p95 * kMicroseconds, 100 * flushed_roof,
      beside(flushed, &kb::Measured::flushed));
  nlohmann::json json = {{"name", result.name},
                         {"error", result.error},
                         {"right", true},
                         {"hot_microseconds", to_json(result.hot, kMicroseconds)},
                         {"hot_share_of_roof", hot_roof},
                         {"flushed_microseconds", to_json(result.flushed, kMicroseconds)},
                         {"flushed_share_of_roof", flushed_roof}};
  if (plain) json["times_plain_loop"] = hot / plain->hot.median;
  return json;
}

}  // namespace gradring::train
