// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/gather.h"

#include <fmt/format.h>

#include <algorithm>

#include "comm/error.h"

namespace gradring::comm::nccl {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(50);

}  // namespace

Gathering gather(Store& store, const std::string& key, int rank, int world_size, const std::string& mine,
                 Deadline deadline, const std::function<void(int missing)>& look) {
  store.set(fmt::format("{}/{}", key, rank), mine);
  Gathering gathering;
  for (int from = 0; from < world_size; ++from) {
    std::string& value = gathering.values.emplace_back();
    for (;;) {
      const bool last = deadline.remaining() <= kBetweenLooks;
      try {
        value = store.wait(fmt::format("{}/{}", key, from),
                           Deadline::after(std::min<std::chrono::nanoseconds>(deadline.remaining(), kBetweenLooks)));
        break;
      } catch (const Timeout&) {
        look(from);
        if (!last) continue;
        gathering.missing.push_back(from);
        break;
      }
    }
  }
  return gathering;
}

}  // namespace gradring::comm::nccl
