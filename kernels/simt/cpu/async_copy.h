// SPDX-License-Identifier: Apache-2.0
// What kernels/lib/async_copy.h means on the CPU. Instrumented code: TSan shall see these copies as the thread's own.
#pragma once

#include "kernels/simt/cpu/vector_types.h"
#include "kernels/simt/cpu/wide_access.h"
#include "kernels/simt/engine/async_queue.h"

namespace gradring::simt::detail {

inline void start_async_copy16(void* shared, const void* global, Site site = Site::current()) {
  check_aligned<uint4>(shared, site);
  check_aligned<uint4>(global, site);
  async_work_of_thread("async_copy16", site).copies.start({shared, global});
}

inline void commit_async_copies(Site site = Site::current()) {
  async_work_of_thread("async_commit", site).copies.commit();
}

inline void wait_for_async_copies(unsigned pending, Site site = Site::current()) {
  async_work_of_thread("async_wait", site).copies.land_all_but(pending, [](const AsyncCopy& copy) {
    store_as<uint4>(static_cast<char*>(copy.to), load_as<uint4>(static_cast<const char*>(copy.from)));
  });
}

}  // namespace gradring::simt::detail
