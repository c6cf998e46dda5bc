// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <unordered_map>
#include <utility>

#include "kernels/base/error.h"
#include "nn/backend/backend.h"

namespace gradring::nn::onednn {

using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;

inline dnnl::memory::desc f32(const Dims& dims, Tag tag) { return {dims, dnnl::memory::data_type::f32, tag}; }

/// A primitive's descriptor. oneDNN 2 builds it in two steps (desc, then primitive_desc), oneDNN 3 in one, from the
/// same arguments.
template <class Primitive, class... Args>
typename Primitive::primitive_desc describe(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                            const Args&... args) {
  if constexpr (requires { typename Primitive::desc; })
    return typename Primitive::primitive_desc(typename Primitive::desc(args...), attributes, engine);
  else
    return typename Primitive::primitive_desc(engine, args..., attributes);
}

/// The same for a backward primitive, which takes the forward descriptor as a hint.
template <class Primitive, class Hint, class... Args>
typename Primitive::primitive_desc describe_backward(const dnnl::engine& engine, const Hint& hint,
                                                     const Args&... args) {
  if constexpr (requires { typename Primitive::desc; })
    return typename Primitive::primitive_desc(typename Primitive::desc(args...), engine, hint);
  else
    return typename Primitive::primitive_desc(engine, args..., hint);
}

/// Appends a ReLU; oneDNN 2 takes a scale first, oneDNN 3 does not.
template <class PostOps>
PostOps relu_post_op(PostOps operations) {
  if constexpr (requires { operations.append_eltwise(1.f, dnnl::algorithm::eltwise_relu, 0.f, 0.f); })
    operations.append_eltwise(1.f, dnnl::algorithm::eltwise_relu, 0.f, 0.f);
  else
    operations.append_eltwise(dnnl::algorithm::eltwise_relu, 0.f, 0.f);
  return operations;
}

/// Attributes of a forward primitive, with a fused ReLU if one follows.
inline dnnl::primitive_attr forward_attributes(bool relu) {
  dnnl::primitive_attr attributes;
  if (relu) attributes.set_post_ops(relu_post_op(dnnl::post_ops()));
  return attributes;
}

/// The CPU engine. The first call limits oneDNN to the instruction-set level of our own code
/// (kernels/runtime/cpu_level.h), so that a level gives the same bits on every processor; ONEDNN_MAX_CPU_ISA overrides
/// it.
dnnl::engine cpu_engine();

/// Engine and stream of one plan.
struct Context {
  dnnl::engine engine = cpu_engine();
  dnnl::stream stream{engine};

  /// A view of memory that it does not own.
  dnnl::memory view(const dnnl::memory::desc& desc, const void* data) const {
    return {desc, engine, const_cast<void*>(data)};
  }
  /// The same; an empty one, which primitives ignore, for null.
  dnnl::memory view_or_none(const dnnl::memory::desc& desc, const void* data) const {
    return data ? view(desc, data) : dnnl::memory();
  }
  /// Executes a primitive and waits for it.
  void run(const dnnl::primitive& primitive, const std::unordered_map<int, dnnl::memory>& arguments) {
    primitive.execute(stream, arguments);
    stream.wait();
  }
};

/// A tensor in the layout that a primitive chooses: copied if the layouts differ.
class Packed {
 public:
  Packed(const Context& context, const dnnl::memory::desc& plain, const dnnl::memory::desc& wanted)
      : plain_(plain), same_(plain == wanted), copy_(same_ ? dnnl::memory() : dnnl::memory(wanted, context.engine)) {}

  /// The tensor at `data` in the wanted layout, valid until the next call.
  dnnl::memory load(Context& context, const void* data) {
    dnnl::memory plain = context.view(plain_, data);
    if (same_) return plain;
    dnnl::reorder(plain, copy_).execute(context.stream, plain, copy_);
    return copy_;
  }

  /// Where a primitive writes so that store() brings it to `data`.
  dnnl::memory target(Context& context, void* data) { return same_ ? context.view(plain_, data) : copy_; }
  void store(Context& context, void* data) {
    if (same_) return;
    dnnl::memory plain = context.view(plain_, data);
    dnnl::reorder(copy_, plain).execute(context.stream, copy_, plain);
  }

 private:
  dnnl::memory::desc plain_;
  bool same_;
  dnnl::memory copy_;
};

/// Whether ulimit -v leaves as much address space as oneDNN may request in one call. oneDNN does not check that it got
/// memory for the code it generates.
bool has_address_space();

/// Runs `work` and converts oneDNN's exceptions to DeviceError.
template <class F>
auto guarded(const std::string& what, F&& work) {
  if (!has_address_space())
    throw DeviceError("oneDNN cannot run " + what +
                      ": too little address space; raise ulimit -v, or lower --batch-size or --threads");
  try {
    return std::forward<F>(work)();
  } catch (const dnnl::error& error) {
    throw DeviceError("oneDNN cannot run " + what + ": " + error.what());
  }
}

}  // namespace gradring::nn::onednn
