// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/kernel_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/lib/reference.h"
#include "kernels/runtime/philox.h"

namespace gradring::kernels::bench {
namespace {

constexpr auto kTimeout = std::chrono::minutes(1);

/// An odd number below, for a last batch.
std::int64_t tail_of(std::int64_t samples) {
  constexpr std::int64_t kBatchesOfTails = 4;
  return samples < kBatchesOfTails ? std::max<std::int64_t>(samples - 1, 1) : samples / kBatchesOfTails | 1;
}

/// NaN behind all others, as the first thing that a wrong count of elements loses; the infinities where `random` says.
void add_non_finite(std::span<double> values, std::uint32_t random) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (values.empty()) return;
  values[random % values.size()] = kInfinity;
  values[random / 7 % values.size()] = -kInfinity;
  values.back() = std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

BenchArray::BenchArray(Device& device, DType dtype, std::span<const double> start, const BenchArray* memory)
    : dtype_(dtype),
      elements_(start.size()),
      start_(device.allocate(bytes(), MemoryKind::pinned)),
      host_(device.allocate(bytes(), MemoryKind::pinned)) {
  if (memory == nullptr || memory->room_ < bytes()) device_ = device.allocate(bytes());
  const bool is_own = device_.data() != nullptr || memory == nullptr;
  device_data_ = is_own ? device_.data() : memory->device_data_;
  room_ = is_own ? bytes() : memory->room_;
  lib::write_values(dtype, start_.data(), start);
}

void BenchArray::reset(Stream& stream, std::size_t moved) {
  if (elements_ == 0) return;
  const std::size_t first = is_random ? moved % elements_ * element_bytes() : 0;
  const auto copy = [&](std::size_t to, std::size_t from, std::size_t count) {
    if (count == 0) return;
    const std::byte* const start = static_cast<const std::byte*>(start_.data()) + from;
    std::memcpy(static_cast<std::byte*>(host_.data()) + to, start, count);
    stream.enqueue_copy(device_data_ + to, start, count);
  };
  copy(0, first, bytes() - first);
  copy(bytes() - first, 0, first);
  stream.synchronize(Deadline::after(kTimeout));
}

std::vector<double> BenchArray::values(Side side, Stream& stream) const {
  if (side == Side::host) return lib::read_values(dtype_, host_.data(), elements_);
  return lib::read_values(dtype_, device_bytes(stream).data(), elements_);
}

std::vector<std::byte> BenchArray::device_bytes(Stream& stream, std::size_t first, std::size_t count) const {
  std::vector<std::byte> copy(count);
  if (count == 0) return copy;
  stream.enqueue_copy(copy.data(), device_data_ + first, count);
  stream.synchronize(Deadline::after(kTimeout));
  return copy;
}

std::int64_t CaseMaker::extent(const std::string& name, std::int64_t by_default) {
  names_.insert(name);
  const auto given = world_.extents.find(name);
  const bool counts_samples = name == "batch" || name == "rows" || name == "elements";
  const std::int64_t whole = given == world_.extents.end() ? by_default : given->second;
  const std::int64_t value = world_.trial != Trial::none && counts_samples ? tail_of(whole) : whole;
  shape_ += (shape_.empty() ? "" : ",") + name + "=" + std::to_string(value);
  return value;
}

KernelCase CaseMaker::make(const std::string& name) {
  KernelCase made;
  made.name = name;
  made.shape = std::exchange(shape_, "");
  made.dtype = world_.dtype;
  made.trial = world_.trial;
  ++cases_;
  return made;
}

CaseMaker CaseMaker::of_trial(Trial trial, const std::vector<KernelCase>& memory) const {
  World world = world_;
  world.peers = nullptr;
  world.trial = trial;
  world.memory = &memory;
  return CaseMaker(world);
}

BenchArray& CaseMaker::input(KernelCase& to, DType dtype, std::int64_t elements, double low, double high, double step) {
  std::vector<double> values(static_cast<std::size_t>(elements));
  constexpr std::uint64_t kSeedsOfTrial = 1000;
  const std::uint64_t seed = ++arrays_ + kSeedsOfTrial * static_cast<std::uint64_t>(world_.trial);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = low + (high - low) * uniform_from(philox(seed, i)[0]);
  if (!lib::is_floating(dtype)) step = 1;
  if (step > 0)
    std::ranges::transform(values, values.begin(), [step](double value) { return std::floor(value / step) * step; });
  if (world_.trial == Trial::non_finite && lib::is_floating(dtype))
    add_non_finite(values, philox(seed, values.size())[0]);
  BenchArray& array = add(to, dtype, values);
  array.is_random = true;
  return array;
}

BenchArray& CaseMaker::finite_input(KernelCase& to, DType dtype, std::int64_t elements, double low, double high,
                                    double step) {
  const Trial trial = std::exchange(world_.trial, Trial::none);
  BenchArray& array = input(to, dtype, elements, low, high, step);
  world_.trial = trial;
  return array;
}

BenchArray& CaseMaker::output(KernelCase& to, const std::string& name, DType dtype, std::int64_t elements,
                              Bound bound) {
  const double nothing = lib::is_floating(dtype) ? std::numeric_limits<double>::quiet_NaN() : 77;
  BenchArray& array = add(to, dtype, std::vector<double>(static_cast<std::size_t>(elements), nothing));
  also_output(to, name, array, std::move(bound));
  to.outputs.back().is_overwritten = true;
  to.unread_bytes += static_cast<double>(array.bytes());
  return array;
}

BenchArray& CaseMaker::sum(KernelCase& to, const std::string& name, DType dtype, std::int64_t elements, Bound bound,
                           bool accumulate) {
  if (!accumulate) return output(to, name, dtype, elements, std::move(bound));
  BenchArray& array = input(to, dtype, elements);
  also_output(to, name, array, std::move(bound));
  return array;
}

BenchArray& CaseMaker::workspace(KernelCase& to, std::size_t bytes) {
  BenchArray& array = add(to, DType::u8, std::vector<double>(bytes, 77));
  array.is_workspace = true;
  return array;
}

BenchArray& CaseMaker::bytes(KernelCase& to, std::span<const std::byte> start) {
  std::vector<double> values;
  for (const std::byte byte : start) values.push_back(std::to_integer<int>(byte));
  return add(to, DType::u8, values);
}

BenchArray& CaseMaker::add(KernelCase& to, DType dtype, std::span<const double> start) {
  const BenchArray* memory = nullptr;
  if (world_.memory) memory = world_.memory->at(cases_ - 1).arrays.at(to.arrays.size()).get();
  to.arrays.push_back(std::make_unique<BenchArray>(world_.device, dtype, start, memory));
  return *to.arrays.back();
}

double rounding(DType dtype, double value) {
  switch (dtype) {
    case DType::f32: return std::max(std::fabs(value) * 0x1p-24, 0x1p-150);
    case DType::f16: return std::max(std::fabs(value) * 0x1p-11, 0x1p-25);
    case DType::bf16: return std::max(std::fabs(value) * 0x1p-8, 0x1p-134);
    default: return 0;
  }
}

Bound exact() {
  return [](double) { return 0.0; };
}

Bound roundings(DType dtype, double count, double absolute) {
  return [=](double expected) { return absolute + count * rounding(dtype, std::fabs(expected) + absolute); };
}

Bound sum_of_products(DType dtype, std::int64_t terms) {
  return roundings(dtype, 2, static_cast<double>((terms + 1) * (terms + 1)) * 0x1p-24);
}

std::span<const CaseFamily> case_families() {
  static constexpr CaseFamily kFamilies[] = {{"fill", fill_cases},
                                             {"scale", scale_cases},
                                             {"accumulate", accumulate_cases},
                                             {"cast", cast_cases},
                                             {"exact_sum", exact_sum_cases},
                                             {"relu", relu_cases},
                                             {"bias", bias_cases},
                                             {"gelu", gelu_cases},
                                             {"silu", silu_cases},
                                             {"dropout", dropout_cases},
                                             {"max_pool2d", max_pool2d_cases},
                                             {"avg_pool2d", avg_pool2d_cases},
                                             {"batch_norm", batch_norm_cases},
                                             {"softmax_cross_entropy", softmax_cross_entropy_cases},
                                             {"gemm", gemm_cases},
                                             {"conv2d", conv2d_cases},
                                             {"grouped_conv2d", grouped_conv2d_cases},
                                             {"conv_relu_pool", conv_relu_pool_cases},
                                             {"linear_cross_entropy", linear_cross_entropy_cases},
                                             {"gradient_statistics", gradient_statistics_cases},
                                             {"step_state", step_state_cases},
                                             {"adam", adam_cases},
                                             {"sgd", sgd_cases},
                                             {"ema", ema_cases},
                                             {"muon", muon_cases},
                                             {"gather_batch", gather_batch_cases},
                                             {"tally", tally_cases},
                                             {"peak", peak_cases}};
  return kFamilies;
}

Cases cases_with_trials(const CaseFamily& family, CaseMaker& make) {
  Cases cases = family.cases(make);
  for (const Trial trial : {Trial::tail, Trial::non_finite}) {
    CaseMaker maker = make.of_trial(trial, cases);
    Cases trials = family.cases(maker);
    for (std::size_t i = 0; i < cases.size(); ++i) cases[i].trials.push_back(std::move(trials[i]));
  }
  return cases;
}

}  // namespace gradring::kernels::bench
