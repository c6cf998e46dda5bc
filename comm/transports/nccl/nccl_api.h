// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>

#include "kernels/runtime/dtype.h"

namespace gradring::comm::nccl {

/// The types of elements that NCCL sends for us. All others are sent as bytes.
struct DataType {
  kernels::DType ours;
  ncclDataType_t theirs;
};
inline constexpr DataType kDataTypes[] = {{kernels::DType::f32, ncclFloat32},
                                          {kernels::DType::f16, ncclFloat16},
                                          {kernels::DType::bf16, ncclBfloat16},
                                          {kernels::DType::i32, ncclInt32},
                                          {kernels::DType::i64, ncclInt64}};

constexpr ncclDataType_t type_of(kernels::DType dtype) {
  const auto* const found = std::ranges::find(kDataTypes, dtype, &DataType::ours);
  return found == std::end(kDataTypes) ? ncclUint8 : found->theirs;
}

constexpr kernels::DType dtype_of(ncclDataType_t type) {
  const auto* const found = std::ranges::find(kDataTypes, type, &DataType::theirs);
  return found == std::end(kDataTypes) ? kernels::DType::u8 : found->ours;
}

/// The NCCL functions that we call, as values: from the library, or from a fake in tests. Nothing links NCCL.
struct Api {
  std::function<decltype(ncclGetVersion)> get_version;
  std::function<decltype(ncclGetErrorString)> get_error_string;
  std::function<decltype(ncclGetLastError)> get_last_error;
  std::function<decltype(ncclGetUniqueId)> get_unique_id;
  std::function<decltype(ncclCommInitRankConfig)> comm_init_rank_config;
  std::function<decltype(ncclCommGetAsyncError)> comm_get_async_error;
  std::function<decltype(ncclCommFinalize)> comm_finalize;
  std::function<decltype(ncclCommDestroy)> comm_destroy;
  std::function<decltype(ncclCommAbort)> comm_abort;
  std::function<decltype(ncclCommRevoke)> comm_revoke;  ///< empty before NCCL 2.28.7
  std::function<decltype(ncclGroupStart)> group_start;
  std::function<decltype(ncclGroupEnd)> group_end;
  std::function<decltype(ncclSend)> send;
  std::function<decltype(ncclRecv)> recv;
  std::function<decltype(ncclAllReduce)> all_reduce;
};

/// "invalid usage: ...": NCCL's text for `result`, and its last message if there is one. `comm` may be null.
std::string describe_error(const Api& api, ncclResult_t result, ncclComm_t comm);

/// Loads the library; it stays loaded until the process ends, because it has threads.
///
/// Errors    DeviceError if the library is missing or older than 2.19.
Api load_library(const std::string& file = "libnccl.so.2");

/// For simulated GPUs: the functions that the module of this code has (simulated/nccl.cpp). NVIDIA's library does not
/// see such GPUs.
///
/// Errors    DeviceError if the module has none.
Api load_simulated();

// Streams as simulated/nccl.cpp sees them: of simulated GPUs (simulated/stream_work.cpp), or in tests of GPUs that the
// CPU stands in for.

/// Enqueues `work` on a cudaStream_t, which runs in the order of the stream; if that is captured, at every launch of the
/// graph.
void enqueue(void* stream, std::function<void()> work);

/// Within such work: `call` reads or writes these bytes of a device. What it wrote, kernels may read.
///
/// Errors    on simulated GPUs: throws what the device fails with if they are not within a block of memory, or race with
///           other work.
void note_use(const char* call, const void* data, std::size_t bytes, bool is_write);

}  // namespace gradring::comm::nccl
