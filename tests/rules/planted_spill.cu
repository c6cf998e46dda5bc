// SPDX-License-Identifier: Apache-2.0
// More live values than a thread has registers: tests/rules/CMakeLists.txt expects an error for each architecture.

constexpr int kValues = 64;

__global__ void __launch_bounds__(1024, 2) spilling_kernel(float* x, int rounds) {
  float values[kValues];
#pragma unroll
  for (int i = 0; i < kValues; ++i) values[i] = x[i * 1024 + threadIdx.x];
  for (int round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < kValues; ++i)
      values[i] = values[i] * values[(i + 1) % kValues] + values[(i + kValues / 2) % kValues];
  }
#pragma unroll
  for (int i = 0; i < kValues; ++i) x[i * 1024 + threadIdx.x] = values[i];
}
