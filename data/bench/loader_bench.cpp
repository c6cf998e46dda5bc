// SPDX-License-Identifier: Apache-2.0
#include "data/bench/loader_bench.h"

#include <algorithm>
#include <ctime>
#include <span>
#include <string>

#include "data/augment/lambdas.h"
#include "data/loader/batch_filler.h"
#include "data/loader/loader.h"
#include "data/loader/sampler.h"
#include "kernels/base/error.h"

namespace gradring::data::bench {
namespace {

constexpr std::chrono::seconds kTimeout{60};

/// Both clocks now; std::clock counts all threads of this process.
EpochTime now() {
  const std::clock_t cpu = std::clock();
  check<Error>(cpu != -1, "this system does not measure CPU time");
  return {.wall = std::chrono::steady_clock::now().time_since_epoch(),
          .cpu = std::chrono::duration<double>(static_cast<double>(cpu) / CLOCKS_PER_SEC)};
}

/// Times epoch(order, number) for each epoch, after one warm-up.
template <class Epoch>
std::vector<EpochTime> time_epochs(const Dataset& dataset, const LoaderBenchSpec& spec, const Epoch& epoch) {
  check(spec.epochs >= 1, "the number of epochs is " + std::to_string(spec.epochs) + ", expected 1 or more");
  std::vector<EpochTime> times;
  for (int i = 0; i <= spec.epochs; ++i) {
    const auto order = torch_permutation(dataset.size(), spec.seed + static_cast<std::uint64_t>(i));
    const EpochTime begin = now();
    epoch(order, i);
    const EpochTime end = now();
    if (i > 0) times.push_back({.wall = end.wall - begin.wall, .cpu = end.cpu - begin.cpu});
  }
  return times;
}

std::vector<BatchSlot> allocate_slots(const Dataset& dataset, kernels::Device& device, const LoaderBenchSpec& spec) {
  check(spec.batch_size >= 1 && spec.depth >= 1, "the batch size is " + std::to_string(spec.batch_size) +
                                                     " and the depth " + std::to_string(spec.depth) +
                                                     ", expected 1 or more of each");
  const auto samples = static_cast<std::size_t>(std::min(spec.batch_size, dataset.size()));
  const auto image_bytes = static_cast<std::size_t>(dataset.shape().elements()) * sizeof(float);
  std::vector<BatchSlot> slots(static_cast<std::size_t>(spec.depth));
  for (BatchSlot& slot : slots) {
    slot.images = device.allocate(samples * image_bytes, kernels::MemoryKind::pinned);
    slot.labels = device.allocate(samples * sizeof(std::int32_t), kernels::MemoryKind::pinned);
    slot.labels_b = device.allocate(samples * sizeof(std::int32_t), kernels::MemoryKind::pinned);
    slot.weights_b = device.allocate(samples * sizeof(float), kernels::MemoryKind::pinned);
  }
  return slots;
}

}  // namespace

std::vector<EpochTime> time_filling(const Dataset& dataset, kernels::Device& device, const LoaderBenchSpec& spec) {
  auto slots = allocate_slots(dataset, device, spec);
  const Normalize normalize({}, dataset.shape()[2]);
  const BatchGeometry geometry{.samples = dataset.size(), .batch_size = spec.batch_size};
  const auto lambdas = lambdas_of(spec.augment);
  return time_epochs(dataset, spec, [&](std::span<const std::int64_t> order, std::int64_t epoch) {
    BatchFiller filler(dataset, normalize, {.what = spec.augment, .epoch = epoch, .lambdas = lambdas});
    for (std::int64_t step = 0; step < geometry.steps(); ++step) {
      const auto begin = static_cast<std::size_t>(geometry.begin(step));
      const auto end = static_cast<std::size_t>(geometry.end(step));
      filler.fill(order.subspan(begin, end - begin), slots[static_cast<std::size_t>(step) % slots.size()]);
    }
  });
}

std::vector<EpochTime> time_loader(const Dataset& dataset, kernels::Device& device, const LoaderBenchSpec& spec) {
  const auto lambdas = lambdas_of(spec.augment);
  return time_epochs(dataset, spec, [&](const std::vector<std::int64_t>& order, std::int64_t epoch) {
    Loader loader(dataset, device,
                  {.indices = order,
                   .batch_size = spec.batch_size,
                   .augmentation = {.what = spec.augment, .epoch = epoch, .lambdas = lambdas},
                   .threads = spec.threads,
                   .depth = spec.depth});
    while (loader.next(Deadline::after(kTimeout))) continue;
  });
}

}  // namespace gradring::data::bench
