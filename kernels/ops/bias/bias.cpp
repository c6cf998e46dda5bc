// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/bias/bias.h"

#include <vector>

#include "kernels/lib/reference.h"

namespace gradring::kernels::bias {

void check_args(const AddArgs& args) {
  lib::check_floating("bias add", "dtype", args.dtype);
  lib::check_at_least("bias add", 0, {{"rows", args.rows}, {"channels", args.channels}});
  const std::size_t elements = static_cast<std::size_t>(args.rows * args.channels);
  if (elements == 0) return;
  lib::check_pointers("bias add", {{"x", args.x}, {"bias", args.bias}, {"y", args.y}});
  lib::check_same_or_apart("bias add", args.x, args.y, elements * size_of(args.dtype));
}

void check_args(const GradArgs& args) {
  lib::check_floating("bias grad", "dtype", args.dtype);
  lib::check_at_least("bias grad", 0, {{"rows", args.rows}, {"channels", args.channels}});
  if (args.channels == 0) return;
  lib::check_pointer("bias grad", "db", args.db);
  if (args.rows == 0) return;
  lib::check_pointer("bias grad", "dy", args.dy);
  if (!args.y) return;
  lib::check_pointer("bias grad", "dx", args.dx);
  const std::size_t bytes = static_cast<std::size_t>(args.rows * args.channels) * size_of(args.dtype);
  lib::check_same_or_apart("bias grad", args.dy, args.dx, bytes);
  lib::check_apart("bias grad", args.y, bytes, args.dx, bytes);
}

void reference_add(const AddArgs& args) {
  check_args(args);
  const auto rows = static_cast<std::size_t>(args.rows);
  const auto channels = static_cast<std::size_t>(args.channels);
  const std::vector<double> b = lib::read_values(args.dtype, args.bias, channels);
  std::vector<double> y = lib::read_values(args.dtype, args.x, rows * channels);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < channels; ++c) y[r * channels + c] += b[c];
  lib::write_values(args.dtype, args.y, y);
}

void reference_grad(const GradArgs& args) {
  check_args(args);
  const auto rows = static_cast<std::size_t>(args.rows);
  const auto channels = static_cast<std::size_t>(args.channels);
  std::vector<double> dx = lib::read_values(args.dtype, args.dy, rows * channels);
  if (args.y) {
    const std::vector<double> y = lib::read_values(args.dtype, args.y, rows * channels);
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = y[i] > 0 ? dx[i] : 0;
    lib::write_values(args.dtype, args.dx, dx);
  }
  std::vector<double> db(channels, 0.0);
  if (args.accumulate) db = lib::read_values(DType::f32, args.db, channels);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < channels; ++c) db[c] += dx[r * channels + c];
  lib::write_values(DType::f32, args.db, db);
}

}  // namespace gradring::kernels::bias
