// SPDX-License-Identifier: Apache-2.0
// step_state, adam, sgd, ema: what ends a step.
#include <cmath>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/plain_loops.h"

namespace gradring::kernels::bench {
namespace {

constexpr std::int64_t kParameters = 431'242;  // of the seed ConvNet
constexpr float kLearningRate = 1e-3f;
constexpr float kMomentum = 0.9f;
constexpr std::int32_t kApplied = 7;  // steps before the one that is timed

/// Before the step after `applied_steps` others.
step_state::StepState state_after(std::int32_t applied_steps) {
  return {.applied_steps = applied_steps, .learning_rate = kLearningRate};
}

/// In a type of 16 bits, an optimizer writes the weights in that, too; their error is `absolute`. Null for f32.
const BenchArray* copy_of_weights(CaseMaker& make, KernelCase& to, std::int64_t elements, double absolute) {
  if (make.dtype() == DType::f32) return nullptr;
  return &make.output(to, make.dtype(), elements, roundings(make.dtype(), 2, absolute));
}

KernelCase step_state_prepare(CaseMaker& make) {
  KernelCase c = make.make("step_state prepare");
  BenchArray& state = make.object(c, state_after(kApplied));
  BenchArray& rates = make.input(c, DType::f32, 2 * kApplied);
  BenchArray& sum = make.input(c, DType::f32, 1, 1, 2);
  CaseMaker::also_output(c, state, exact());
  const auto args = [&state, &rates, &sum](Side side) {
    return step_state::PrepareArgs{.state = state.as<step_state::StepState>(side),
                                   .learning_rates = rates.as<float>(side),
                                   .count = 2 * kApplied,
                                   .sum_of_squares = sum.as<float>(side),
                                   .most_norm = 1e-3f};
  };
  c.bytes = sizeof(step_state::StepState);
  c.reference = [=] { step_state::reference::prepare(args(Side::host)); };
  make.variants(c, make.kernels().step_state, DType::f32, [=](const step_state::Variant& variant, Stream& stream) {
    variant.prepare(stream, args(Side::device));
  });
  return c;
}

KernelCase step_state_advance(CaseMaker& make) {
  KernelCase c = make.make("step_state advance");
  BenchArray& state = make.object(c, state_after(kApplied));
  CaseMaker::also_output(c, state, exact());
  const auto args = [&state](Side side) { return step_state::AdvanceArgs{state.as<step_state::StepState>(side)}; };
  c.bytes = sizeof(step_state::StepState);
  c.reference = [=] { step_state::reference::advance(args(Side::host)); };
  make.variants(c, make.kernels().step_state, DType::f32, [=](const step_state::Variant& variant, Stream& stream) {
    variant.advance(stream, args(Side::device));
  });
  return c;
}

}  // namespace

Cases step_state_cases(CaseMaker& make) {
  Cases cases;
  cases.push_back(step_state_prepare(make));
  cases.push_back(step_state_advance(make));
  return cases;
}

Cases adam_cases(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kParameters);
  KernelCase c = make.make(make.dtype() == DType::f32 ? "adam" : "adam with a copy");
  const Bound bound = [](double) { return 4 * 0x1p-24; };
  BenchArray& w = make.input(c, DType::f32, n);
  BenchArray& g = make.input(c, DType::f32, n);
  BenchArray& m = make.input(c, DType::f32, n);
  BenchArray& v = make.input(c, DType::f32, n, 0, 1);
  BenchArray& state = make.object(c, state_after(kApplied));
  for (const BenchArray* array : {&w, &m, &v}) CaseMaker::also_output(c, *array, bound);
  const BenchArray* copy = copy_of_weights(make, c, n, bound(1));
  const auto args = [&w, &g, &m, &v, &state, copy, copy_dtype = make.dtype()](Side side) {
    return adam::Args{.elements = w.elements(),
                      .weights = w.as<float>(side),
                      .gradients = g.as<float>(side),
                      .m = m.as<float>(side),
                      .v = v.as<float>(side),
                      .state = state.as<step_state::StepState>(side),
                      .hyper = {},
                      .copy_dtype = copy_dtype,
                      .copy = copy ? copy->at(side) : nullptr};
  };
  c.bytes = 7 * static_cast<double>(w.bytes()) + c.unread_bytes;
  c.reference = [=] { adam::reference::run(args(Side::host)); };
  make.variants(c, make.kernels().adam, DType::f32,
                [=](const adam::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  const adam::Hyper hyper;
  const PlainAdamStep step{.beta1 = static_cast<float>(hyper.beta1),
                           .beta2 = static_cast<float>(hyper.beta2),
                           .epsilon = static_cast<float>(hyper.epsilon),
                           .step_size = static_cast<float>(kLearningRate / (1 - std::pow(hyper.beta1, kApplied + 1))),
                           .root_correction2 = static_cast<float>(std::sqrt(1 - std::pow(hyper.beta2, kApplied + 1)))};
  if (make.has_plain_loops())
    c.plain_loop = [&w, &g, &m, &v, step] {
      plain().adam(w.as<float>(Side::device), g.as<float>(Side::device), m.as<float>(Side::device),
                   v.as<float>(Side::device), w.elements(), step);
    };
  return only(std::move(c));
}

Cases sgd_cases(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kParameters);
  KernelCase c = make.make(make.dtype() == DType::f32 ? "sgd with momentum" : "sgd with momentum and a copy");
  const Bound bound = [](double) { return 16 * 0x1p-24; };
  BenchArray& w = make.input(c, DType::f32, n);
  BenchArray& g = make.input(c, DType::f32, n);
  BenchArray& buffer = make.input(c, DType::f32, n);
  BenchArray& state = make.object(c, state_after(kApplied));
  for (const BenchArray* array : {&w, &buffer}) CaseMaker::also_output(c, *array, bound);
  const BenchArray* copy = copy_of_weights(make, c, n, bound(1));
  const auto args = [&w, &g, &buffer, &state, copy, copy_dtype = make.dtype()](Side side) {
    return sgd::Args{.elements = w.elements(),
                     .weights = w.as<float>(side),
                     .gradients = g.as<float>(side),
                     .momentum_buffer = buffer.as<float>(side),
                     .state = state.as<step_state::StepState>(side),
                     .hyper = {.momentum = static_cast<double>(kMomentum)},
                     .copy_dtype = copy_dtype,
                     .copy = copy ? copy->at(side) : nullptr};
  };
  c.bytes = 5 * static_cast<double>(w.bytes()) + c.unread_bytes;
  c.reference = [=] { sgd::reference::run(args(Side::host)); };
  make.variants(c, make.kernels().sgd, DType::f32,
                [=](const sgd::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  if (make.has_plain_loops())
    c.plain_loop = [&w, &g, &buffer] {
      plain().sgd(w.as<float>(Side::device), g.as<float>(Side::device), buffer.as<float>(Side::device), w.elements(),
                  kMomentum, kLearningRate);
    };
  return only(std::move(c));
}

Cases ema_cases(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kParameters);
  constexpr double kDecay = 0.999;
  KernelCase c = make.make("ema");
  BenchArray& w = make.input(c, DType::f32, n);
  BenchArray& average = make.input(c, DType::f32, n);
  BenchArray& state = make.object(c, state_after(kApplied));
  CaseMaker::also_output(c, average, [](double) { return 4 * 0x1p-24; });
  const auto args = [&w, &average, &state](Side side) {
    return ema::Args{.elements = w.elements(),
                     .weights = w.as<float>(side),
                     .average = average.as<float>(side),
                     .state = state.as<step_state::StepState>(side),
                     .decay = kDecay};
  };
  c.bytes = 3 * static_cast<double>(w.bytes());
  c.flops = 3 * static_cast<double>(n);
  c.reference = [=] { ema::reference::run(args(Side::host)); };
  make.variants(c, make.kernels().ema, DType::f32,
                [=](const ema::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  return only(std::move(c));
}

}  // namespace gradring::kernels::bench
