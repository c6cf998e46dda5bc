// SPDX-License-Identifier: Apache-2.0
// cub::DeviceRadixSort, DeviceSegmentedSort.
#include <algorithm>
#include <cub/cub.cuh>
#include <numeric>

#include "scripts/foreign_cuda/cccl/check.h"

int main() {
  constexpr int kCount = 100'000;
  const std::vector<int> keys = numbers(kCount, -1'000'000, 1'000'000);
  std::vector<int> places(kCount);
  std::iota(places.begin(), places.end(), 0);
  Array<int> in(keys), out(kCount), values_in(places), values_out(kCount);
  run([&](void* memory, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(memory, bytes, in.data(), out.data(), values_in.data(), values_out.data(),
                                           kCount);
  });
  std::vector<int> sorted = keys;
  std::ranges::stable_sort(sorted);
  std::ranges::stable_sort(places, {}, [&](int place) { return keys[place]; });
  bool is_right = out.values() == sorted && values_out.values() == places;

  const std::vector<int> ends{0, 10, 10, 500, 2000, 30'000, kCount};
  const int segments = static_cast<int>(ends.size()) - 1;
  Array<int> offsets(ends);
  run([&](void* memory, std::size_t& bytes) {
    return cub::DeviceSegmentedSort::SortKeys(memory, bytes, in.data(), out.data(), kCount, segments, offsets.data(),
                                              offsets.data() + 1);
  });
  sorted = keys;
  for (int i = 0; i < segments; ++i) std::sort(sorted.begin() + ends[i], sorted.begin() + ends[i + 1]);
  return verdict(is_right && out.values() == sorted);
}
