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
  async_queue_of_thread(site).start(shared, global);
}

inline void commit_async_copies(Site site = Site::current()) { async_queue_of_thread(site).commit(); }

inline void wait_for_async_copies(unsigned pending, Site site = Site::current()) {
  async_queue_of_thread(site).land_all_but(pending, [](void* to, const void* from) {
    store_as<uint4>(static_cast<char*>(to), load_as<uint4>(static_cast<const char*>(from)));
  });
}

}  // namespace gradring::simt::detail
