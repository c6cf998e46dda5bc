// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/rank_info.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "comm/transport/error.h"
#include "kernels/base/number_list.h"

namespace gradring::comm::nccl {
namespace {

constexpr std::chrono::milliseconds kCheckInterval(50);

std::string without_spaces(std::string text) {
  std::replace(text.begin(), text.end(), ' ', '-');
  return text.empty() ? "-" : text;
}

void check_same_world(const NcclOptions& options, const RankInfo& mine, int rank, const RankInfo& theirs) {
  if (theirs.world_size == mine.world_size && theirs.nccl_version == mine.nccl_version) return;
  throw Desync({options.rank, rank, "join", 0},
               fmt::format("ranks do not match: rank {} has world size {} and NCCL {}, rank {} ({}) has world size {} "
                           "and NCCL {}; start all ranks with the same world size and the same NCCL",
                           options.rank, mine.world_size, mine.nccl_version, rank, theirs.process, theirs.world_size,
                           theirs.nccl_version));
}

void check_own_gpus(const std::vector<RankInfo>& all) {
  for (std::size_t one = 0; one < all.size(); ++one)
    for (std::size_t other = one + 1; other < all.size(); ++other) {
      const RankInfo &a = all[one], &b = all[other];
      const bool same = a.host == b.host && a.gpu == b.gpu;
      check<DeviceError>(!same || (a.shares_gpu && b.shares_gpu), [&] {
        return fmt::format(
            "rank {} ({}) and rank {} ({}) use the same GPU {}: give each rank its own GPU, "
            "start fewer ranks, or, for a test, pass --allow-shared-gpu",
            one, a.process, other, b.process, a.gpu);
      });
    }
}

[[noreturn]] void throw_missing(const NcclOptions& options, const std::vector<int>& missing,
                                Deadline::Clock::time_point began) {
  const auto waited = std::chrono::duration<double>(Deadline::Clock::now() - began);
  throw Timeout({options.rank, missing.front(), "join", 0},
                fmt::format("rank {} waited {:.1f} s for rank {} of a world of {} to join: start the missing ranks, "
                            "give all ranks the same world size and store, or raise the timeout",
                            options.rank, waited.count(), number_list(missing), options.world_size));
}

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

std::string RankInfo::to_text() const {
  return fmt::format("{} {} {} {:d} {} {} {} {}", world_size, nccl_version, pid, shares_gpu, without_spaces(host),
                     without_spaces(namespaces), without_spaces(gpu), process);
}

RankInfo RankInfo::parse(const std::string& text) {
  std::istringstream fields(text);
  RankInfo read;
  fields >> read.world_size >> read.nccl_version >> read.pid >> read.shares_gpu >> read.host >> read.namespaces >>
      read.gpu >> std::ws;
  std::getline(fields, read.process);
  check<DeviceError>(!fields.fail(),
                     [&] { return "invalid rank info in the store: found '" + text + "', expected 8 fields"; });
  return read;
}

std::vector<RankInfo> exchange_rank_info(const NcclOptions& options, const RankInfo& mine, const std::string& prefix,
                                         Deadline deadline) {
  const auto began = Deadline::Clock::now();
  const GatherResult gathered =
      gather(options.store, prefix + "/rank", options.rank, options.world_size, mine.to_text(), deadline, [](int) {});
  if (!gathered.missing.empty()) throw_missing(options, gathered.missing, began);
  std::vector<RankInfo> all;
  for (const std::string& text : gathered.values) {
    all.push_back(RankInfo::parse(text));
    check_same_world(options, mine, static_cast<int>(all.size()) - 1, all.back());
  }
  check_own_gpus(all);
  return all;
}

}  // namespace gradring::comm::nccl
