// SPDX-License-Identifier: Apache-2.0
// For programs that call CUB, Thrust and libcu++ and compare with the host: each prints "right" or "wrong". From the root:
//   nvcc -std=c++20 -O3 -lineinfo -cudart shared --extended-lambda -arch=sm_90a -I. FILE.cu -o PROGRAMS/cccl/FILE
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

inline void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  std::printf("%s\n", cudaGetErrorString(error));
  std::exit(2);
}

inline int verdict(bool is_right) {
  std::printf(is_right ? "right\n" : "wrong\n");
  return is_right ? 0 : 1;
}

/// Memory of the GPU.
template <class T>
class Array {
 public:
  explicit Array(std::size_t elements) : elements_(elements) { check(cudaMalloc(&data_, elements * sizeof(T))); }
  explicit Array(const std::vector<T>& values) : Array(values.size()) {
    check(cudaMemcpy(data_, values.data(), elements_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~Array() { check(cudaFree(data_)); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() { return data_; }
  /// The first elements; all by default.
  std::vector<T> values() const { return values(elements_); }
  std::vector<T> values(std::size_t elements) const {
    std::vector<T> copy(elements);
    check(cudaMemcpy(copy.data(), data_, elements * sizeof(T), cudaMemcpyDeviceToHost));
    return copy;
  }

 private:
  std::size_t elements_;
  T* data_ = nullptr;
};

/// Calls call(memory, bytes), a function of cub::Device*, for the size of its memory, and again with that memory.
template <class Call>
void run(const Call& call) {
  std::size_t bytes = 0;
  check(call(nullptr, bytes));
  Array<char> memory(bytes);
  check(call(memory.data(), bytes));
  check(cudaDeviceSynchronize());
}

/// Numbers from `low` to `high`, the same in every run.
inline std::vector<int> numbers(std::size_t count, int low, int high, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::vector<int> values(count);
  for (int& value : values) value = low + static_cast<int>(generator() % static_cast<unsigned>(high - low + 1));
  return values;
}
