// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/gather.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/error.h"

namespace gradring::comm::nccl {
namespace {

constexpr std::chrono::milliseconds kCheckInterval(50);

}  // namespace

GatherResult gather(Store& store, const std::string& key, int rank, int world_size, const std::string& mine,
                    Deadline deadline, const std::function<void(int missing)>& check) {
  store.set(fmt::format("{}/{}", key, rank), mine);
  GatherResult gathered;
  for (int from = 0; from < world_size; ++from) {
    std::string& value = gathered.values.emplace_back();
    for (;;) {
      const bool last = deadline.remaining() <= kCheckInterval;
      try {
        value = store.wait(fmt::format("{}/{}", key, from),
                           Deadline::after(std::min<std::chrono::nanoseconds>(deadline.remaining(), kCheckInterval)));
        break;
      } catch (const Timeout&) {
        check(from);
        if (!last) continue;
        gathered.missing.push_back(from);
        break;
      }
    }
  }
  return gathered;
}

}  // namespace gradring::comm::nccl
