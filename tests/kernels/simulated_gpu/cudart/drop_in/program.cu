// SPDX-License-Identifier: Apache-2.0
// A program as anyone writes it: the first argument says which part runs. It knows nothing of gradring.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cstring>

/// Ends the program with the call that failed.
void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  std::printf("%s: %s\n", call, cudaGetErrorName(result));
  std::exit(3);
}
#define CHECK(call) check((call), #call)

__constant__ float coefficients[4] = {1, 2, 3, 4};
__device__ int counter = 7;
__device__ int* pointer_to_counter = &counter;
__device__ const char* names[2] = {"left", "right"};
__managed__ int shared_with_host = 5;

__global__ void greet() {
  printf("thread %d of block %d: %5.2f|%-4s|%c|%lld|%x|%%\n", threadIdx.x, blockIdx.x, 1.5 * threadIdx.x,
         names[threadIdx.x % 2], 'a' + threadIdx.x, 1ll << 40, 255);
}

__global__ void scale(int* data, int n, int factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) data[i] = data[i] * factor + 1;
}

__global__ void weigh(float* out) {
  out[threadIdx.x] = coefficients[threadIdx.x % 4] * counter;
  __syncthreads();
  if (threadIdx.x == 0) {
    ++*pointer_to_counter;
    shared_with_host = 9;
  }
}

__global__ void require_positive(int n) { assert(n > 0); }

__global__ void use_heap(int* out) {
  int* const own = static_cast<int*>(malloc(sizeof(int)));
  *own = threadIdx.x;
  out[threadIdx.x] = *own;
  free(own);
}

__global__ void race(int* data) {
  __shared__ int tile[64];
  tile[threadIdx.x] = 0;
  __syncthreads();
  tile[threadIdx.x] = threadIdx.x;
  data[threadIdx.x] = tile[63 - threadIdx.x];
}

int printf_of_kernels() {
  greet<<<2, 2>>>();
  std::printf("launched\n");
  CHECK(cudaDeviceSynchronize());
  return 0;
}

/// The second launch is behind the first, though it is in another stream, and the copy is behind both.
int default_stream() {
  constexpr int kElements = 64;
  int* data;
  CHECK(cudaMalloc(&data, kElements * sizeof(int)));
  CHECK(cudaMemset(data, 0, kElements * sizeof(int)));
  cudaStream_t blocking;
  CHECK(cudaStreamCreate(&blocking));
  scale<<<2, 32>>>(data, kElements, 2);
  scale<<<2, 32, 0, blocking>>>(data, kElements, 3);
  scale<<<2, 32>>>(data, kElements, 5);
  int result[kElements];
  CHECK(cudaMemcpy(result, data, sizeof result, cudaMemcpyDeviceToHost));
  std::printf("%d %d\n", result[0], result[63]);
  CHECK(cudaStreamDestroy(blocking));
  CHECK(cudaFree(data));
  return 0;
}

int variables() {
  float* out;
  CHECK(cudaMalloc(&out, 4 * sizeof(float)));
  shared_with_host = 6;
  const float others[2] = {10, 20};
  CHECK(cudaMemcpyToSymbol(coefficients, others, sizeof others, 2 * sizeof(float)));
  weigh<<<1, 4>>>(out);
  CHECK(cudaDeviceSynchronize());
  float result[4];
  int count = 0;
  size_t bytes = 0;
  CHECK(cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  CHECK(cudaGetSymbolSize(&bytes, coefficients));
  std::printf("%g %g %g %g, %d, %d, %zu\n", result[0], result[1], result[2], result[3], count, shared_with_host, bytes);
  CHECK(cudaFree(out));
  return 0;
}

int managed() {
  int* data;
  CHECK(cudaMallocManaged(&data, 64 * sizeof(int)));
  for (int i = 0; i < 64; ++i) data[i] = i;
  scale<<<2, 32>>>(data, 64, 2);
  CHECK(cudaDeviceSynchronize());
  std::printf("%d %d\n", data[0], data[63]);
  CHECK(cudaFree(data));
  return 0;
}

int graph_by_hand() {
  int *data, host[64];
  CHECK(cudaMalloc(&data, sizeof host));
  for (int& value : host) value = 1;
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t to_device, kernel, to_host;
  CHECK(cudaGraphAddMemcpyNode1D(&to_host, graph, nullptr, 0, host, data, sizeof host, cudaMemcpyDeviceToHost));
  CHECK(cudaGraphAddMemcpyNode1D(&to_device, graph, nullptr, 0, data, host, sizeof host, cudaMemcpyHostToDevice));
  int n = 64, factor = 2;
  void* arguments[] = {&data, &n, &factor};
  cudaKernelNodeParams parameters{};
  parameters.func = reinterpret_cast<void*>(scale);
  parameters.gridDim = dim3(2);
  parameters.blockDim = dim3(32);
  parameters.kernelParams = arguments;
  CHECK(cudaGraphAddKernelNode(&kernel, graph, &to_device, 1, &parameters));
  CHECK(cudaGraphAddDependencies(graph, &kernel, &to_host, nullptr, 1));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, nullptr));
  CHECK(cudaDeviceSynchronize());
  factor = 10;
  CHECK(cudaGraphExecKernelNodeSetParams(executable, kernel, &parameters));
  CHECK(cudaGraphLaunch(executable, nullptr));
  CHECK(cudaDeviceSynchronize());
  std::printf("%d\n", host[0]);
  CHECK(cudaGraphExecDestroy(executable));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaFree(data));
  return 0;
}

int failed_assertion() {
  require_positive<<<1, 32>>>(0);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 0;
}

int heap() {
  int *data, host[32];
  CHECK(cudaMalloc(&data, sizeof host));
  use_heap<<<1, 32>>>(data);
  CHECK(cudaMemcpy(host, data, sizeof host, cudaMemcpyDeviceToHost));
  std::printf("%d\n", host[31]);
  CHECK(cudaFree(data));
  return 0;
}

int shared_race() {
  int* data;
  CHECK(cudaMalloc(&data, 64 * sizeof(int)));
  race<<<1, 64>>>(data);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(data));
  std::printf("done\n");
  return 0;
}

int leak() {
  int* data;
  CHECK(cudaMalloc(&data, 100));
  return 0;
}

[[gnu::noinline]] int scale_one(int* data) {
  scale<<<1, 1>>>(data, 1, 2);
  return 0;
}

[[gnu::noinline]] int scale_two(int* data) {
  scale<<<1, 2>>>(data, 2, 2);
  return 0;
}

/// Both functions launch at one depth of the stack.
int pending() {
  int* data;
  CHECK(cudaMalloc(&data, 4));
  CHECK(cudaMemset(data, 0, 4));
  for (int i = 0; i < 3; ++i) CHECK(static_cast<cudaError_t>(scale_one(data)));
  return scale_two(data);
}

int endless() {
  int* data;
  CHECK(cudaMalloc(&data, 4));
  CHECK(cudaMemset(data, 0, 4));
  scale<<<1, 1>>>(data, 1, 2);
  CHECK(cudaDeviceSynchronize());
  for (;;) {
  }
}

int exit_in_callback() {
  CHECK(cudaLaunchHostFunc(
      nullptr, [](void*) { std::exit(5); }, nullptr));
  CHECK(cudaDeviceSynchronize());
  for (;;) pause();
}

/// The exit code of a child that calls CUDA, after the parent has called it or not.
int fork_and_call(bool has_called) {
  if (has_called) CHECK(cudaFree(nullptr));
  const pid_t child = fork();
  if (child == 0) {
    int* data;
    const cudaError_t result = cudaMalloc(&data, 4);
    std::printf("%s %s\n", cudaGetErrorName(result), cudaGetErrorName(cudaDeviceSynchronize()));
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}
int fork_before() { return fork_and_call(false); }
int fork_after() { return fork_and_call(true); }

/// Of libcuda.so.1, which this program is not linked with.
int driver_errors() {
  using GetName = int (*)(int, const char**);
  const auto name_of = reinterpret_cast<GetName>(dlsym(RTLD_DEFAULT, "cuGetErrorName"));
  for (const int error : {0, 2, 700, 9}) {
    const char* name = nullptr;
    const int result = name_of(error, &name);
    std::printf("%d %s\n", result, name == nullptr ? "unknown" : name);
  }
  return 0;
}

int main(int, char** arguments) {
  const struct {
    const char* name;
    int (*run)();
  } parts[] = {{"printf", printf_of_kernels},
               {"default_stream", default_stream},
               {"variables", variables},
               {"managed", managed},
               {"graph", graph_by_hand},
               {"assert", failed_assertion},
               {"heap", heap},
               {"race", shared_race},
               {"leak", leak},
               {"endless", endless},
               {"pending", pending},
               {"exit_in_callback", exit_in_callback},
               {"fork_before", fork_before},
               {"fork_after", fork_after},
               {"driver_errors", driver_errors}};
  for (const auto& part : parts)
    if (std::strcmp(arguments[1], part.name) == 0) return part.run();
  return 4;
}
