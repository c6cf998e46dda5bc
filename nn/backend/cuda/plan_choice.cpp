// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/plan_choice.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>

#include "kernels/base/commit.h"
#include "kernels/base/error.h"
#include "kernels/runtime/cuda/cuda_device.h"
#include "kernels/runtime/timed_calls.h"

namespace gradring::nn {
namespace {

using kernels::Buffer;

std::string name_of(const PlanChain& chain) { return chain.front()->description(); }

std::optional<std::size_t> index_of(const std::string& name, std::span<const PlanChain> chains) {
  const auto found = std::ranges::find_if(chains, [&](const PlanChain& chain) { return name_of(chain) == name; });
  if (found == chains.end()) return std::nullopt;
  return static_cast<std::size_t>(found - chains.begin());
}

/// "conv2d" of "conv2d/mma".
std::string operation_of(const std::string& description) { return description.substr(0, description.find('/')); }

std::string text_of(const NodeSpec& node) {
  std::string text = std::string(kind_of(node.layer)) + " " + node.input.to_string() + " to " + node.output.to_string();
  for (const Parameter& parameter : parameters_of(node.layer, node.input)) text += " w " + parameter.shape.to_string();
  if (const auto* conv = std::get_if<Conv2d>(&node.layer))
    text += " stride " + std::to_string(conv->stride) + " padding " + std::to_string(conv->padding) + " groups " +
            std::to_string(conv->groups);
  if (const auto* pool = std::get_if<MaxPool2d>(&node.layer))
    text += " window " + std::to_string(pool->window) + " stride " + std::to_string(pool->stride) + " padding " +
            std::to_string(pool->padding);
  return text + " " + std::string(kernels::name_of(node.dtype)) + " backward " +
         std::to_string(static_cast<int>(node.backward));
}

/// Equal for equal problems and alternatives; the key in the plan cache.
std::string key_of(std::span<const NodeSpec> nodes, std::span<const PlanChain> chains) {
  std::string key = "layers";
  for (const NodeSpec& node : nodes) key += " [" + text_of(node) + "]";
  key += " by";
  for (const PlanChain& chain : chains) key += " " + name_of(chain);
  return key;
}

/// The layer, for any batch.
std::string layer_key(const NodeSpec& node) {
  std::string key = node.name + " " + std::string(kernels::name_of(node.dtype));
  for (int axis = 1; axis < node.input.rank(); ++axis) key += " " + std::to_string(node.input[axis]);
  return key;
}

/// Memory for a forward and a backward pass of some plans.
class ChainRun {
 public:
  ChainRun(kernels::Device& device, kernels::Stream& stream, std::span<const NodeSpec> nodes, const PlanChain& chain)
      : device_(device), stream_(stream) {
    const void* x = typed(nodes.front().input, nodes.front().dtype);
    void* dx = typed(nodes.front().input, nodes.front().dtype);
    for (const std::unique_ptr<Plan>& plan : chain) {
      const auto own = nodes.first(plan->nodes());
      nodes = nodes.subspan(own.size());
      Part& part = parts_.emplace_back(Part{.plan = *plan});
      const NodeSpec& last = own.back();
      part.batch = own.front().input[0];
      part.x = x;
      part.dx = wants_dx(own.front().backward) ? dx : nullptr;
      part.y = typed(last.output, last.dtype);
      part.dy = typed(last.output, last.dtype);
      part.has_backward = own.front().backward != Backward::none;
      for (const NodeSpec& node : own) add_parameters(part, node);
      part.saved = bytes(plan->saved_bytes());
      part.kept = bytes(plan->kept_bytes());
      part.workspace = bytes(plan->workspace_bytes());
      x = part.y;
      dx = part.dy;
    }
  }

  void enqueue_zeros() {
    for (const Buffer& buffer : memory_) stream_.enqueue_zero(buffer.data(), buffer.size());
  }
  void enqueue() {
    for (Part& part : parts_)
      part.plan.enqueue_forward(stream_, {.batch = part.batch,
                                          .x = part.x,
                                          .y = part.y,
                                          .parameters = part.parameters,
                                          .saved = part.saved,
                                          .kept = part.kept,
                                          .workspace = part.workspace});
    for (std::size_t i = parts_.size(); i-- > 0;) {
      Part& part = parts_[i];
      if (!part.has_backward) continue;
      part.plan.enqueue_backward(stream_, {.batch = part.batch,
                                           .x = part.x,
                                           .y = part.y,
                                           .dy = part.dy,
                                           .dx = part.dx,
                                           .parameters = part.parameters,
                                           .gradients = part.gradients,
                                           .saved = part.saved,
                                           .kept = part.kept,
                                           .workspace = part.workspace});
    }
  }

 private:
  struct Part {
    Plan& plan;
    std::int64_t batch = 0;
    const void* x = nullptr;
    void *y = nullptr, *dy = nullptr, *dx = nullptr;
    bool has_backward = false;
    std::vector<const void*> parameters = {};
    std::vector<float*> gradients = {};
    std::byte *saved = nullptr, *kept = nullptr, *workspace = nullptr;
  };

  std::byte* bytes(std::size_t size) {
    if (size == 0) return nullptr;
    return memory_.emplace_back(device_.allocate(size, kernels::MemoryKind::device)).data();
  }
  std::byte* typed(const Shape& shape, kernels::DType dtype) {
    return bytes(static_cast<std::size_t>(shape.elements()) * kernels::size_of(dtype));
  }
  void add_parameters(Part& part, const NodeSpec& node) {
    const std::vector<Parameter> parameters = parameters_of(node.layer, node.input);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      part.parameters.push_back(typed(parameters[i].shape, node.dtype));
      std::byte* const gradient = wants_gradient(node, i) ? typed(parameters[i].shape, kernels::DType::f32) : nullptr;
      part.gradients.push_back(reinterpret_cast<float*>(gradient));
    }
  }

  kernels::Device& device_;
  kernels::Stream& stream_;
  std::vector<Buffer> memory_;
  std::vector<Part> parts_;
};

std::string machine_of(const kernels::Device& device) {
  return device.description() + "; driver " + std::to_string(kernels::count_devices().driver_version) + "; gradring " +
         kCommit;
}

}  // namespace

PlanChoice::PlanChoice(kernels::Device& device, const CudaBackendOptions& options)
    : device_(device),
      options_(options),
      cache_(options.autotune ? options.plan_cache : "", options.autotune ? machine_of(device) : "") {
  if (!options_.time_call) options_.time_call = kernels::least_seconds;
}

std::size_t PlanChoice::choose(std::span<const NodeSpec> nodes, std::span<const PlanChain> chains) {
  if (!is_active() || chains.size() < 2) return 0;
  const std::string layer = layer_key(nodes.front());
  const auto before = chosen_.find(layer);
  if (before != chosen_.end() && !nodes.front().name.empty())
    if (const auto index = index_of(before->second, chains)) return *index;
  const std::string name = options_.share_choice([&] { return choose_for_all(nodes, chains); });
  const std::size_t index = index_of(name, chains).value_or(0);
  chosen_[layer] = name_of(chains[index]);
  return index;
}

bool PlanChoice::allows(const NodeSpec& node, const std::string& by) const {
  if (!is_active()) return true;
  const std::string resumed = options_.share_choice([&] { return options_.resumed_choice(node.name); });
  return resumed.empty() || operation_of(resumed) == operation_of(by);
}

std::string PlanChoice::choose_for_all(std::span<const NodeSpec> nodes, std::span<const PlanChain> chains) {
  const std::string resumed = options_.resumed_choice(nodes.front().name);
  if (index_of(resumed, chains)) return resumed;
  const std::string key = key_of(nodes, chains);
  if (const auto known = cache_.find(key); known && index_of(*known, chains)) return *known;
  const std::string name = name_of(chains[fastest(nodes, chains)]);
  cache_.store(key, name);
  return name;
}

std::size_t PlanChoice::fastest(std::span<const NodeSpec> nodes, std::span<const PlanChain> chains) const {
  std::size_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < chains.size(); ++i) {
    const double seconds = seconds_of(nodes, chains[i]);
    if (!(seconds < least)) continue;
    least = seconds;
    best = i;
  }
  return best;
}

/// Infinite where it cannot be measured, as for lack of memory.
double PlanChoice::seconds_of(std::span<const NodeSpec> nodes, const PlanChain& chain) const {
  const auto stream = device_.make_stream(kernels::StreamMode::asynchronous);
  std::optional<ChainRun> run;
  double seconds = std::numeric_limits<double>::infinity();
  try {
    run.emplace(device_, *stream, nodes, chain);
    run->enqueue_zeros();
    seconds = options_.time_call(device_, *stream, [&run] { run->enqueue(); });
  } catch (const DeviceError&) {  // if it is the device that failed, the next call throws it again
  }
  stream->synchronize(Deadline::after(std::chrono::seconds(30)));  // before the memory is freed
  return seconds;
}

}  // namespace gradring::nn
