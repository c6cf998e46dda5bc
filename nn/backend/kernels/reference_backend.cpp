// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::nn {
namespace {

using kernels::Device;
using kernels::DType;
using kernels::Stream;
namespace k = gradring::kernels;

/// A kernel entry that runs a reference function on the stream's host thread.
template <auto Reference, class Args>
void enqueue_reference(Stream& stream, const Args& args) {
  stream.enqueue([args] { Reference(args); });
}

std::size_t no_workspace(const k::conv2d::Geometry&) { return 0; }
bool on_cpu(const Device& device, DType) { return device.id().kind == kernels::DeviceKind::cpu; }

constexpr k::conv2d::Variant kConv2d[] = {{.name = "reference",
                                           .forward = enqueue_reference<k::conv2d::reference::forward>,
                                           .dgrad = enqueue_reference<k::conv2d::reference::dgrad>,
                                           .wgrad = enqueue_reference<k::conv2d::reference::wgrad>,
                                           .workspace_bytes = no_workspace,
                                           .supports = on_cpu}};
constexpr k::bias::Variant kBias[] = {{.name = "reference",
                                       .add = enqueue_reference<k::bias::reference::add>,
                                       .grad = enqueue_reference<k::bias::reference::grad>,
                                       .supports = on_cpu}};
constexpr k::relu::Variant kRelu[] = {{.name = "reference",
                                       .forward = enqueue_reference<k::relu::reference::forward>,
                                       .backward = enqueue_reference<k::relu::reference::backward>,
                                       .supports = on_cpu}};
constexpr k::max_pool2d::Variant kMaxPool2d[] = {{.name = "reference",
                                                  .forward = enqueue_reference<k::max_pool2d::reference::forward>,
                                                  .backward = enqueue_reference<k::max_pool2d::reference::backward>,
                                                  .supports = on_cpu}};
constexpr k::gemm::Variant kGemm[] = {
    {.name = "reference", .run = enqueue_reference<k::gemm::reference::run>, .supports = on_cpu}};
constexpr k::softmax_cross_entropy::Variant kCrossEntropy[] = {
    {.name = "reference", .run = enqueue_reference<k::softmax_cross_entropy::reference::run>, .supports = on_cpu}};

kernels::KernelSet reference_kernels() {
  kernels::KernelSet set;
  set.conv2d = kConv2d;
  set.bias = kBias;
  set.relu = kRelu;
  set.max_pool2d = kMaxPool2d;
  set.gemm = kGemm;
  set.softmax_cross_entropy = kCrossEntropy;
  return set;
}

}  // namespace

ReferenceBackend::ReferenceBackend(const kernels::Device& device)
    : KernelBackend(reference_kernels(), device, "reference") {}

}  // namespace gradring::nn
