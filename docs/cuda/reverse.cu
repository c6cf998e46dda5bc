// SPDX-License-Identifier: Apache-2.0
// Reverses 256 numbers. Between the two accesses of shared memory, __syncthreads() is missing.
#include <cstdio>

__global__ void reverse(int* data) {
  __shared__ int tile[256];
  const int i = threadIdx.x;
  tile[i] = data[i];
  data[i] = tile[255 - i];
}

int main() {
  int host[256], *device;
  for (int i = 0; i < 256; ++i) host[i] = i;
  cudaMalloc(&device, sizeof host);
  cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
  reverse<<<1, 256>>>(device);
  cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("first %d, last %d\n", host[0], host[255]);
  cudaFree(device);
}
