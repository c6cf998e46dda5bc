// SPDX-License-Identifier: Apache-2.0
// fill, scale, accumulate, cast, relu, bias: loops over elements.
// gather_batch: what begins a step; tally: what ends a batch of an evaluation.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/plain_loops.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels::bench {
namespace {

constexpr std::int64_t kActivations = 64 * 26 * 26 * 32;  // after its first convolution, at batch 64

/// In f32, the default, these; else the type of the run, as no run is in integers.
std::vector<DType> types_of(const CaseMaker& make, std::vector<DType> with_f32) {
  if (make.dtype() == DType::f32) return with_f32;
  return {make.dtype()};
}

KernelCase fill_of(CaseMaker& make, DType dtype) {
  constexpr float kValue = 5;
  const std::int64_t n = make.extent("elements", kActivations);
  KernelCase c = make.make("fill");
  c.dtype = dtype;
  BenchArray& y = make.output(c, "y", dtype, n, exact());
  c.bytes = static_cast<double>(y.bytes());
  make.run(c, make.kernels().fill, &fill::Variant::run, fill::reference_run, [&](Side side) {
    return fill::Args{.dtype = dtype, .y = y.at(side), .elements = y.elements(), .value = kValue};
  });
  if (dtype == DType::f32 && make.has_plain_loops())
    c.plain_loop = [&y] { plain().fill(y.floats(), y.elements(), kValue); };
  return c;
}

KernelCase accumulate_of(CaseMaker& make, DType dtype) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  const double most = lib::is_floating(dtype) ? 1 : 1e6;
  KernelCase c = make.make("accumulate");
  c.dtype = dtype;
  BenchArray& x = make.input(c, dtype, n, -most, most);
  BenchArray& y = make.input(c, dtype, n, -most, most);
  CaseMaker::also_output(c, "y", y, roundings(dtype, 2));
  c.bytes = 3 * static_cast<double>(y.bytes());
  c.flops = static_cast<double>(n);
  make.run(c, make.kernels().accumulate, &accumulate::Variant::run, accumulate::reference_run, [&](Side side) {
    return accumulate::Args{.dtype = dtype, .x = x.at(side), .y = y.at(side), .elements = x.elements()};
  });
  if (dtype == DType::f32 && make.has_plain_loops())
    c.plain_loop = [&x, &y] { plain().accumulate(x.floats(), y.floats(), x.elements()); };
  return c;
}

KernelCase cast_to(CaseMaker& make, DType to) {
  const DType from = make.dtype();
  const std::int64_t n = make.extent("elements", kSeedParameters);
  KernelCase c = make.make("cast to " + std::string(name_of(to)));
  BenchArray& x = make.input(c, from, n);
  BenchArray& y = make.output(c, "y", to, n, exact());
  c.bytes = static_cast<double>(x.bytes() + y.bytes());
  make.run(c, make.kernels().cast, &cast::Variant::run, cast::reference_run, [&](Side side) {
    return cast::Args{.from = from, .to = to, .x = x.at(side), .y = y.at(side), .elements = x.elements()};
  });
  if (to == DType::f16 && make.has_plain_loops())
    c.plain_loop = [&x, &y] { plain().cast(x.floats(), y.as<lib::NativeHalf>(Side::device), x.elements()); };
  return c;
}

KernelCase relu_forward_case(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kActivations);
  const DType dtype = make.dtype();
  KernelCase c = make.make("relu forward");
  BenchArray& x = make.input(c, dtype, n);
  BenchArray& y = make.output(c, "y", dtype, n, exact());
  c.bytes = 2 * static_cast<double>(y.bytes());
  make.run(c, make.kernels().relu, &relu::Variant::forward, relu::reference_forward, [&](Side side) {
    return relu::ForwardArgs{.dtype = dtype, .x = x.at(side), .y = y.at(side), .elements = x.elements()};
  });
  if (make.has_plain_loops()) c.plain_loop = [&x, &y] { plain().relu_forward(x.floats(), y.floats(), x.elements()); };
  return c;
}

KernelCase relu_backward_case(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kActivations);
  const DType dtype = make.dtype();
  KernelCase c = make.make("relu backward");
  BenchArray& y = make.input(c, dtype, n);
  BenchArray& dy = make.input(c, dtype, n);
  BenchArray& dx = make.output(c, "dx", dtype, n, exact());
  c.bytes = 3 * static_cast<double>(y.bytes());
  make.run(c, make.kernels().relu, &relu::Variant::backward, relu::reference_backward, [&](Side side) {
    return relu::BackwardArgs{
        .dtype = dtype, .y = y.at(side), .dy = dy.at(side), .dx = dx.at(side), .elements = y.elements()};
  });
  if (make.has_plain_loops())
    c.plain_loop = [&y, &dy, &dx] { plain().relu_backward(y.floats(), dy.floats(), dx.floats(), y.elements()); };
  return c;
}

KernelCase bias_add(CaseMaker& make) {
  const std::int64_t rows = make.extent("rows", 64 * 26 * 26);
  const std::int64_t channels = make.extent("channels", 32);
  const DType dtype = make.dtype();
  KernelCase c = make.make("bias add");
  BenchArray& x = make.input(c, dtype, rows * channels);
  BenchArray& b = make.input(c, dtype, channels);
  BenchArray& y = make.output(c, "y", dtype, rows * channels, roundings(dtype, 2));
  c.bytes = 2 * static_cast<double>(x.bytes());
  c.flops = static_cast<double>(rows * channels);
  make.run(c, make.kernels().bias, &bias::Variant::add, bias::reference_add, [&](Side side) {
    return bias::AddArgs{
        .dtype = dtype, .rows = rows, .channels = channels, .x = x.at(side), .bias = b.at(side), .y = y.at(side)};
  });
  if (make.has_plain_loops())
    c.plain_loop = [&x, &b, &y, rows, channels] {
      plain().bias_add(x.floats(), b.floats(), y.floats(), static_cast<std::size_t>(rows),
                       static_cast<std::size_t>(channels));
    };
  return c;
}

KernelCase bias_grad(CaseMaker& make, bool accumulate) {
  const std::int64_t rows = make.extent("rows", 64 * 26 * 26);
  const std::int64_t channels = make.extent("channels", 32);
  const DType dtype = make.dtype();
  KernelCase c = make.make(accumulate ? "bias grad accumulated" : "bias grad");
  BenchArray& dy = make.input(c, dtype, rows * channels);
  const auto terms = static_cast<double>(rows);
  BenchArray& db = make.sum(c, "db", DType::f32, channels,
                            roundings(DType::f32, 2, (terms / 256 + 256) * 0x1p-24 * terms), accumulate);
  BenchArray& scratch = make.workspace(c, bias::grad_workspace_bytes(channels));
  c.bytes = static_cast<double>(dy.bytes());
  c.flops = static_cast<double>(rows * channels);
  make.run(c, make.kernels().bias, &bias::Variant::grad, bias::reference_grad, [&](Side side) {
    return bias::GradArgs{.dtype = dtype,
                          .rows = rows,
                          .channels = channels,
                          .dy = dy.at(side),
                          .db = db.as<float>(side),
                          .accumulate = accumulate,
                          .workspace = scratch.at(side)};
  });
  if (!accumulate && make.has_plain_loops())
    c.plain_loop = [&dy, &db, rows, channels] {
      plain().bias_grad(dy.floats(), db.floats(), static_cast<std::size_t>(rows), static_cast<std::size_t>(channels));
    };
  return c;
}

KernelCase bias_grad_of_relu(CaseMaker& make) {
  const std::int64_t rows = make.extent("rows", 64 * 26 * 26);
  const std::int64_t channels = make.extent("channels", 32);
  const DType dtype = make.dtype();
  KernelCase c = make.make("bias grad of a ReLU");
  BenchArray& y = make.input(c, dtype, rows * channels);
  BenchArray& dy = make.input(c, dtype, rows * channels);
  BenchArray& dx = make.output(c, "dx", dtype, rows * channels, exact());
  const auto terms = static_cast<double>(rows);
  BenchArray& db =
      make.sum(c, "db", DType::f32, channels, roundings(DType::f32, 2, (terms / 256 + 256) * 0x1p-24 * terms), false);
  BenchArray& scratch = make.workspace(c, bias::grad_workspace_bytes(channels));
  c.bytes = 3 * static_cast<double>(dy.bytes());
  c.flops = static_cast<double>(rows * channels);
  make.run(c, make.kernels().bias, &bias::Variant::grad, bias::reference_grad, [&](Side side) {
    return bias::GradArgs{.dtype = dtype,
                          .rows = rows,
                          .channels = channels,
                          .dy = dy.at(side),
                          .db = db.as<float>(side),
                          .workspace = scratch.at(side),
                          .y = y.at(side),
                          .dx = dx.at(side)};
  });
  return c;
}

/// Augmentations of square images of at least 3 x 3 pixels; others are seen as one row, and not cropped.
std::vector<std::pair<std::string, gather_batch::Augmentation>> augmentations(std::int64_t width, std::int64_t pixels) {
  using gather_batch::Flip;
  const int crop = width * width == pixels && width > 2 ? 2 : 0;
  const gather_batch::Augmentation cropped{.flip = Flip::random, .crop = crop, .cutout = 1};
  gather_batch::Augmentation mixed = cropped;
  mixed.mixup = mixed.cutmix = gather_batch::Augmentation::kWholeAlpha;
  return {{"gather_batch", {}},
          {"gather_batch cropped", cropped},
          {"gather_batch resized", {.flip = Flip::random, .area_min = 800, .area_max = 10000}},
          {"gather_batch mixed", mixed}};
}

KernelCase gather_batch_run(CaseMaker& make, std::size_t augmentation) {
  const std::int64_t batch = make.extent("batch", 64);
  const std::int64_t samples = make.extent("samples", 4096);
  const std::int64_t channels = make.extent("channels", 1);
  const std::int64_t pixels = make.extent("pixels", 28 * 28), elements = pixels * channels;
  const auto root = static_cast<std::int64_t>(gather_batch::integer_sqrt(static_cast<std::uint64_t>(pixels)));
  const std::int64_t width = root * root == pixels ? root : pixels;
  const auto [name, augment] = augmentations(width, pixels).at(augmentation);
  KernelCase c = make.make(name);
  BenchArray& x = make.input(c, DType::u8, samples * elements, 0, 256);
  BenchArray& x_labels = make.input(c, DType::i32, samples, 0, 10);
  BenchArray& order = make.input(c, DType::i64, batch, 0, static_cast<double>(samples));
  BenchArray& first = make.object(c, std::int64_t{0});
  CaseMaker::also_output(c, "first", first, exact());
  BenchArray& arrivals = make.object(c, 0u);
  BenchArray& mean = make.input(c, DType::f32, channels, 0, 1);
  BenchArray& std = make.input(c, DType::f32, channels, 0.25, 1);
  BenchArray& y = make.output(c, "y", make.dtype(), batch * elements, exact());
  BenchArray& labels = make.output(c, "labels", DType::i32, batch, exact());
  BenchArray& epoch = make.object(c, std::int64_t{1});
  BenchArray& lambdas = make.input(c, DType::i32, 2 * gather_batch::kLambdas, 0, gather_batch::kWholeWeight);
  BenchArray* const labels_b = augment.mixes() ? &make.output(c, "labels_b", DType::i32, batch, exact()) : nullptr;
  BenchArray* const weights_b = augment.mixes() ? &make.output(c, "weights_b", DType::f32, batch, exact()) : nullptr;
  c.bytes = static_cast<double>((augment.mixes() ? 2 : 1) * batch * elements) + c.unread_bytes;
  make.run(c, make.kernels().gather_batch, &gather_batch::Variant::run, gather_batch::reference_run, [&](Side side) {
    return gather_batch::Args{.dtype = make.dtype(),
                              .samples = samples,
                              .positions = batch,
                              .batch = batch,
                              .elements = elements,
                              .channels = channels,
                              .x = x.as<std::uint8_t>(side),
                              .x_labels = x_labels.as<std::int32_t>(side),
                              .order = order.as<std::int64_t>(side),
                              .first = first.as<std::int64_t>(side),
                              .mean = mean.as<float>(side),
                              .std = std.as<float>(side),
                              .y = y.at(side),
                              .labels = labels.as<std::int32_t>(side),
                              .augment = augment,
                              .width = width,
                              .epoch = epoch.as<std::int64_t>(side),
                              .lambdas = lambdas.as<std::int32_t>(side),
                              .labels_b = labels_b ? labels_b->as<std::int32_t>(side) : nullptr,
                              .weights_b = weights_b ? weights_b->as<float>(side) : nullptr,
                              .arrivals = arrivals.as<unsigned>(side)};
  });
  return c;
}

KernelCase tally_run(CaseMaker& make) {
  const std::int64_t rows = make.extent("rows", 250);
  const std::int64_t classes = make.extent("classes", 10);
  KernelCase c = make.make("tally");
  BenchArray& logits = make.input(c, make.dtype(), rows * classes, -4, 4);
  BenchArray& labels = make.input(c, DType::i32, rows, 0, static_cast<double>(classes));
  BenchArray& loss = make.input(c, DType::f32, 1, 0, 1);
  BenchArray& loss_sum = make.object(c, 0.5);
  BenchArray& counts = make.input(c, DType::i64, tally::counts_of(classes), 0, 1000);
  CaseMaker::also_output(c, "loss_sum", loss_sum, exact());
  CaseMaker::also_output(c, "counts", counts, exact());
  c.bytes = static_cast<double>(logits.bytes() + labels.bytes());
  make.run(c, make.kernels().tally, &tally::Variant::run, tally::reference_run, [&](Side side) {
    return tally::Args{.dtype = make.dtype(),
                       .rows = rows,
                       .classes = classes,
                       .logits = logits.at(side),
                       .labels = labels.as<std::int32_t>(side),
                       .loss = loss.as<float>(side),
                       .loss_sum = loss_sum.as<double>(side),
                       .counts = counts.as<std::int64_t>(side)};
  });
  return c;
}

}  // namespace

Cases fill_cases(CaseMaker& make) {
  return cases_with(make, types_of(make, {DType::f32, DType::u8, DType::i64}), fill_of);
}

Cases scale_cases(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kSeedParameters);
  const DType dtype = make.dtype();
  KernelCase c = make.make("scale");
  BenchArray& x = make.input(c, dtype, n);
  BenchArray& y = make.output(c, "y", dtype, n, roundings(dtype, 2));
  c.bytes = 2 * static_cast<double>(y.bytes());
  c.flops = static_cast<double>(n);
  make.run(c, make.kernels().scale, &scale::Variant::run, scale::reference_run, [&](Side side) {
    return scale::Args{.dtype = dtype, .x = x.at(side), .y = y.at(side), .elements = x.elements(), .factor = 0.3f};
  });
  if (make.has_plain_loops()) c.plain_loop = [&x, &y] { plain().scale(x.floats(), y.floats(), x.elements(), 0.3f); };
  return only(std::move(c));
}

Cases accumulate_cases(CaseMaker& make) {
  return cases_with(make, types_of(make, {DType::f32, DType::i32, DType::i64}), accumulate_of);
}

/// To every floating type, the run's own included.
Cases cast_cases(CaseMaker& make) { return cases_with<DType>(make, {DType::f16, DType::f32, DType::bf16}, cast_to); }

Cases relu_cases(CaseMaker& make) { return cases_of(make, relu_forward_case, relu_backward_case); }

Cases bias_cases(CaseMaker& make) {
  Cases cases;
  cases.push_back(bias_add(make));
  for (const bool accumulate : {false, true}) cases.push_back(bias_grad(make, accumulate));
  cases.push_back(bias_grad_of_relu(make));
  return cases;
}

Cases gather_batch_cases(CaseMaker& make) {
  Cases cases;
  for (std::size_t i = 0; i < augmentations(1, 1).size(); ++i) cases.push_back(gather_batch_run(make, i));
  return cases;
}

Cases tally_cases(CaseMaker& make) { return only(tally_run(make)); }

}  // namespace gradring::kernels::bench
