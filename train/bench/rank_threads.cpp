// SPDX-License-Identifier: Apache-2.0
#include "train/bench/rank_threads.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "comm/transport/error.h"

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
