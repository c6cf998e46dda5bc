// SPDX-License-Identifier: Apache-2.0
#include "train/bench/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "comm/transport/error.h"
#include "train/bench/machine_state.h"
#include "train/launch/launcher.h"
#include "train/options/environment_variable.h"
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

double processor_seconds_of_others(comm::ProcessGroup& group, double begin) {
  const double mine = processor_seconds_of_process() - begin;
  const std::vector<std::byte> all = group.all_gather_on_host(std::as_bytes(std::span(&mine, 1)));
  std::vector<double> seconds(all.size() / sizeof mine);
  std::memcpy(seconds.data(), all.data(), all.size());
  double others = -mine;
  for (const double each : seconds) others += each;
  return others;
}

int run_as_processes(const std::string& benchmark, Arguments args, int given, int by_default,
                     const std::function<void(const WorkerEnvironment&)>& run_rank) {
  const int ranks = given > 0 ? given : by_default;
  if ((ranks > 1 || by_default > 1) && !system_variable("RANK")) {
    std::vector<std::string> command = {"bench", benchmark};
    command.insert(command.end(), args.begin(), args.end());
    return spawn_ranks(ranks, command);
  }
  const auto environment = WorkerEnvironment::from_environment(system_variable);
  if (given > 0 && given != environment.world_size)
    throw UsageError(
        fmt::format("--nprocs is {}, but the launcher started {} ranks: leave it out", given, environment.world_size));
  run_rank(environment);
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
