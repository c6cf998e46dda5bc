// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "train/core/trainer/replica.h"

namespace gradring::train {

Sha256 hash_weights(std::span<const nn::Parameter> parameters, const nn::Arena& weights) {
  Sha256Sum sum;
  add_to_hash(sum, parameters, weights);
  return sum.finish();
}

void add_to_hash(Sha256Sum& sum, std::span<const nn::Parameter> parameters, const nn::Arena& weights) {
  std::vector<float> torch;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const auto elements = static_cast<std::size_t>(parameters[i].shape.elements());
    torch.resize(elements);
    nn::to_torch_order(parameters[i], {weights.parameter(static_cast<int>(i)), elements}, torch);
    sum.add(std::as_bytes(std::span(torch)));
  }
}

void check_replicas(comm::ProcessGroup& group, const Sha256& mine, const std::string& what) {
  const std::vector<std::byte> bytes = group.all_gather_on_host(mine);
  std::vector<Sha256> all(static_cast<std::size_t>(group.world_size()));
  std::memcpy(all.data(), bytes.data(), bytes.size());

  const auto votes = [&all](const Sha256& sum) { return std::count(all.begin(), all.end(), sum); };
  const Sha256 majority =
      *std::max_element(all.begin(), all.end(), [&](const auto& a, const auto& b) { return votes(a) < votes(b); });
  std::string different;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] != majority) different += (different.empty() ? "" : ", ") + std::to_string(rank);
  if (!different.empty())
    throw ReplicaError("the ranks do not have the same " + what + ": rank " + different + " differs from the others");
}

}  // namespace gradring::train
