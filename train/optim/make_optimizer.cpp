// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/error.h"
#include "kernels/variant.h"
#include "train/optim/adam.h"
#include "train/optim/ema.h"
#include "train/optim/sgd.h"

namespace gradring::train {

namespace {

std::unique_ptr<Optimizer> make_plain(const OptimizerSpec& spec, const kernels::KernelSet& kernels,
                                      kernels::Device& device, std::size_t elements) {
  const auto pick = [&device](const auto& table) { return kernels::pick_variant(table, device, kernels::DType::f32); };
  if (spec.name == "adam" || spec.name == "adamw") {
    const kernels::adam::Hyper hyper{.weight_decay = spec.weight_decay, .decoupled = spec.name == "adamw"};
    return std::make_unique<Adam>(hyper, pick(kernels.adam), device, elements);
  }
  if (spec.name == "sgd") {
    const kernels::sgd::Hyper hyper{.momentum = spec.momentum,
                                    .dampening = spec.dampening,
                                    .weight_decay = spec.weight_decay,
                                    .nesterov = spec.nesterov};
    return std::make_unique<Sgd>(hyper, pick(kernels.sgd), device, elements);
  }
  throw InvalidArgument("there is no optimizer '" + spec.name + "': there are adam, adamw and sgd");
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec, const kernels::KernelSet& kernels,
                                          kernels::Device& device, std::size_t elements) {
  auto optimizer = make_plain(spec, kernels, device, elements);
  if (spec.ema == 0) return optimizer;
  const auto kernel = kernels::pick_variant(kernels.ema, device, kernels::DType::f32);
  return std::make_unique<Ema>(std::move(optimizer), spec.ema, kernel, device, elements);
}

}  // namespace gradring::train
