// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/unfused.h"

#include <array>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::nn::bench {
namespace {

using kernels::Stream;
namespace crp = kernels::conv_relu_pool;

constexpr auto kTimeout = std::chrono::minutes(1);

kernels::max_pool2d::Geometry pooling_of(const crp::Geometry& geometry) {
  return {.batch = geometry.conv.batch,
          .height = geometry.conv.out_height(),
          .width = geometry.conv.out_width(),
          .channels = geometry.conv.out_channels,
          .window = geometry.window,
          .stride = geometry.window};
}

std::size_t bytes_of(std::int64_t elements, kernels::DType dtype) {
  return static_cast<std::size_t>(elements) * kernels::size_of(dtype);
}

}  // namespace

std::vector<NodeSpec> conv_relu_nodes(const crp::Geometry& geometry, kernels::DType dtype) {
  const auto& g = geometry.conv;
  check(g.kernel_height == g.kernel_width, [&] {
    return "a layer has a kernel of " + std::to_string(g.kernel_height) + " x " + std::to_string(g.kernel_width) +
           ", expected a square one";
  });
  const Shape x{g.batch, g.in_height, g.in_width, g.in_channels};
  const Shape y{g.batch, g.out_height(), g.out_width(), g.out_channels};
  return {{.layer = Conv2d{.in_channels = g.in_channels,
                           .out_channels = g.out_channels,
                           .kernel = g.kernel_height,
                           .stride = g.stride,
                           .padding = g.padding},
           .input = x,
           .output = y,
           .dtype = dtype},
          {.layer = Relu{}, .input = y, .output = y, .dtype = dtype}};
}

Unfused::Unfused(Parts parts, const crp::Geometry& geometry, kernels::DType dtype)
    : parts_(std::move(parts)),
      geometry_(geometry),
      pool_geometry_(pooling_of(geometry)),
      dtype_(dtype),
      y_(parts_.device.allocate(bytes_of(pool_geometry_.in_elements(), dtype))),
      dy_(parts_.device.allocate(y_.size())),
      codes_(parts_.device.allocate(static_cast<std::size_t>(pool_geometry_.out_elements()))),
      no_bias_(parts_.device.allocate(bytes_of(geometry.conv.out_channels, dtype))),
      saved_(parts_.device.allocate(parts_.conv_relu->saved_bytes())),
      workspace_(parts_.device.allocate(parts_.conv_relu->workspace_bytes())) {
  check(parts_.conv_relu->nodes() == 2, "the plan must include the ReLU");
}

void Unfused::enqueue_forward(Stream& stream, const crp::ForwardArgs& args) {
  const std::array parameters{args.w, args.b};
  parts_.conv_relu->enqueue_forward(stream, {.batch = geometry_.conv.batch,
                                             .x = args.x,
                                             .y = y_.data(),
                                             .parameters = parameters,
                                             .saved = saved_.as<std::byte>(),
                                             .workspace = workspace_.as<std::byte>()});
  parts_.pool.forward(
      stream,
      {.geometry = pool_geometry_, .dtype = dtype_, .x = y_.data(), .y = args.y, .codes = codes_.as<std::uint8_t>()});
}

void Unfused::enqueue_backward(Stream& stream, const crp::BackwardArgs& args) {
  if (!std::exchange(has_codes_, true)) set_codes(stream, args.codes);
  parts_.pool.backward(stream, {.geometry = pool_geometry_,
                                .dtype = dtype_,
                                .dy = args.dy,
                                .codes = codes_.as<std::uint8_t>(),
                                .dx = dy_.data()});
  const std::array parameters{args.w, static_cast<const void*>(no_bias_.data())};
  const std::array gradients{args.dw, args.db};
  parts_.conv_relu->enqueue_backward(stream, {.batch = geometry_.conv.batch,
                                              .x = args.x,
                                              .y = y_.data(),
                                              .dy = dy_.data(),
                                              .dx = args.dx,
                                              .parameters = parameters,
                                              .gradients = gradients,
                                              .saved = saved_.as<std::byte>(),
                                              .workspace = workspace_.as<std::byte>()});
}

void Unfused::set_codes(Stream& stream, const std::uint8_t* codes) {
  const auto& pool = pool_geometry_;
  std::vector<std::uint8_t> packed(static_cast<std::size_t>(geometry_.code_bytes()));
  stream.enqueue_copy(packed.data(), codes, packed.size());
  stream.synchronize(Deadline::after(kTimeout));
  std::vector<std::uint8_t> positions(codes_.size());
  std::vector<double> y(static_cast<std::size_t>(pool.in_elements()), 1.0);  // above 0, so that ReLU passes gradients
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t channel = at % pool.channels;
    const unsigned code =
        crp::code_at(packed.data() + at / pool.channels * geometry_.code_bytes_of_position(), channel);
    positions[i] = static_cast<std::uint8_t>(code);
    if (code != crp::kCutOff) continue;
    positions[i] = 0;
    const std::int64_t column = at / pool.channels % pool.out_width();
    const std::int64_t row = at / pool.channels / pool.out_width() % pool.out_height();
    const std::int64_t sample = at / pool.channels / pool.out_width() / pool.out_height();
    const std::int64_t first = (sample * pool.height + row * pool.window) * pool.width + column * pool.window;
    y[static_cast<std::size_t>(first * pool.channels + channel)] = 0;
  }
  std::vector<std::byte> rounded(y_.size());
  kernels::lib::write_values(dtype_, rounded.data(), y);
  stream.enqueue_copy(y_.data(), rounded.data(), rounded.size());
  stream.enqueue_copy(codes_.data(), positions.data(), positions.size());
  stream.enqueue_zero(no_bias_.data(), no_bias_.size());
  stream.synchronize(Deadline::after(kTimeout));
}

}  // namespace gradring::nn::bench
