// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/simulated_gpu/cudart/runtime.h"

namespace gradring::simulated_gpu {

/// Rows of bytes, which may have gaps in between; with one row, a plain range.
struct CopyShape {
  std::size_t bytes = 0;  ///< of a row
  std::size_t rows = 1;   ///< of a slice
  std::size_t slices = 1;

  bool is_empty() const { return bytes == 0 || rows == 0 || slices == 0; }
  bool is_range() const { return rows == 1 && slices == 1; }
};

/// One side of a copy: from the begin of a row and of a slice to the next.
struct Pitch {
  std::size_t row = 0;
  std::size_t slice = 0;
};

struct CopySpec {
  const char* name = "";  ///< of the call
  void* to = nullptr;
  Pitch to_pitch{};
  const void* from = nullptr;
  Pitch from_pitch{};
  CopyShape shape{};
  cudaMemcpyKind kind = cudaMemcpyDefault;
  bool waits = false;  ///< a synchronous call
};

/// Errors    Misuse for an array, which is for textures.
CopySpec copy_spec(const char* name, const cudaMemcpy3DParms& parameters);

/// Enqueues a copy, and waits for it where CUDA does: a synchronous copy from or to memory of the host, and any copy to
/// pageable memory.
///
/// Errors    Misuse: ranges beyond their blocks, another kind than that of the addresses; Refusal if the device failed.
void copy(Call& call, cudaStream_t stream, const CopySpec& spec);
/// The work of such a copy, for a graph.
StreamWork copy_work(Runtime& rt, const CopySpec& spec, int device);

struct ClearSpec {
  const char* name = "";
  void* to = nullptr;
  Pitch pitch{};
  CopyShape shape{};
  unsigned value = 0;
  unsigned element_bytes = 1;  ///< of the value: 1, 2 or 4
  bool waits = false;
};

/// The same for what cudaMemset writes. A synchronous one waits if it writes memory of the host.
void clear(Call& call, cudaStream_t stream, const ClearSpec& spec);
StreamWork clear_work(Runtime& rt, const ClearSpec& spec, int device);

}  // namespace gradring::simulated_gpu
