// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/counting.h"

#include <utility>

namespace gradring::simulated_gpu {

void Counting::begin() {
  is_on_ = true;
  graph_launches_ = 0;
  entries_.clear();
}

std::vector<CountedWork> Counting::end() {
  is_on_ = false;
  std::vector<CountedWork> all;
  for (const auto& entry : std::exchange(entries_, {})) all.push_back(std::move(*entry));
  return all;
}

std::function<double()> Counting::counted(const StreamWork& work, int device, std::size_t graph_launch,
                                          std::vector<std::size_t> after) {
  if (!is_on_) return [run = work.run] { return run(nullptr); };
  entries_.push_back(std::make_shared<CountedWork>(CountedWork{.kind = work.kind,
                                                               .name = work.name,
                                                               .device = device,
                                                               .graph_launch = graph_launch,
                                                               .after = std::move(after)}));
  return [run = work.run, entry = entries_.back()] { return run(entry.get()); };
}

}  // namespace gradring::simulated_gpu
