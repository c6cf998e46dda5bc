// SPDX-License-Identifier: Apache-2.0
// cub::DeviceScan, DeviceReduce, by key, too: blocks look back at those before them.
#include <algorithm>
#include <cub/cub.cuh>
#include <functional>
#include <numeric>

#include "scripts/foreign_cuda/cccl/check.h"

int main() {
  constexpr int kCount = 200'000;
  constexpr int kEqualKeys = 37;
  const std::vector<int> values = numbers(kCount, -5, 5);
  std::vector<int> keys(kCount);
  for (int i = 0; i < kCount; ++i) keys[i] = i / kEqualKeys;
  Array<int> in(values), out(kCount), keys_in(keys), keys_out(kCount), sums_out(kCount), count(1);

  run([&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(memory, bytes, in.data(), out.data(), kCount);
  });
  std::vector<int> expected(kCount);
  std::partial_sum(values.begin(), values.end(), expected.begin());
  bool is_right = out.values() == expected;

  run([&](void* memory, std::size_t& bytes) {
    return cub::DeviceReduce::Max(memory, bytes, in.data(), count.data(), kCount);
  });
  is_right &= count.values()[0] == 5;

  run([&](void* memory, std::size_t& bytes) {
    return cub::DeviceScan::InclusiveSumByKey(memory, bytes, keys_in.data(), in.data(), out.data(), kCount);
  });
  std::vector<int> sums;
  for (int i = 0; i < kCount; ++i) {
    expected[i] = values[i] + (i % kEqualKeys == 0 ? 0 : expected[i - 1]);
    if ((i + 1) % kEqualKeys == 0 || i + 1 == kCount) sums.push_back(expected[i]);
  }
  is_right &= out.values() == expected;

  run([&](void* memory, std::size_t& bytes) {
    return cub::DeviceReduce::ReduceByKey(memory, bytes, keys_in.data(), keys_out.data(), in.data(), sums_out.data(),
                                          count.data(), cuda::std::plus<>{}, kCount);
  });
  return verdict(is_right && count.values()[0] == static_cast<int>(sums.size()) &&
                 sums_out.values(sums.size()) == sums);
}
