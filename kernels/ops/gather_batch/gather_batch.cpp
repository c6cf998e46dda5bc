// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/gather_batch/gather_batch.h"

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels::gather_batch {
namespace {

constexpr std::string_view kOp = "gather_batch";

/// The visit of that row, or -1 if its sample is missing.
std::int64_t visit_of_row(const Args& args, std::int64_t row) {
  const std::int64_t position = *args.first + row;
  if (position < 0 || position >= args.positions) return -1;
  const std::int64_t visit = args.order[position];
  return sample_of(visit) < args.samples ? visit : -1;
}

void check_augmentation(const Args& args) {
  lib::check_at_least(kOp, 1, {{"width", args.width}});
  check(args.elements / args.channels % args.width == 0, [&] {
    return "gather_batch: an image has " + std::to_string(args.elements / args.channels) +
           " pixels, expected a multiple of its width, " + std::to_string(args.width);
  });
  const char* problem = problem_of(args.augment, args.height(), args.width);
  check(problem == nullptr, [&] { return "gather_batch: " + std::string(problem); });
  if (args.batch == 0) return;
  lib::check_pointer(kOp, "epoch", args.epoch);
  if (args.augment.mixes())
    lib::check_pointers(kOp, {{"lambdas", args.lambdas}, {"labels_b", args.labels_b}, {"weights_b", args.weights_b}});
}

Mix mix_of_visit(const Args& args, std::int64_t visit) {
  return mix_of(args.augment, args.seed, *args.epoch, visit, args.samples, static_cast<int>(args.height()),
                static_cast<int>(args.width), args.lambdas, args.visits);
}

/// One channel of a pixel of the augmented image, or nothing in a cutout.
std::optional<float> value_of(const Args& args, std::int64_t visit, std::int64_t pixel, std::int64_t channel) {
  if (!args.augment.any()) return args.x[sample_of(visit) * args.elements + channel + pixel * args.channels];
  const int height = static_cast<int>(args.height()), width = static_cast<int>(args.width);
  const int y = static_cast<int>(pixel / width), x = static_cast<int>(pixel % width);
  const auto drawn = [&](std::int64_t of) { return draw_of(args.augment, args.seed, *args.epoch, of, height, width); };
  const auto shown = [&](std::int64_t of) {
    return shown_pixel(args.x + sample_of(of) * args.elements + channel, drawn(of), y, x, height, width,
                       static_cast<int>(args.channels));
  };
  const Draw draw = drawn(visit);
  if (draw.cuts_row(y) && draw.cuts_col(x)) return std::nullopt;
  if (!args.augment.mixes()) return shown(visit);
  const Mix mix = mix_of_visit(args, visit);
  return mix.shows_partner(y, x) ? shown(mix.partner) : mix.of(shown(visit), shown(mix.partner));
}

/// The second label and its weight.
void write_label_b(const Args& args, std::int64_t row, std::int64_t visit) {
  if (!args.augment.mixes()) return;
  const Mix mix = visit < 0 ? Mix() : mix_of_visit(args, visit);
  args.labels_b[row] = visit < 0 ? -1 : args.x_labels[sample_of(mix.partner)];
  args.weights_b[row] = mix.label_weight(static_cast<int>(args.height()), static_cast<int>(args.width));
}

}  // namespace

void check_args(const Args& args) {
  lib::check_floating(kOp, "dtype", args.dtype);
  lib::check_at_least(
      kOp, 0,
      {{"samples", args.samples}, {"positions", args.positions}, {"batch", args.batch}, {"elements", args.elements}});
  lib::check_at_least(kOp, 1, {{"channels", args.channels}});
  check(args.elements % args.channels == 0, [&] {
    return "gather_batch: elements is " + std::to_string(args.elements) + ", expected a multiple of the " +
           std::to_string(args.channels) + " channels";
  });
  if (args.augment.any()) check_augmentation(args);
  if (args.batch == 0) return;
  lib::check_pointers(kOp, {{"x", args.x},
                            {"x_labels", args.x_labels},
                            {"order", args.order},
                            {"first", args.first},
                            {"mean", args.mean},
                            {"std", args.std},
                            {"y", args.y},
                            {"labels", args.labels}});
}

void reference_run(const Args& args) {
  check_args(args);
  std::vector<double> y(static_cast<std::size_t>(args.batch * args.elements), std::numeric_limits<double>::quiet_NaN());
  for (std::int64_t row = 0; row < args.batch; ++row) {
    const std::int64_t visit = visit_of_row(args, row);
    args.labels[row] = visit < 0 ? -1 : args.x_labels[sample_of(visit)];
    write_label_b(args, row, visit);
    if (visit < 0) continue;
    for (std::int64_t i = 0; i < args.elements; ++i) {
      const std::int64_t channel = i % args.channels;
      const std::optional<float> shown = value_of(args, visit, i / args.channels, channel);
      double& value = y[static_cast<std::size_t>(row * args.elements + i)];
      if (!shown) {
        value = 0;
        continue;
      }
      const float scaled = *shown / 255.0f;
      const float centred = scaled - args.mean[channel];
      value = static_cast<double>(centred / args.std[channel]);
    }
  }
  if (args.batch == 0) return;
  lib::write_values(args.dtype, args.y, y);
  if (args.arrivals) *args.first += args.batch;
}

}  // namespace gradring::kernels::gather_batch
