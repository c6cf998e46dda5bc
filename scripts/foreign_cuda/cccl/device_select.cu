// SPDX-License-Identifier: Apache-2.0
// cub::DeviceSelect, DeviceRunLengthEncode, DeviceHistogram, DeviceTransform.
#include <algorithm>
#include <cub/cub.cuh>
#include <cub/device/device_transform.cuh>

#include "scripts/foreign_cuda/cccl/check.h"

int main() {
  constexpr int kCount = 100'003;
  constexpr int kBins = 16;
  const std::vector<int> values = numbers(kCount, 0, kBins - 1);
  Array<int> in(values), out(kCount), lengths(kCount), count(1), bins(kBins);

  run([&](void* memory, std::size_t& bytes) {
    return cub::DeviceSelect::If(memory, bytes, in.data(), out.data(), count.data(), kCount,
                                 [] __device__(int value) { return value % 2 == 1; });
  });
  std::vector<int> expected;
  std::ranges::copy_if(values, std::back_inserter(expected), [](int value) { return value % 2 == 1; });
  bool is_right = count.values()[0] == static_cast<int>(expected.size()) && out.values(expected.size()) == expected;

  run([&](void* memory, std::size_t& bytes) {
    return cub::DeviceRunLengthEncode::Encode(memory, bytes, in.data(), out.data(), lengths.data(), count.data(),
                                              kCount);
  });
  std::vector<int> runs, expected_lengths;
  for (const int value : values) {
    if (runs.empty() || runs.back() != value) runs.push_back(value), expected_lengths.push_back(0);
    ++expected_lengths.back();
  }
  is_right &= count.values()[0] == static_cast<int>(runs.size()) && out.values(runs.size()) == runs &&
              lengths.values(runs.size()) == expected_lengths;

  run([&](void* memory, std::size_t& bytes) {
    return cub::DeviceHistogram::HistogramEven(memory, bytes, in.data(), bins.data(), kBins + 1, 0, kBins, kCount);
  });
  std::vector<int> counts(kBins);
  for (const int value : values) ++counts[value];
  is_right &= bins.values() == counts;

  check(cub::DeviceTransform::Transform(cuda::std::make_tuple(in.data(), in.data()), out.data(), kCount,
                                        [] __device__(int a, int b) { return 3 * a + b; }));
  check(cudaDeviceSynchronize());
  expected = values;
  for (int& value : expected) value *= 4;
  return verdict(is_right && out.values() == expected);
}
