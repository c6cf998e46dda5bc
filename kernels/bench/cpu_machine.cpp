// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdio>
#include <span>
#include <vector>

#include "kernels/bench/machine.h"
#include "kernels/bench/plain_loops.h"
#include "kernels/bench/statistics.h"
#include "kernels/lib/level_copies.h"

namespace gradring::kernels::bench {

GRADRING_DECLARE_COPIES(PlainLoops, plain_loops);  // plain_loops.cpp

const PlainLoops& plain() {
  static const PlainLoops loops = GRADRING_COPY_TO_RUN(plain_loops)();
  return loops;
}

namespace {

constexpr int kSamples = 15;
constexpr int kColdSamples = 5;  // flushing the caches takes longer than the loop
constexpr double kSampleSeconds = 2e-3;

double measure_flops() {
  constexpr int kRounds = 200'000;
  double most = 0;
  for (int sample = 0; sample < kSamples; ++sample) most = std::max(most, plain().multiply_adds(kRounds));
  return most;
}

/// A loop over an array that is cut in two, and how many bytes it moves for each byte of the array. A line that is
/// written without having been read is fetched all the same, and moves twice.
struct Loop {
  void (*run)(float* array, std::size_t half);
  double traffic;
};
constexpr Loop kLoops[] = {
    {[](float* array, std::size_t half) { plain().scale(array, array + half, half, 0.5f); }, 1.5},
    {[](float* array, std::size_t half) { plain().accumulate(array, array + half, half); }, 1.5},
    {[](float* array, std::size_t half) { plain().fill(array, 2 * half, 0.5f); }, 2.0},
};

double measure(const Loop& loop, std::size_t bytes, bool cold) {
  std::vector<float> array(bytes / sizeof(float), 1.0f);
  std::vector<double> seconds;
  const auto repeats = cold ? 1 : std::max<std::size_t>(1, static_cast<std::size_t>(kSampleSeconds * 1e10) / bytes);
  for (int sample = 0; sample < (cold ? kColdSamples : kSamples); ++sample) {
    if (cold) evict(std::as_bytes(std::span(array)));
    const Stopwatch watch;
    for (std::size_t i = 0; i < repeats; ++i) loop.run(array.data(), array.size() / 2);
    seconds.push_back(watch.seconds() / static_cast<double>(repeats));
  }
  return loop.traffic * static_cast<double>(bytes) / statistics_of(seconds).least;
}

}  // namespace

double CpuRoofline::flops_per_second() {
  if (flops_per_second_ == 0) flops_per_second_ = measure_flops();
  return flops_per_second_;
}

double CpuRoofline::bytes_per_second(double footprint_bytes, bool cold) {
  constexpr std::size_t kLeast = 4096;
  constexpr std::size_t kMost = std::size_t{1} << 28;
  const std::size_t size = std::clamp(std::bit_ceil(static_cast<std::size_t>(footprint_bytes)), kLeast, kMost);
  const auto [entry, is_new] = bytes_per_second_.try_emplace({size, cold}, 0.0);
  if (is_new)
    for (const Loop& loop : kLoops) entry->second = std::max(entry->second, measure(loop, size, cold));
  return entry->second;
}

double CpuRoofline::seconds(const Work& work, bool cold) {
  const double bytes = work.traffic_bytes + work.unread_bytes;
  return std::max(bytes / bytes_per_second(work.footprint_bytes, cold), work.flops / flops_per_second());
}

namespace {

constexpr double kGiga = 1e-9;

class CpuMachine final : public Machine {
 public:
  std::string limits() override {
    char text[160];
    std::snprintf(text, sizeof text, "one core: %.0f GFLOP/s in f32; %.0f GB/s within 1 MB, %.0f GB/s from memory",
                  roofline_.flops_per_second() * kGiga, roofline_.bytes_per_second(1e6, false) * kGiga,
                  roofline_.bytes_per_second(16e6, true) * kGiga);
    return text;
  }

  double least_seconds(const Work& work, bool cold) override { return roofline_.seconds(work, cold); }

  void flush(const KernelCase& c, Stream&) override {
    for (const auto& array : c.arrays) evict({array->as<const std::byte>(Side::device), array->bytes()});
  }

 private:
  CpuRoofline roofline_;
};

}  // namespace

std::unique_ptr<Machine> make_cpu_machine() { return std::make_unique<CpuMachine>(); }

}  // namespace gradring::kernels::bench
