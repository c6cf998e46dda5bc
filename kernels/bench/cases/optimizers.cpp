// SPDX-License-Identifier: Apache-2.0
// exact_sum, gradient_statistics, step_state, adam, sgd, ema, muon: what ends a step.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/plain_loops.h"

namespace gradring::kernels::bench {
namespace {

constexpr float kLearningRate = 1e-3f;
constexpr float kMomentum = 0.9f;
constexpr std::int32_t kApplied = 7;  // steps before the one that is timed

/// Adds the state before that step.
BenchArray& state_of(CaseMaker& make, KernelCase& to) {
  return make.object(to, step_state::StepState{.applied_steps = kApplied, .learning_rate = kLearningRate});
}

/// In a type of 16 bits, an optimizer writes the weights in that, too; their error is `absolute`. Null for f32.
const BenchArray* copy_of_weights(CaseMaker& make, KernelCase& to, std::int64_t elements, double absolute) {
  if (make.dtype() == DType::f32) return nullptr;
  return &make.output(to, "copy", make.dtype(), elements, roundings(make.dtype(), 2, absolute));
}

KernelCase step_state_prepare(CaseMaker& make) {
  KernelCase c = make.make("step_state prepare");
  BenchArray& state = state_of(make, c);
  BenchArray& rates = make.input(c, DType::f32, 2 * kApplied);
  BenchArray& sum = make.finite_input(c, DType::f32, 1, 1, 2);  // the bytes of a NaN are not defined
  CaseMaker::also_output(c, "state", state, exact());
  c.bytes = sizeof(step_state::StepState);
  make.run(c, make.kernels().step_state, &step_state::Variant::prepare, step_state::reference_prepare, [&](Side side) {
    return step_state::PrepareArgs{.state = state.as<step_state::StepState>(side),
                                   .learning_rates = rates.as<float>(side),
                                   .count = 2 * kApplied,
                                   .sum_of_squares = sum.as<float>(side),
                                   .most_norm = 1e-3f};
  });
  return c;
}

KernelCase step_state_advance(CaseMaker& make) {
  KernelCase c = make.make("step_state advance");
  BenchArray& state = state_of(make, c);
  CaseMaker::also_output(c, "state", state, exact());
  c.bytes = sizeof(step_state::StepState);
  make.run(c, make.kernels().step_state, &step_state::Variant::advance, step_state::reference_advance,
           [&](Side side) { return step_state::AdvanceArgs{state.as<step_state::StepState>(side)}; });
  return c;
}

constexpr double kUnit = 0x1p-44;

/// One number in a thousand is too large.
KernelCase exact_sum_add(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  KernelCase c = make.make("exact_sum add");
  BenchArray& x = make.input(c, DType::f32, n, -0x1p-4, 0x1p-4);
  BenchArray& units = make.input(c, DType::i64, n, -0x1p40, 0x1p40);
  BenchArray& refused = make.object(c, std::int64_t{0});
  CaseMaker::also_output(c, "units", units, exact());
  CaseMaker::also_output(c, "refused", refused, exact());
  c.bytes = static_cast<double>(x.bytes() + 2 * units.bytes());
  make.run(c, make.kernels().exact_sum, &exact_sum::Variant::add, exact_sum::reference_add, [&](Side side) {
    return exact_sum::AddArgs{.elements = x.elements(),
                              .x = x.as<float>(side),
                              .units = units.as<std::int64_t>(side),
                              .refused = refused.as<std::int64_t>(side),
                              .unit = kUnit,
                              .most = std::int64_t{1023} << 30};
  });
  return c;
}

KernelCase exact_sum_read(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  KernelCase c = make.make("exact_sum read");
  BenchArray& units = make.input(c, DType::i64, n, -0x1p44, 0x1p44);
  BenchArray& refused = make.object(c, std::int64_t{0});
  BenchArray& x = make.output(c, "x", DType::f32, n, exact());
  c.bytes = static_cast<double>(units.bytes() + x.bytes());
  make.run(c, make.kernels().exact_sum, &exact_sum::Variant::read, exact_sum::reference_read, [&](Side side) {
    return exact_sum::ReadArgs{.elements = x.elements(),
                               .units = units.as<std::int64_t>(side),
                               .refused = refused.as<std::int64_t>(side),
                               .x = x.as<float>(side),
                               .unit = kUnit};
  });
  return c;
}

KernelCase sgd_of(CaseMaker& make, bool has_momentum) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  const std::string name = has_momentum ? "sgd with momentum" : "sgd";
  KernelCase c = make.make(name + (make.dtype() == DType::f32 ? "" : has_momentum ? " and a copy" : " with a copy"));
  const Bound bound = [](double) { return 16 * 0x1p-24; };
  BenchArray& w = make.input(c, DType::f32, n);
  BenchArray& g = make.input(c, DType::f32, n);
  BenchArray& state = state_of(make, c);
  CaseMaker::also_output(c, "w", w, bound);
  const BenchArray* buffer = has_momentum ? &make.input(c, DType::f32, n) : nullptr;
  if (buffer) CaseMaker::also_output(c, "buffer", *buffer, bound);
  const BenchArray* copy = copy_of_weights(make, c, n, bound(1));
  c.bytes = (has_momentum ? 5 : 3) * static_cast<double>(w.bytes()) + c.unread_bytes;
  make.run(c, make.kernels().sgd, &sgd::Variant::run, sgd::reference_run, [&](Side side) {
    return sgd::Args{.elements = w.elements(),
                     .weights = w.as<float>(side),
                     .gradients = g.as<float>(side),
                     .momentum_buffer = buffer ? buffer->as<float>(side) : nullptr,
                     .state = state.as<step_state::StepState>(side),
                     .hyper = {.momentum = has_momentum ? static_cast<double>(kMomentum) : 0},
                     .copy_dtype = make.dtype(),
                     .copy = copy ? copy->at(side) : nullptr};
  });
  if (buffer && make.has_plain_loops())
    c.plain_loop = [&w, &g, buffer] {
      plain().sgd(w.floats(), g.floats(), buffer->floats(), w.elements(), kMomentum, kLearningRate);
    };
  return c;
}

KernelCase muon_momentum(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  KernelCase c = make.make("muon momentum");
  BenchArray& g = make.input(c, DType::f32, n);
  BenchArray& buffer = make.input(c, DType::f32, n);
  BenchArray& update = make.output(c, "update", DType::f32, n, [](double) { return 4 * 0x1p-24; });
  BenchArray& state = state_of(make, c);
  CaseMaker::also_output(c, "buffer", buffer, [](double) { return 4 * 0x1p-24; });
  c.bytes = 4 * static_cast<double>(g.bytes());
  make.run(c, make.kernels().muon, &muon::Variant::momentum, muon::reference_momentum, [&](Side side) {
    return muon::MomentumArgs{.elements = g.elements(),
                              .gradients = g.as<float>(side),
                              .buffer = buffer.as<float>(side),
                              .update = update.as<float>(side),
                              .state = state.as<step_state::StepState>(side),
                              .momentum = static_cast<double>(kMomentum),
                              .nesterov = true};
  });
  return c;
}

KernelCase muon_normalize(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  KernelCase c = make.make("muon normalize");
  BenchArray& update = make.input(c, DType::f32, n);
  BenchArray& sum = make.input(c, DType::f32, 1, 1, 2);
  BenchArray& x = make.output(c, "x", make.dtype(), n, roundings(make.dtype(), 2));
  c.bytes = static_cast<double>(update.bytes() + x.bytes());
  make.run(c, make.kernels().muon, &muon::Variant::normalize, muon::reference_normalize, [&](Side side) {
    return muon::NormalizeArgs{.dtype = make.dtype(),
                               .elements = update.elements(),
                               .update = update.as<float>(side),
                               .sum_of_squares = sum.as<float>(side),
                               .x = x.at(side)};
  });
  return c;
}

KernelCase muon_combine(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  KernelCase c = make.make("muon combine");
  BenchArray& x = make.input(c, make.dtype(), n);
  BenchArray& products = make.input(c, DType::f32, n);
  BenchArray& y = make.output(c, "y", make.dtype(), n, roundings(make.dtype(), 2, 8 * 0x1p-24));
  c.bytes = static_cast<double>(x.bytes() + products.bytes() + y.bytes());
  make.run(c, make.kernels().muon, &muon::Variant::combine, muon::reference_combine, [&](Side side) {
    return muon::CombineArgs{.dtype = make.dtype(),
                             .elements = x.elements(),
                             .x = x.at(side),
                             .products = products.as<float>(side),
                             .y = y.at(side),
                             .alpha = 3.4445f,
                             .beta = 1};
  });
  return c;
}

KernelCase muon_apply(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  KernelCase c = make.make(make.dtype() == DType::f32 ? "muon apply" : "muon apply with a copy");
  const Bound bound = [](double) { return 4 * 0x1p-24; };
  BenchArray& w = make.input(c, DType::f32, n);
  BenchArray& x = make.input(c, make.dtype(), n);
  BenchArray& rate = make.input(c, DType::f32, 1, 0, 1);
  BenchArray& state = state_of(make, c);
  CaseMaker::also_output(c, "w", w, bound);
  const BenchArray* copy = copy_of_weights(make, c, n, bound(1));
  c.bytes = static_cast<double>(2 * w.bytes() + x.bytes()) + c.unread_bytes;
  make.run(c, make.kernels().muon, &muon::Variant::apply, muon::reference_apply, [&](Side side) {
    return muon::ApplyArgs{.dtype = make.dtype(),
                           .elements = w.elements(),
                           .weights = w.as<float>(side),
                           .x = x.at(side),
                           .state = state.as<step_state::StepState>(side),
                           .learning_rate = rate.as<float>(side),
                           .weight_decay = 0.1,
                           .copy_dtype = make.dtype(),
                           .copy = copy ? copy->at(side) : nullptr};
  });
  return c;
}

KernelCase gradient_statistics_run(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  KernelCase c = make.make("gradient_statistics");
  BenchArray& x = make.input(c, make.dtype(), n);
  BenchArray& sum = make.output(c, "sum", DType::f32, 1, roundings(DType::f32, static_cast<double>(n) / 65536 + 301));
  BenchArray& non_finite = make.output(c, "non_finite", DType::i32, 1, exact());
  BenchArray& first = make.output(c, "first", DType::i64, 1, exact());
  BenchArray& tiny = make.output(c, "tiny", DType::i64, 1, exact());
  BenchArray& scratch = make.workspace(c, gradient_statistics::workspace_bytes(static_cast<std::size_t>(n)));
  c.bytes = static_cast<double>(x.bytes());
  c.flops = 2 * static_cast<double>(n);
  make.run(c, make.kernels().gradient_statistics, &gradient_statistics::Variant::run,
           gradient_statistics::reference_run, [&](Side side) {
             return gradient_statistics::Args{.dtype = make.dtype(),
                                              .x = x.at(side),
                                              .elements = x.elements(),
                                              .tiny = 0x1p-8f,
                                              .sum = sum.as<float>(side),
                                              .non_finite = non_finite.as<std::int32_t>(side),
                                              .first_non_finite = first.as<std::int64_t>(side),
                                              .tiny_count = tiny.as<std::int64_t>(side),
                                              .workspace = scratch.at(side)};
           });
  if (make.has_plain_loops())
    c.plain_loop = [&x, &sum] { *sum.floats() = plain().sum_of_squares(x.floats(), x.elements()); };
  return c;
}

/// The first gradients exist as partial sums, whose sums are exact in any order.
KernelCase gradient_statistics_finish(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  const std::int64_t summed = std::min(n, make.extent("summed", 18432));
  const std::int64_t count = make.extent("slices", 16);
  KernelCase c = make.make("gradient_statistics finish");
  BenchArray& x = make.input(c, DType::f32, n, -1, 1, 0x1p-10);
  BenchArray& slices = make.input(c, DType::f32, count * summed, -1, 1, 0x1p-10);
  CaseMaker::also_output(c, "x", x, exact());
  BenchArray& sum = make.output(c, "sum", DType::f32, 1, roundings(DType::f32, static_cast<double>(n) / 65536 + 301));
  BenchArray& non_finite = make.output(c, "non_finite", DType::i32, 1, exact());
  BenchArray& first = make.output(c, "first", DType::i64, 1, exact());
  BenchArray& tiny = make.output(c, "tiny", DType::i64, 1, exact());
  const std::size_t blocks = gradient_statistics::block_count(x.elements());
  const std::size_t notes_at = gradient_statistics::notes_behind(blocks);
  BenchArray& scratch = make.workspace(c, 2 * notes_at * sizeof(float));
  BenchArray& arrivals = make.object(c, 0U);
  c.bytes = static_cast<double>(x.bytes() + slices.bytes());  // what is written of x is not read
  c.flops = 2 * static_cast<double>(n) + static_cast<double>(slices.elements());
  struct Lists {
    gradient_statistics::Run run;
    PartialSum sum;
  };
  const auto lists = std::make_shared<std::array<Lists, 2>>();  // of each side; arguments only refer to them
  make.run(c, make.kernels().gradient_statistics, &gradient_statistics::Variant::finish,
           gradient_statistics::reference_finish, [&](Side side) {
             Lists& own = lists->at(side == Side::host ? 0 : 1);
             own = {{x.as<float>(side), x.elements(), 0},
                    {slices.as<float>(side), count, summed, summed, x.as<float>(side)}};
             return gradient_statistics::FinishArgs{.runs = {&own.run, 1},
                                                    .partial_sums = {&own.sum, 1},
                                                    .tiny = 0x1p-8f,
                                                    .blocks = scratch.as<float>(side),
                                                    .notes = scratch.as<float>(side) + notes_at,
                                                    .count = blocks,
                                                    .sum = sum.as<float>(side),
                                                    .non_finite = non_finite.as<std::int32_t>(side),
                                                    .first_non_finite = first.as<std::int64_t>(side),
                                                    .tiny_count = tiny.as<std::int64_t>(side),
                                                    .arrivals = arrivals.as<unsigned>(side)};
           });
  c.reference = [reference = std::move(c.reference), lists] { reference(); };  // the lists live as long as the case
  return c;
}

}  // namespace

Cases exact_sum_cases(CaseMaker& make) { return cases_of(make, exact_sum_add, exact_sum_read); }

Cases gradient_statistics_cases(CaseMaker& make) {
  Cases cases;
  cases.push_back(gradient_statistics_run(make));
  if (make.dtype() == DType::f32) cases.push_back(gradient_statistics_finish(make));
  return cases;
}

Cases step_state_cases(CaseMaker& make) { return cases_of(make, step_state_prepare, step_state_advance); }

Cases adam_cases(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  KernelCase c = make.make(make.dtype() == DType::f32 ? "adam" : "adam with a copy");
  const Bound bound = [](double) { return 4 * 0x1p-24; };
  BenchArray& w = make.input(c, DType::f32, n);
  BenchArray& g = make.input(c, DType::f32, n);
  BenchArray& m = make.input(c, DType::f32, n);
  BenchArray& v = make.input(c, DType::f32, n, 0, 1);
  BenchArray& state = state_of(make, c);
  CaseMaker::also_output(c, "w", w, bound);
  CaseMaker::also_output(c, "m", m, bound);
  CaseMaker::also_output(c, "v", v, bound);
  const BenchArray* copy = copy_of_weights(make, c, n, bound(1));
  c.bytes = 7 * static_cast<double>(w.bytes()) + c.unread_bytes;
  make.run(c, make.kernels().adam, &adam::Variant::run, adam::reference_run, [&](Side side) {
    return adam::Args{.elements = w.elements(),
                      .weights = w.as<float>(side),
                      .gradients = g.as<float>(side),
                      .m = m.as<float>(side),
                      .v = v.as<float>(side),
                      .state = state.as<step_state::StepState>(side),
                      .hyper = {},
                      .copy_dtype = make.dtype(),
                      .copy = copy ? copy->at(side) : nullptr};
  });
  const adam::Hyper hyper;
  const PlainAdamStep step{.beta1 = static_cast<float>(hyper.beta1),
                           .beta2 = static_cast<float>(hyper.beta2),
                           .epsilon = static_cast<float>(hyper.epsilon),
                           .step_size = static_cast<float>(kLearningRate / (1 - std::pow(hyper.beta1, kApplied + 1))),
                           .root_correction2 = static_cast<float>(std::sqrt(1 - std::pow(hyper.beta2, kApplied + 1)))};
  if (make.has_plain_loops())
    c.plain_loop = [&w, &g, &m, &v, step] {
      plain().adam(w.floats(), g.floats(), m.floats(), v.floats(), w.elements(), step);
    };
  return only(std::move(c));
}

Cases sgd_cases(CaseMaker& make) { return cases_with<bool>(make, {true, false}, sgd_of); }

Cases muon_cases(CaseMaker& make) { return cases_of(make, muon_momentum, muon_normalize, muon_combine, muon_apply); }

Cases ema_cases(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  KernelCase c = make.make("ema");
  BenchArray& w = make.input(c, DType::f32, n);
  BenchArray& average = make.input(c, DType::f32, n);
  BenchArray& state = state_of(make, c);
  CaseMaker::also_output(c, "average", average, [](double) { return 4 * 0x1p-24; });
  c.bytes = 3 * static_cast<double>(w.bytes());
  c.flops = 3 * static_cast<double>(n);
  make.run(c, make.kernels().ema, &ema::Variant::run, ema::reference_run, [&](Side side) {
    return ema::Args{.elements = w.elements(),
                     .weights = w.as<float>(side),
                     .average = average.as<float>(side),
                     .state = state.as<step_state::StepState>(side),
                     .decay = 0.999};
  });
  return only(std::move(c));
}

}  // namespace gradring::kernels::bench
