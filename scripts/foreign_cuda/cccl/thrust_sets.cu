// SPDX-License-Identifier: Apache-2.0
// thrust::sort, unique in place, set_intersection.
#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/unique.h>

#include <algorithm>

#include "scripts/foreign_cuda/cccl/check.h"

namespace {

void make_set(thrust::device_vector<int>& values) {
  thrust::sort(values.begin(), values.end());
  values.erase(thrust::unique(values.begin(), values.end()), values.end());
}

void make_set(std::vector<int>& values) {
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

int main() {
  std::vector<int> a = numbers(20'000, 0, 5000), b = numbers(20'000, 0, 5000, 2), both;
  thrust::device_vector<int> on_gpu_a(a.begin(), a.end()), on_gpu_b(b.begin(), b.end()), on_gpu_both(a.size());
  make_set(on_gpu_a);
  make_set(on_gpu_b);
  const auto end =
      thrust::set_intersection(on_gpu_a.begin(), on_gpu_a.end(), on_gpu_b.begin(), on_gpu_b.end(), on_gpu_both.begin());
  make_set(a);
  make_set(b);
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  std::vector<int> found(end - on_gpu_both.begin());
  thrust::copy(on_gpu_both.begin(), end, found.begin());
  return verdict(found == both);
}
