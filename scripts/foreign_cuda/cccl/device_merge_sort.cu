// SPDX-License-Identifier: Apache-2.0
// cub::DeviceMergeSort. For sm_90, CCCL 3.0.1 reads what the kernel before writes (NVIDIA/cccl#5297).
#include <algorithm>
#include <cub/cub.cuh>

#include "scripts/foreign_cuda/cccl/check.h"

int main() {
  constexpr int kCount = 16'384;
  std::vector<int> keys = numbers(kCount, -1'000'000, 1'000'000);
  Array<int> sorted(keys);
  run([&](void* memory, std::size_t& bytes) {
    return cub::DeviceMergeSort::SortKeys(memory, bytes, sorted.data(), kCount,
                                          [] __device__(int a, int b) { return a < b; });
  });
  std::ranges::sort(keys);
  return verdict(sorted.values() == keys);
}
