// SPDX-License-Identifier: Apache-2.0
// gather_batch: what begins a step.
#include "kernels/bench/case_families.h"

namespace gradring::kernels::bench {
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
