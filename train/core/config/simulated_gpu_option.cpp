// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/simulated_gpu_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "kernels/simulated_gpu/cards/card.h"
#include "train/options/parse_value.h"

namespace gradring::train {
namespace {

std::vector<std::string_view> values() {
  std::vector<std::string_view> all = {kRealGpus};
  for (const simulated_gpu::Card& card : simulated_gpu::cards()) all.push_back(card.name);
  all.push_back("FILE.card");
  return all;
}

}  // namespace

std::string simulated_gpu_values() { return fmt::format("{}", fmt::join(values(), "|")); }

std::string parse_simulated_gpu(std::string_view option, std::string_view text) {
  return simulated_gpu::is_card_file(text) ? std::string(text) : parse_word(option, text, values());
}

Option simulated_gpu_option(std::string help, std::string& card) {
  return value_option("simulate-gpu", simulated_gpu_values(), std::move(help), parse_simulated_gpu, card);
}

}  // namespace gradring::train
