// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstdio>
#include <limits>
#include <map>
#include <vector>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/machine.h"
#include "kernels/bench/statistics.h"
#include "kernels/lib/variant.h"
#include "kernels/runtime/philox.h"
#include "kernels/runtime/timed_calls.h"

namespace gradring::kernels::bench {
namespace {

constexpr auto kProbeTimeout = std::chrono::minutes(1);
constexpr int kProbeSamples = 7;
/// Long enough that launching and waiting are negligible.
constexpr double kLeastProbeSeconds = 5e-3;
/// A warp each: several times what the largest GPU holds at once, so that the tail is negligible.
constexpr std::int64_t kMostTiles = 1 << 17;
constexpr std::int64_t kMostRounds = 1 << 20;

/// Not zeros, with which a processor draws less power and may run faster.
std::vector<double> some_values(std::int64_t elements) {
  std::vector<double> values(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * uniform_from(philox(1, i)[0]) - 1;
  return values;
}

}  // namespace

PeakFlops::PeakFlops(Device& device, const KernelSet& kernels)
    : device_(device), kernels_(kernels), stream_(device.make_stream(StreamMode::in_place)) {}

double PeakFlops::per_second(DType dtype) {
  const auto [entry, is_new] = per_second_.try_emplace(dtype, 0.0);
  if (is_new) entry->second = measure(dtype);
  return entry->second;
}

const peak::Variant& PeakFlops::variant(DType dtype) const { return pick_variant(kernels_.peak, device_, dtype); }

double PeakFlops::measure(DType dtype) {
  BenchArray a(device_, dtype, some_values(peak::kRows * peak::kK));
  BenchArray b(device_, dtype, some_values(peak::kK * peak::kColumns));
  for (BenchArray* array : {&a, &b}) array->reset(*stream_);
  peak::Args args{.dtype = dtype, .tiles = 128, .rounds = 16, .a = a.at(Side::device), .b = b.at(Side::device)};
  Buffer y;
  const auto allocate = [&] {
    y = device_.allocate(static_cast<std::size_t>(args.tiles * peak::kRows * peak::kColumns) * sizeof(float));
    args.y = y.as<float>();
  };
  const auto seconds = [&] {
    stream_->enqueue_zero(y.data(), y.size());
    stream_->synchronize(Deadline::after(kProbeTimeout));
    const Stopwatch watch;
    variant(dtype).run(*stream_, args);
    stream_->synchronize(Deadline::after(kProbeTimeout));
    return watch.seconds();
  };
  const auto lesser_of_two = [&] { return std::min(seconds(), seconds()); };
  allocate();
  seconds();  // a kernel is loaded when it is launched for the first time
  for (; lesser_of_two() < kLeastProbeSeconds && args.rounds < kMostRounds; allocate())
    (args.tiles < kMostTiles ? args.tiles : args.rounds) *= 4;
  double least = std::numeric_limits<double>::infinity();
  for (int sample = 0; sample < kProbeSamples; ++sample) least = std::min(least, seconds());
  return peak::flops(args) / least;
}

namespace {

constexpr double kPerGiga = 1e-9;
constexpr double kPerTera = 1e-12;
/// Of one array that is copied to another: far more than any card's second-level cache, and what its copies are fastest
/// at.
constexpr std::size_t kMostBytes = std::size_t{1} << 29;
constexpr std::size_t kLeastBytes = std::size_t{1} << 16;
constexpr int kCopySamples = 9;
/// Bytes of each sample, so that the resolution of the device's clock is negligible.
constexpr std::size_t kSampleBytes = std::size_t{1} << 32;

class GpuMachine final : public Machine {
 public:
  GpuMachine(Device& device, const KernelSet& kernels)
      : device_(device),
        peak_(device, kernels),
        from_(device.allocate(kMostBytes)),
        to_(device.allocate(kMostBytes)),
        stream_(device.make_stream(StreamMode::asynchronous)),
        name_(device.description()) {}

  std::string limits() override {
    char text[200];
    std::snprintf(text, sizeof text,
                  ": %.1f TFLOP/s in f32, %.1f in f16 by %s; copies %.0f GB/s within 16 MB, %.0f GB/s from memory "
                  "(read and written)",
                  peak_.per_second(DType::f32) * kPerTera, peak_.per_second(DType::f16) * kPerTera,
                  std::string(peak_.variant(DType::f16).name).c_str(), bytes_per_second(8 << 20) * kPerGiga,
                  bytes_per_second(kMostBytes) * kPerGiga);
    return name_ + text;
  }

  double least_seconds(const Work& work, bool cold) override {
    const double half = cold ? static_cast<double>(kMostBytes) : work.footprint_bytes / 2;
    const double moving = work.traffic_bytes / bytes_per_second(static_cast<std::size_t>(half));
    return work.flops > 0 ? std::max(moving, work.flops / peak_.per_second(work.factors)) : moving;
  }

  void flush(const KernelCase&, Stream& stream) override { stream.enqueue_zero(from_.data(), from_.size()); }

 private:
  /// Of copies between arrays of this size; measured for the next power of two.
  double bytes_per_second(std::size_t bytes) {
    const std::size_t size = std::clamp(std::bit_ceil(bytes), kLeastBytes, kMostBytes);
    const auto [entry, is_new] = bytes_per_second_.try_emplace(size, 0.0);
    if (is_new) entry->second = measure(size);
    return entry->second;
  }

  double measure(std::size_t size) {
    const auto repeats = static_cast<int>(std::min<std::size_t>(1000, kSampleBytes / size));
    const auto copy = [&] { stream_->enqueue_copy(to_.data(), from_.data(), size); };
    TimedCalls copies(device_, *stream_, copy, repeats);
    std::vector<double> seconds;
    for (int sample = 0; sample < kCopySamples; ++sample)
      seconds.push_back(copies.seconds(Deadline::after(kProbeTimeout)));
    return 2.0 * static_cast<double>(size) / statistics_of(seconds).least;
  }

  Device& device_;
  PeakFlops peak_;
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
