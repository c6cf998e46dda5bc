// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdio>
#include <map>
#include <vector>

#include "kernels/bench/arithmetic_roof.h"
#include "kernels/bench/machine.h"
#include "kernels/bench/statistics.h"
#include "kernels/bench/stopwatch.h"

namespace gradring::kernels::bench {
namespace {

constexpr auto kPatience = std::chrono::minutes(1);
constexpr double kGiga = 1e-9;
constexpr double kTera = 1e-12;
/// Of one array that is copied to another: far more than any card's second-level cache, and what its copies are fastest at.
constexpr std::size_t kMostBytes = std::size_t{1} << 29;
constexpr std::size_t kLeastBytes = std::size_t{1} << 16;
constexpr int kSamples = 9;
/// Bytes of each sample, so that the clock and the launches do not count.
constexpr std::size_t kSampleBytes = std::size_t{1} << 32;

class GpuMachine final : public Machine {
 public:
  GpuMachine(Device& device, const KernelSet& kernels)
      : arithmetic_(device, kernels),
        from_(device.allocate(kMostBytes)),
        to_(device.allocate(kMostBytes)),
        stream_(device.make_stream(StreamMode::asynchronous)),
        name_(device.description()) {}

  std::string limits() override {
    char text[200];
    std::snprintf(
        text, sizeof text,
        ": %.1f TFLOP/s in f32, %.1f in f16 by mma.sync; copies %.0f GB/s within 16 MB, %.0f GB/s from memory "
        "(read and written)",
        arithmetic_.flops_per_second(DType::f32) * kTera, arithmetic_.flops_per_second(DType::f16) * kTera,
        bytes_per_second(8 << 20) * kGiga, bytes_per_second(kMostBytes) * kGiga);
    return name_ + text;
  }

  double least_seconds(const Work& work, bool cold) override {
    const double half = cold ? static_cast<double>(kMostBytes) : work.footprint_bytes / 2;
    const double moving = work.traffic_bytes / bytes_per_second(static_cast<std::size_t>(half));
    return work.flops > 0 ? std::max(moving, work.flops / arithmetic_.flops_per_second(work.factors)) : moving;
  }

  void flush(const KernelCase&) override {
    stream_->enqueue_zero(from_.data(), from_.size());
    finish();
  }

 private:
  void finish() { stream_->synchronize(Deadline::after(kPatience)); }

  /// Of copies between arrays of so many bytes; measured for the next power of two.
  double bytes_per_second(std::size_t bytes) {
    const std::size_t size = std::clamp(std::bit_ceil(bytes), kLeastBytes, kMostBytes);
    const auto [entry, is_new] = bytes_per_second_.try_emplace(size, 0.0);
    if (is_new) entry->second = measure(size);
    return entry->second;
  }

  double measure(std::size_t size) {
    const auto repeats = static_cast<int>(std::min<std::size_t>(1000, kSampleBytes / size));
    std::vector<double> seconds;
    for (int sample = 0; sample < kSamples; ++sample) {
      const Stopwatch watch;
      for (int i = 0; i < repeats; ++i) stream_->enqueue_copy(to_.data(), from_.data(), size);
      finish();
      seconds.push_back(watch.seconds() / repeats);
    }
    return 2.0 * static_cast<double>(size) / statistics_of(seconds).least;
  }

  ArithmeticRoof arithmetic_;
  Buffer from_;
  Buffer to_;
  std::unique_ptr<Stream> stream_;
  std::string name_;
  std::map<std::size_t, double> bytes_per_second_;
};

}  // namespace

std::unique_ptr<Machine> make_gpu_machine(Device& device, const KernelSet& kernels) {
  return std::make_unique<GpuMachine>(device, kernels);
}

}  // namespace gradring::kernels::bench
