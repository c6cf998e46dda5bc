// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/onednn.h"

#include <omp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/base/error.h"
#include "kernels/base/process_limit.h"
#include "kernels/ops/conv2d/panels.h"
#include "kernels/runtime/cpu_level.h"
#include "nn/backend/cpu/cpu_backend.h"
#include "nn/backend/cpu/onednn_conv2d.h"

namespace gradring::nn {
namespace onednn {
namespace {

/// Keeps a limit that the user set with oneDNN's own variable.
bool limit_instruction_set() {
  using kernels::CpuLevel;
  const auto is_set = [](const char* variable) {
    const char* value = std::getenv(variable);
    return value && *value;
  };
  if (kernels::cpu_levels().size() == 1 || std::ranges::any_of(kOneDnnLimits, is_set)) return true;
  const auto most = [] {
    switch (kernels::cpu_level()) {
      case CpuLevel::x86_64_v4: return dnnl::cpu_isa::avx512_core;
      case CpuLevel::x86_64_v3: return dnnl::cpu_isa::avx2;
      case CpuLevel::baseline: break;
    }
    return dnnl::cpu_isa::sse41;
  }();
  return dnnl::set_max_cpu_isa(most) == dnnl::status::success;
}

/// The three products of a linear layer for one batch size; synchronous. All in plain layouts.
struct LinearPrimitives {
  Context context;
  dnnl::memory::desc x, w, b, y;
  dnnl::inner_product_forward::primitive_desc forward_desc;
  dnnl::inner_product_forward forward;
  dnnl::inner_product_backward_data data;
  dnnl::inner_product_backward_weights weights;

  LinearPrimitives(const NodeSpec& node, bool relu, std::int64_t batch)
      : LinearPrimitives(std::get<Linear>(node.layer), relu, batch, wants_gradient(node, 1)) {}

  LinearPrimitives(const Linear& layer, bool relu, std::int64_t batch, bool wants_db)
      : x(f32({batch, layer.in_features}, Tag::nc)),
        w(f32({layer.out_features, layer.in_features}, Tag::oi)),
        b(layer.bias ? f32({layer.out_features}, Tag::x) : dnnl::memory::desc()),
        y(f32({batch, layer.out_features}, Tag::nc)),
        forward_desc(describe<dnnl::inner_product_forward>(context.engine, forward_attributes(relu),
                                                           dnnl::prop_kind::forward_training, x, w, b, y)),
        forward(forward_desc),
        data(describe_backward<dnnl::inner_product_backward_data>(context.engine, forward_desc, x, w, y)),
        weights(describe_backward<dnnl::inner_product_backward_weights>(context.engine, forward_desc, x, w,
                                                                        wants_db ? b : dnnl::memory::desc(), y)) {}

  void run_forward(const void* x_data, const void* w_data, const void* b_data, void* y_data) {
    context.run(forward, {{DNNL_ARG_SRC, context.view(x, x_data)},
                          {DNNL_ARG_WEIGHTS, context.view(w, w_data)},
                          {DNNL_ARG_BIAS, context.view_or_none(b, b_data)},
                          {DNNL_ARG_DST, context.view(y, y_data)}});
  }

  void run_weights(const void* x_data, const void* dy, float* dw, float* db) {
    context.run(weights, {{DNNL_ARG_SRC, context.view(x, x_data)},
                          {DNNL_ARG_DIFF_DST, context.view(y, dy)},
                          {DNNL_ARG_DIFF_WEIGHTS, context.view(w, dw)},
                          {DNNL_ARG_DIFF_BIAS, context.view_or_none(b, db)}});
  }

  void run_data(const void* dy, const void* w_data, void* dx) {
    context.run(data, {{DNNL_ARG_DIFF_DST, context.view(y, dy)},
                       {DNNL_ARG_WEIGHTS, context.view(w, w_data)},
                       {DNNL_ARG_DIFF_SRC, context.view(x, dx)}});
  }
};

/// That of the bias; null without one.
template <class T>
T second(std::span<T const> tensors) {
  return tensors.size() > 1 ? tensors[1] : nullptr;
}

/// Whether `panels` computes the gradient of the weights faster than oneDNN: of whole vectors of AVX-512, if a position of
/// the kernel is one of several.
bool panels_pay(const NodeSpec& node) {
  const auto* const conv = std::get_if<Conv2d>(&node.layer);
  return conv && conv->kernel > 1 && !conv->bias && kernels::cpu_level() == kernels::CpuLevel::x86_64_v4 &&
         kernels::conv2d::fits_panels(conv2d_geometry(node));
}

/// A layer with weight and perhaps bias, fused with a following ReLU; backward masks dy by y > 0 in place.
///
/// `Primitives` are oneDNN's for one batch size, constructed from (node, relu follows, batch), with run_forward,
/// run_weights and run_data. An epoch has two batch sizes: the full one and the short last one.
template <class Primitives>
class WeightedPlan final : public Plan {
 public:
  WeightedPlan(const NodeSpec& node, bool relu_follows, const OnednnHelpers& helpers,
               const kernels::conv2d::Variant* panels)
      : node_(node),
        relu_follows_(relu_follows),
        helpers_(helpers),
        panels_(panels && panels_pay(node) ? panels : nullptr) {
    primitives_for(node.input[0]);
  }

  std::size_t nodes() const override { return relu_follows_ ? 2 : 1; }

  std::string description() const override {
    return panels_ ? "onednn, dw conv2d/" + std::string(panels_->name) : "onednn";
  }

  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override {
    Primitives& primitives = primitives_for(pass.batch);
    stream.enqueue([this, &primitives, pass, w = pass.parameters[0], b = second(pass.parameters)] {
      guarded(what("forward", pass.batch), [&] { primitives.run_forward(pass.x, w, b, pass.y); });
    });
  }

  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override {
    Primitives& primitives = primitives_for(pass.batch);
    float* const dw = pass.gradients[0];
    float* const db = second(pass.gradients);
    if (relu_follows_) mask_dy(stream, pass);
    if (db && !dw) sum_dy(stream, pass, db);
    if (panels_ && dw)
      panels_->wgrad(
          stream, {.geometry = with_batch(conv2d_geometry(node_), pass.batch), .x = pass.x, .dy = pass.dy, .dw = dw});
    stream.enqueue([this, &primitives, pass, w = pass.parameters[0], dw, db] {
      guarded(what("backward", pass.batch), [&] {
        if (dw && !panels_) primitives.run_weights(pass.x, pass.dy, dw, db);
        if (pass.dx) primitives.run_data(pass.dy, w, pass.dx);
      });
    });
  }

 private:
  /// The gradient of the ReLU's input from that of its output, in place: dy = y > 0 ? dy : 0.
  void mask_dy(kernels::Stream& stream, const BackwardPass& pass) const {
    helpers_.relu.backward(stream, {.dtype = kernels::DType::f32,
                                    .y = pass.y,
                                    .dy = pass.dy,
                                    .dx = pass.dy,
                                    .elements = static_cast<std::size_t>(elements(pass.batch))});
  }

  /// The gradient of the bias beside frozen weights; oneDNN computes it together with theirs only.
  void sum_dy(kernels::Stream& stream, const BackwardPass& pass, float* db) const {
    const std::int64_t channels = node_.output[node_.output.rank() - 1];
    helpers_.bias.grad(stream, {.dtype = kernels::DType::f32,
                                .rows = elements(pass.batch) / channels,
                                .channels = channels,
                                .dy = pass.dy,
                                .db = db});
  }

  std::int64_t elements(std::int64_t batch) const { return node_.output.with_batch(batch).elements(); }

  std::string what(std::string_view pass, std::int64_t batch) const {
    return std::string(kind_of(node_.layer)) + " " + std::string(pass) + " of " +
           node_.input.with_batch(batch).to_string();
  }

  Primitives& primitives_for(std::int64_t batch) {
    std::unique_ptr<Primitives>& made = primitives_[batch];
    if (!made)
      made = guarded(what("set-up", batch), [&] { return std::make_unique<Primitives>(node_, relu_follows_, batch); });
    return *made;
  }

  NodeSpec node_;
  bool relu_follows_;
  OnednnHelpers helpers_;
  const kernels::conv2d::Variant* panels_;  // computes the gradient of the weights; null: oneDNN does
  std::map<std::int64_t, std::unique_ptr<Primitives>> primitives_;
};

}  // namespace

bool has_address_space() {
  constexpr std::size_t kMaxRequestBytes = 64 << 20;
  static const bool is_limited = [] {
    rlimit limit{};
    return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  }();
  if (!is_limited) return true;
  void* memory = ::mmap(nullptr, kMaxRequestBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  ::munmap(memory, kMaxRequestBytes);
  return true;
}

dnnl::engine cpu_engine() {
  static const bool limited = limit_instruction_set();
  if (!limited)
    throw DeviceError("cannot limit oneDNN to the CPU level, because it was used before: set ONEDNN_MAX_CPU_ISA");
  return {dnnl::engine::kind::cpu, 0};
}

}  // namespace onednn

std::unique_ptr<Plan> plan_with_onednn(std::span<const NodeSpec> nodes, const OnednnHelpers& helpers,
                                       const kernels::conv2d::Variant* panels) {
  const NodeSpec& node = nodes.front();
  if (node.dtype != kernels::DType::f32) return nullptr;
  const bool relu_follows = nodes.size() > 1 && std::holds_alternative<Relu>(nodes[1].layer);
  const auto* const conv = std::get_if<Conv2d>(&node.layer);
  if (conv && conv->groups == 1)
    return std::make_unique<onednn::WeightedPlan<onednn::Conv2dPrimitives>>(node, relu_follows, helpers, panels);
  if (std::holds_alternative<Linear>(node.layer))
    return std::make_unique<onednn::WeightedPlan<onednn::LinearPrimitives>>(node, relu_follows, helpers, nullptr);
  return nullptr;
}

void set_onednn_threads(unsigned threads) {
  static std::atomic<bool> starting;
  [[maybe_unused]] static const int registered = std::atexit([] {
    if (!starting) return;
    std::fputs(("cannot start threads (" + process_limits() + "): raise that limit, or lower --threads\n").c_str(),
               stderr);
    ::_exit(kEnvironment);
  });
  ::omp_set_num_threads(static_cast<int>(threads));
  std::atomic<unsigned> started = 0;  // an empty region would be left out
  starting = true;
#pragma omp parallel
  ++started;
  starting = false;
}

void read_openmp_environment() { ::omp_get_max_threads(); }

bool has_onednn() { return true; }

std::string describe_onednn() {
  const dnnl_version_t* version = dnnl_version();
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch);
}

}  // namespace gradring::nn
