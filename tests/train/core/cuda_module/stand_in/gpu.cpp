// SPDX-License-Identifier: Apache-2.0
#include "tests/train/core/cuda_module/stand_in/gpu.h"

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/base/error.h"

namespace gradring::tests {
namespace {

using kernels::Device;
using kernels::DType;
using kernels::KernelSet;

/// Of one table.
constexpr std::size_t kMostVariants = 12;

class CalledAgain final : public kernels::Recording {
 public:
  CalledAgain(bool& enqueues_graph, std::function<void()> enqueue_work)
      : enqueues_graph_(enqueues_graph), enqueue_work_(std::move(enqueue_work)) {}
  void enqueue(kernels::Stream&) override {
    enqueues_graph_ = true;
    try {
      enqueue_work_();
    } catch (...) {
      enqueues_graph_ = false;
      throw;
    }
    enqueues_graph_ = false;
  }

 private:
  bool& enqueues_graph_;
  std::function<void()> enqueue_work_;
};

const KernelSet& cpu_kernels() {
  static const KernelSet kernels = kernels::kernel_set();
  return kernels;
}

template <auto kTable, std::size_t kIndex>
bool runs_on_cpu(const Device&, DType dtype) {
  static const kernels::HostDevice cpu;
  return (cpu_kernels().*kTable)[kIndex].supports(cpu, dtype);
}

template <auto kTable, std::size_t... kIndex>
void replace_supports(auto& variants, std::index_sequence<kIndex...>) {
  ((kIndex < variants.size() ? void(variants[kIndex].supports = &runs_on_cpu<kTable, kIndex>) : void()), ...);
}

template <auto kTable>
void adopt(KernelSet& kernels) {
  using Variant = std::remove_cvref_t<decltype((kernels.*kTable)[0])>;
  static std::vector<Variant> variants((kernels.*kTable).begin(), (kernels.*kTable).end());
  check(variants.size() <= kMostVariants, "a table of kernels has more variants than the stand-in allows for");
  replace_supports<kTable>(variants, std::make_index_sequence<kMostVariants>());
  kernels.*kTable = variants;
}

}  // namespace

std::unique_ptr<kernels::Recording> StandInGpu::record(kernels::Stream&, std::function<void()> enqueue_work) {
  return std::make_unique<CalledAgain>(enqueues_graph_, std::move(enqueue_work));
}

KernelSet stand_in_kernels() {
  KernelSet kernels = cpu_kernels();
  adopt<&KernelSet::accumulate>(kernels);
  adopt<&KernelSet::adam>(kernels);
  adopt<&KernelSet::avg_pool2d>(kernels);
  adopt<&KernelSet::batch_norm>(kernels);
  adopt<&KernelSet::bias>(kernels);
  adopt<&KernelSet::cast>(kernels);
  adopt<&KernelSet::conv2d>(kernels);
  adopt<&KernelSet::conv_relu_pool>(kernels);
  adopt<&KernelSet::dropout>(kernels);
  adopt<&KernelSet::ema>(kernels);
  adopt<&KernelSet::exact_sum>(kernels);
  adopt<&KernelSet::fill>(kernels);
  adopt<&KernelSet::gather_batch>(kernels);
  adopt<&KernelSet::gelu>(kernels);
  adopt<&KernelSet::gemm>(kernels);
  adopt<&KernelSet::grouped_conv2d>(kernels);
  adopt<&KernelSet::linear_cross_entropy>(kernels);
  adopt<&KernelSet::max_pool2d>(kernels);
  adopt<&KernelSet::muon>(kernels);
  adopt<&KernelSet::peak>(kernels);
  adopt<&KernelSet::relu>(kernels);
  adopt<&KernelSet::scale>(kernels);
  adopt<&KernelSet::sgd>(kernels);
  adopt<&KernelSet::silu>(kernels);
  adopt<&KernelSet::softmax_cross_entropy>(kernels);
  adopt<&KernelSet::step_state>(kernels);
  adopt<&KernelSet::tally>(kernels);
  adopt<&KernelSet::gradient_statistics>(kernels);
  return kernels;
}

}  // namespace gradring::tests
