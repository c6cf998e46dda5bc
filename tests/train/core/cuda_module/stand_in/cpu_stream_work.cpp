// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "kernels/simt/engine/executor.h"
#include "tests/train/core/cuda_module/stand_in/stream_work.h"

namespace gradring::tests {

void enqueue(void* stream, std::function<void()> work) {
  static_cast<simt::LaunchQueue*>(stream)->enqueue_launch([work = std::move(work)](simt::Executor&) { work(); });
}

void note_use(const char*, const void*, std::size_t, bool) {}

}  // namespace gradring::tests
