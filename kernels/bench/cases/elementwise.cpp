// SPDX-License-Identifier: Apache-2.0
// fill, scale, accumulate, cast, relu: a loop over elements.
// gather_batch: what begins a step.

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/plain_loops.h"

namespace gradring::kernels::bench {
namespace {

constexpr std::int64_t kParameters = 431'242;             // of the seed ConvNet
constexpr std::int64_t kActivations = 64 * 26 * 26 * 32;  // after its first convolution, at batch 64

}  // namespace

Cases fill_cases(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kActivations);
  KernelCase c = make.make("fill");
  BenchArray& y = make.output(c, make.dtype(), n, exact());
  const auto args = [&y, dtype = make.dtype()](Side side) {
    return fill::Args{.dtype = dtype, .y = y.at(side), .elements = y.elements(), .value = 0.5};
  };
  c.bytes = static_cast<double>(y.bytes());
  c.reference = [=] { fill::reference::run(args(Side::host)); };
  make.variants(c, make.kernels().fill, make.dtype(),
                [=](const fill::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  if (make.has_plain_loops()) c.plain_loop = [&y] { plain().fill(y.as<float>(Side::device), y.elements(), 0.5f); };
  return only(std::move(c));
}

Cases scale_cases(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kParameters);
  KernelCase c = make.make("scale");
  BenchArray& x = make.input(c, make.dtype(), n);
  BenchArray& y = make.output(c, make.dtype(), n, roundings(make.dtype(), 2));
  const auto args = [&x, &y, dtype = make.dtype()](Side side) {
    return scale::Args{.dtype = dtype, .x = x.at(side), .y = y.at(side), .elements = x.elements(), .factor = 0.3f};
  };
  c.bytes = 2 * static_cast<double>(y.bytes());
  c.flops = static_cast<double>(n);
  c.reference = [=] { scale::reference::run(args(Side::host)); };
  make.variants(c, make.kernels().scale, make.dtype(),
                [=](const scale::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  if (make.has_plain_loops())
    c.plain_loop = [&x, &y] {
      plain().scale(x.as<float>(Side::device), y.as<float>(Side::device), x.elements(), 0.3f);
    };
  return only(std::move(c));
}

Cases accumulate_cases(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kParameters);
  KernelCase c = make.make("accumulate");
  BenchArray& x = make.input(c, make.dtype(), n);
  BenchArray& y = make.input(c, make.dtype(), n);
  CaseMaker::also_output(c, y, roundings(make.dtype(), 2));
  const auto args = [&x, &y, dtype = make.dtype()](Side side) {
    return accumulate::Args{.dtype = dtype, .x = x.at(side), .y = y.at(side), .elements = x.elements()};
  };
  c.bytes = 3 * static_cast<double>(y.bytes());
  c.flops = static_cast<double>(n);
  c.reference = [=] { accumulate::reference::run(args(Side::host)); };
  make.variants(c, make.kernels().accumulate, make.dtype(),
                [=](const accumulate::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  if (make.has_plain_loops())
    c.plain_loop = [&x, &y] { plain().accumulate(x.as<float>(Side::device), y.as<float>(Side::device), x.elements()); };
  return only(std::move(c));
}

/// From f32 to f16, or from another type to f32.
Cases cast_cases(CaseMaker& make) {
  const DType from = make.dtype();
  const DType to = from == DType::f32 ? DType::f16 : DType::f32;
  const std::int64_t n = make.extent("elements", kParameters);
  KernelCase c = make.make("cast to " + std::string(name_of(to)));
  BenchArray& x = make.input(c, from, n);
  BenchArray& y = make.output(c, to, n, exact());
  const auto args = [&x, &y, from, to](Side side) {
    return cast::Args{.from = from, .to = to, .x = x.at(side), .y = y.at(side), .elements = x.elements()};
  };
  c.bytes = static_cast<double>(x.bytes() + y.bytes());
  c.reference = [=] { cast::reference::run(args(Side::host)); };
  make.variants(c, make.kernels().cast, from,
                [=](const cast::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  if (make.has_plain_loops())
    c.plain_loop = [&x, &y] {
      plain().cast(x.as<float>(Side::device), y.as<lib::NativeHalf>(Side::device), x.elements());
    };
  return only(std::move(c));
}

namespace {

KernelCase relu_forward(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kActivations);
  KernelCase c = make.make("relu forward");
  BenchArray& x = make.input(c, make.dtype(), n);
  BenchArray& y = make.output(c, make.dtype(), n, exact());
  const auto args = [&x, &y, dtype = make.dtype()](Side side) {
    return relu::ForwardArgs{.dtype = dtype, .x = x.at(side), .y = y.at(side), .elements = x.elements()};
  };
  c.bytes = 2 * static_cast<double>(y.bytes());
  c.reference = [=] { relu::reference::forward(args(Side::host)); };
  make.variants(c, make.kernels().relu, make.dtype(),
                [=](const relu::Variant& variant, Stream& stream) { variant.forward(stream, args(Side::device)); });
  if (make.has_plain_loops())
    c.plain_loop = [&x, &y] {
      plain().relu_forward(x.as<float>(Side::device), y.as<float>(Side::device), x.elements());
    };
  return c;
}

KernelCase relu_backward(CaseMaker& make) {
  const std::int64_t n = make.extent("elements", kActivations);
  KernelCase c = make.make("relu backward");
  BenchArray& y = make.input(c, make.dtype(), n);
  BenchArray& dy = make.input(c, make.dtype(), n);
  BenchArray& dx = make.output(c, make.dtype(), n, exact());
  const auto args = [&y, &dy, &dx, dtype = make.dtype()](Side side) {
    return relu::BackwardArgs{
        .dtype = dtype, .y = y.at(side), .dy = dy.at(side), .dx = dx.at(side), .elements = y.elements()};
  };
  c.bytes = 3 * static_cast<double>(y.bytes());
  c.reference = [=] { relu::reference::backward(args(Side::host)); };
  make.variants(c, make.kernels().relu, make.dtype(),
                [=](const relu::Variant& variant, Stream& stream) { variant.backward(stream, args(Side::device)); });
  if (make.has_plain_loops())
    c.plain_loop = [&y, &dy, &dx] {
      plain().relu_backward(y.as<float>(Side::device), dy.as<float>(Side::device), dx.as<float>(Side::device),
                            y.elements());
    };
  return c;
}

}  // namespace

Cases relu_cases(CaseMaker& make) {
  Cases cases;
  cases.push_back(relu_forward(make));
  cases.push_back(relu_backward(make));
  return cases;
}

namespace {

KernelCase gather_batch_run(CaseMaker& make) {
  const std::int64_t batch = make.extent("batch", 64);
  const std::int64_t samples = make.extent("samples", 4096);
  const std::int64_t channels = make.extent("channels", 1);
  const std::int64_t elements = make.extent("pixels", 28 * 28) * channels;
  KernelCase c = make.make("gather_batch");
  BenchArray& x = make.input(c, DType::u8, samples * elements, 0, 256);
  BenchArray& x_labels = make.input(c, DType::i32, samples, 0, 10);
  BenchArray& order = make.input(c, DType::i64, batch, 0, static_cast<double>(samples));
  BenchArray& first = make.object(c, std::int64_t{0});
  BenchArray& mean = make.input(c, DType::f32, channels, 0, 1);
  BenchArray& std = make.input(c, DType::f32, channels, 0.25, 1);
  BenchArray& y = make.output(c, make.dtype(), batch * elements, exact());
  BenchArray& labels = make.output(c, DType::i32, batch, exact());
  const auto args = [&x, &x_labels, &order, &first, &mean, &std, &y, &labels, batch, samples, channels, elements,
                     dtype = make.dtype()](Side side) {
    return gather_batch::Args{.dtype = dtype,
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
                              .labels = labels.as<std::int32_t>(side)};
  };
  c.bytes = static_cast<double>(batch * elements) + c.unread_bytes;
  c.reference = [=] { gather_batch::reference::run(args(Side::host)); };
  make.variants(c, make.kernels().gather_batch, make.dtype(),
                [=](const gather_batch::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  return c;
}

KernelCase gather_batch_advance(CaseMaker& make) {
  KernelCase c = make.make("gather_batch advance");
  BenchArray& first = make.object(c, std::int64_t{0});
  CaseMaker::also_output(c, first, exact());
  const auto args = [&first](Side side) {
    return gather_batch::AdvanceArgs{.first = first.as<std::int64_t>(side), .by = 64};
  };
  c.bytes = sizeof(std::int64_t);
  c.reference = [=] { gather_batch::reference::advance(args(Side::host)); };
  make.variants(
      c, make.kernels().gather_batch, make.dtype(),
      [=](const gather_batch::Variant& variant, Stream& stream) { variant.advance(stream, args(Side::device)); });
  return c;
}

}  // namespace

Cases gather_batch_cases(CaseMaker& make) {
  Cases cases;
  cases.push_back(gather_batch_run(make));
  cases.push_back(gather_batch_advance(make));
  return cases;
}

}  // namespace gradring::kernels::bench
