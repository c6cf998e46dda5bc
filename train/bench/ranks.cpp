// SPDX-License-Identifier: Apache-2.0
#include "train/bench/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "comm/transport/error.h"
#include "train/bench/machine_state.h"
#include "train/launch/launcher.h"
#include "train/options/exit_code.h"
#include "train/options/usage_error.h"

namespace gradring::train::bench {
namespace {

/// Whether a rank failed only because another one had.
bool blames_peer(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const comm::PeerLost&) {
    return true;
  } catch (const comm::Timeout&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

double processor_seconds_of_others(comm::ProcessGroup& group, const WorkerEnvironment& environment, double begin) {
  struct Share {
    double seconds;
    std::int64_t node;
  };
  const Share mine{.seconds = processor_seconds_of_process() - begin, .node = environment.group_rank};
  const std::vector<std::byte> all = group.all_gather_on_host(std::as_bytes(std::span(&mine, 1)));
  std::vector<Share> shares(all.size() / sizeof mine);
  std::memcpy(shares.data(), all.data(), all.size());
  double others = -mine.seconds;
  for (const Share& share : shares)
    if (share.node == mine.node) others += share.seconds;
  return others;
}

int run_as_processes(const RankedBench& bench, const WorkerEnvironment& environment,
                     const std::function<void()>& run_rank) {
  const int ranks = bench.nprocs > 0 ? bench.nprocs : bench.by_default;
  if (ranks > 1 && !environment.is_launched()) {
    std::vector<std::string> command = {"bench", bench.name};
    command.insert(command.end(), bench.args.begin(), bench.args.end());
    return spawn_ranks(ranks, command);
  }
  if (bench.nprocs > 0 && bench.nprocs != environment.world_size)
    throw UsageError(fmt::format("--nprocs is {}, but there are {} ranks, started by {}: leave it out", bench.nprocs,
                                 environment.world_size, environment.launcher));
  run_rank();
  return kOk;
}

void run_as_threads(int world_size, const std::function<void(int rank)>& run_rank) {
  std::mutex mutex;
  std::vector<std::exception_ptr> errors;  // in the order of time
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < world_size; ++rank)
      threads.emplace_back([&, rank] {
        try {
          run_rank(rank);
        } catch (...) {
          const std::lock_guard lock(mutex);
          errors.push_back(std::current_exception());
        }
      });
  }
  if (errors.empty()) return;
  const auto cause = std::ranges::find_if_not(errors, blames_peer);
  std::rethrow_exception(cause == errors.end() ? errors.front() : *cause);
}

}  // namespace gradring::train::bench
