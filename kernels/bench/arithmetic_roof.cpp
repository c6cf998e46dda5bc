// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/arithmetic_roof.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/bench/bench_array.h"
#include "kernels/bench/stopwatch.h"
#include "kernels/runtime/philox.h"
#include "kernels/variant.h"

namespace gradring::kernels::bench {
namespace {

constexpr auto kPatience = std::chrono::minutes(1);
constexpr int kSamples = 7;
/// So long that starting and waiting do not count.
constexpr double kWorthTheClock = 5e-3;
/// A warp each: several times what the largest GPU holds at once, so that the last ones to finish do not count.
constexpr std::int64_t kMostTiles = 1 << 17;
constexpr std::int64_t kMostRounds = 1 << 20;

/// Not zeros, at which a processor draws less power and may run faster.
std::vector<double> some_values(std::int64_t elements) {
  std::vector<double> values(static_cast<std::size_t>(elements));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 2 * uniform_from(philox(1, i)[0]) - 1;
  return values;
}

}  // namespace

ArithmeticRoof::ArithmeticRoof(Device& device, const KernelSet& kernels)
    : device_(device), kernels_(kernels), stream_(device.make_stream(StreamMode::in_place)) {}

double ArithmeticRoof::flops_per_second(DType dtype) {
  const auto [entry, is_new] = flops_per_second_.try_emplace(dtype, 0.0);
  if (is_new) entry->second = measure(dtype);
  return entry->second;
}

double ArithmeticRoof::measure(DType dtype) {
  const peak::Variant& variant = pick_variant(kernels_.peak, device_, dtype);
  BenchArray a(device_, dtype, some_values(peak::kRows * peak::kInner));
  BenchArray b(device_, dtype, some_values(peak::kInner * peak::kColumns));
  for (BenchArray* array : {&a, &b}) array->reset(*stream_);
  peak::Args args{.dtype = dtype, .tiles = 32, .rounds = 16, .a = a.at(Side::device), .b = b.at(Side::device)};
  Buffer y;
  const auto allocate = [&] {
    y = device_.allocate(static_cast<std::size_t>(args.tiles * peak::kRows * peak::kColumns) * sizeof(float));
    args.y = y.as<float>();
  };
  const auto seconds = [&] {
    stream_->enqueue_zero(y.data(), y.size());
    stream_->synchronize(Deadline::after(kPatience));
    const Stopwatch watch;
    variant.run(*stream_, args);
    stream_->synchronize(Deadline::after(kPatience));
    return watch.seconds();
  };
  const auto lesser_of_two = [&] { return std::min(seconds(), seconds()); };
  allocate();
  seconds();  // a kernel is loaded when it is launched for the first time
  for (; lesser_of_two() < kWorthTheClock && args.rounds < kMostRounds; allocate())
    (args.tiles < kMostTiles ? args.tiles : args.rounds) *= 4;
  double least = std::numeric_limits<double>::infinity();
  for (int sample = 0; sample < kSamples; ++sample) least = std::min(least, seconds());
  return peak::flops(args) / least;
}

}  // namespace gradring::kernels::bench
