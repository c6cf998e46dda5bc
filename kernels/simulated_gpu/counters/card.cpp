// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/counters/card.h"

#include <algorithm>

namespace gradring::simulated_gpu {
namespace {

constexpr std::size_t kGibibyte = std::size_t{1} << 30;
constexpr int kKibibyte = 1024;
constexpr int kMebibyte = 1024 * 1024;

}  // namespace

const std::vector<Card>& cards() {
  static const std::vector<Card> table = {{.name = "a100",
                                           .full_name = "NVIDIA A100-SXM4-80GB",
                                           .major = 8,
                                           .minor = 0,
                                           .multiprocessors = 108,
                                           .memory_bytes = 80 * kGibibyte,
                                           .l2_bytes = 40 * kMebibyte,
                                           .shared_bytes_per_multiprocessor = 164 * kKibibyte,
                                           .shared_bytes_per_block = 163 * kKibibyte,
                                           .bus_bits = 5120,
                                           .clock_hertz = 1.41e9,
                                           .bytes_per_second = 2.039e12,
                                           .host_bytes_per_second = 32e9,
                                           .tensor_flops_per_cycle = 2048},
                                          {.name = "h100",
                                           .full_name = "NVIDIA H100 80GB HBM3",
                                           .major = 9,
                                           .minor = 0,
                                           .multiprocessors = 132,
                                           .memory_bytes = 80 * kGibibyte,
                                           .l2_bytes = 50 * kMebibyte,
                                           .shared_bytes_per_multiprocessor = 228 * kKibibyte,
                                           .shared_bytes_per_block = 227 * kKibibyte,
                                           .bus_bits = 5120,
                                           .clock_hertz = 1.98e9,
                                           .bytes_per_second = 3.35e12,
                                           .host_bytes_per_second = 64e9,
                                           .tensor_flops_per_cycle = 4096}};
  return table;
}

const Card* find_card(std::string_view name) {
  const auto found = std::ranges::find(cards(), name, &Card::name);
  return found == cards().end() ? nullptr : &*found;
}

}  // namespace gradring::simulated_gpu
