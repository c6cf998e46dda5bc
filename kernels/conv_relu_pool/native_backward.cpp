// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv_relu_pool/native.h"
#include "kernels/conv_relu_pool/native_lists.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace native {
namespace {

/// A worker's scratch memory: its share of the gradients first (see backward_samples), then its tools.
struct Scratch {
  float* dw;
  float* db;
  float* x;   // a group of padded samples
  float* dx;  // their gradients
  Lists lists;

  Scratch(const Layout& layout, float* memory) {
    const auto take = [&memory](std::size_t elements) { return std::exchange(memory, memory + elements); };
    dw = take(layout.gradient_elements());
    db = dw + layout.gradient_elements() - layout.bias_elements();
    x = take(kGroup * layout.copy_elements());
    dx = take(kGroup * layout.copy_elements());
    const std::size_t entries = static_cast<std::size_t>(layout.outputs) * layout.list_elements();
    lists.stride = layout.list_elements();
    lists.values = take(entries);
    lists.offsets = reinterpret_cast<std::int32_t*>(take(entries));
    lists.counts = reinterpret_cast<std::int32_t*>(memory);
  }
};

bool needs_lists(const Layout& layout, const Backward& pass) { return !layout.few_taps || pass.dx; }

/// Whether samples are worked on in memory of our own: with zeros around them, and readable behind the end.
bool copies(const Layout& layout, const Backward& pass) {
  return layout.pads() || (needs_lists(layout, pass) && layout.run != layout.padded_run);
}

/// The inputs of a group of samples and how far apart they are.
struct Group {
  std::int64_t first;
  int samples;
  const float* x;
  std::size_t stride;
};

Group group_at(const Layout& layout, const Backward& pass, std::int64_t first, std::int64_t end,
               const Scratch& scratch) {
  Group group{.first = first,
              .samples = static_cast<int>(std::min<std::int64_t>(kGroup, end - first)),
              .x = pass.x + static_cast<std::size_t>(first) * layout.sample_elements(),
              .stride = layout.sample_elements()};
  if (!copies(layout, pass)) return group;
  for (int n = 0; n < group.samples; ++n)
    pad(layout, group.x + static_cast<std::size_t>(n) * layout.sample_elements(),
        scratch.x + static_cast<std::size_t>(n) * layout.copy_elements());
  group.x = scratch.x;
  group.stride = layout.copy_elements();
  return group;
}

void spread_group(const Layout& layout, const Backward& pass, const Group& group, const Scratch& scratch) {
  float* dx = pass.dx + static_cast<std::size_t>(group.first) * layout.sample_elements();
  float* target = copies(layout, pass) ? scratch.dx : dx;
  std::fill_n(target, static_cast<std::size_t>(group.samples) * group.stride, 0.0f);
  spread_lists(layout, scratch.lists, pass.w, target);
  if (!copies(layout, pass)) return;
  for (int n = 0; n < group.samples; ++n)
    unpad(layout, scratch.dx + static_cast<std::size_t>(n) * layout.copy_elements(),
          dx + static_cast<std::size_t>(n) * layout.sample_elements());
}

}  // namespace

void backward_samples(const Layout& layout, const Backward& pass, std::int64_t begin, std::int64_t end, float* memory) {
  const Scratch scratch(layout, memory);
  std::fill_n(scratch.dw, layout.gradient_elements(), 0.0f);
  if (copies(layout, pass)) std::fill_n(scratch.x, kGroup * layout.copy_elements(), 0.0f);
  for (std::int64_t first = begin; first < end; first += kGroup) {
    const Group group = group_at(layout, pass, first, end, scratch);
    if (needs_lists(layout, pass))
      fill_lists(layout, pass, first, group.samples, static_cast<int>(group.stride), scratch.lists);
    if (!layout.few_taps)
      add_products_of_lists(layout, scratch.lists, group.x, scratch.dw, scratch.db);
    else
      for (int n = 0; n < group.samples; ++n)
        add_products_by_taps(layout, pass, first + n, group.x + static_cast<std::size_t>(n) * group.stride, scratch.dw,
                             scratch.db);
    if (pass.dx) spread_group(layout, pass, group, scratch);
  }
}

}  // namespace native
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
