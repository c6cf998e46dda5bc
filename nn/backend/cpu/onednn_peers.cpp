// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/onednn_peers.h"

#include <functional>
#include <utility>
#include <vector>

#include "kernels/lib/variant.h"
#include "kernels/ops/kernel_set.h"
#include "nn/backend/cpu/cpu_backend.h"
#include "nn/backend/cpu/onednn_conv2d.h"
#include "nn/backend/unfused.h"

namespace gradring::nn {
namespace {

using kernels::DType;
using kernels::Stream;
using onednn::Conv2dPrimitives;
namespace crp = kernels::conv_relu_pool;

/// A convolution's primitives and a zero bias: the contract of conv2d has none.
struct Convolution {
  Conv2dPrimitives primitives;
  std::vector<float> bias;

  explicit Convolution(const kernels::conv2d::Geometry& g)
      : primitives(bench::conv_relu_nodes({.conv = g}, DType::f32).front(), false, g.batch),
        bias(static_cast<std::size_t>(g.out_channels)) {}
};

class OnednnPeers final : public kernels::PeerMaker {
 public:
  explicit OnednnPeers(kernels::Device& device) : device_(device), helpers_(device) {
    onednn::cpu_engine();  // limits the instruction set before the first sgemm, which takes no engine
  }

  Peer peer(const kernels::conv2d::ForwardArgs& args) override {
    return convolution(args,
                       [args](Convolution& c) { c.primitives.run_forward(args.x, args.w, c.bias.data(), args.y); });
  }
  Peer peer(const kernels::conv2d::DgradArgs& args) override {
    return convolution(args, [args](Convolution& c) { c.primitives.run_data(args.dy, args.w, args.dx); });
  }
  /// Includes the gradient of the bias, which oneDNN computes with it.
  Peer peer(const kernels::conv2d::WgradArgs& args) override {
    if (args.accumulate) return std::nullopt;
    return convolution(args,
                       [args](Convolution& c) { c.primitives.run_weights(args.x, args.dy, args.dw, c.bias.data()); });
  }

  Peer peer(const kernels::gemm::Args& args) override {
    if (args.dtype != DType::f32 || args.bias || args.relu || args.row_sums) return std::nullopt;
    return made("onednn", [args] {
      const auto letter = [](bool transpose) { return transpose ? 'T' : 'N'; };
      const dnnl::status status = dnnl::sgemm(
          letter(args.transpose_a), letter(args.transpose_b), args.m, args.n, args.k, 1.0f,
          static_cast<const float*>(args.a), args.transpose_a ? args.m : args.k, static_cast<const float*>(args.b),
          args.transpose_b ? args.k : args.n, args.accumulate ? 1.0f : 0.0f, static_cast<float*>(args.c), args.n);
      check<DeviceError>(status == dnnl::status::success, "oneDNN cannot run a matrix product");
    });
  }

  Peer peer(const crp::ForwardArgs& args) override {
    const auto unfused = make_unfused(args.geometry, args.dtype);
    if (!unfused) return std::nullopt;
    return {{kThenPool, [unfused, args](Stream& stream) { unfused->enqueue_forward(stream, args); }}};
  }
  Peer peer(const crp::BackwardArgs& args) override {
    const auto unfused = make_unfused(args.geometry, args.dtype);
    if (!unfused || args.accumulate) return std::nullopt;
    return {{kThenPool, [unfused, args](Stream& stream) { unfused->enqueue_backward(stream, args); }}};
  }

 private:
  static constexpr const char* kThenPool = "onednn, then pooling";

  static Peer made(const char* name, std::function<void()> work) {
    return {{name, [work = std::move(work)](Stream& stream) {
               stream.enqueue([work] { onednn::guarded("a benchmark", work); });
             }}};
  }

  template <class Args, class Pass>
  static Peer convolution(const Args& args, Pass pass) {
    if (args.dtype != DType::f32 || args.geometry.groups > 1) return std::nullopt;
    const auto made_for = std::make_shared<Convolution>(args.geometry);
    return made("onednn", [made_for, pass] { pass(*made_for); });
  }

  std::shared_ptr<bench::Unfused> make_unfused(const crp::Geometry& geometry, DType dtype) {
    auto plan = plan_with_onednn(bench::conv_relu_nodes(geometry, dtype), helpers_, nullptr);
    if (!plan) return nullptr;
    return std::make_shared<bench::Unfused>(
        bench::Unfused::Parts{.conv_relu = std::move(plan),
                              .pool = kernels::pick_variant(kernels::kernel_set().max_pool2d, device_, dtype),
                              .device = device_},
        geometry, dtype);
  }

  kernels::Device& device_;
  OnednnHelpers helpers_;
};

}  // namespace

std::unique_ptr<kernels::PeerMaker> make_onednn_peers(kernels::Device& device) {
  return std::make_unique<OnednnPeers>(device);
}

}  // namespace gradring::nn
