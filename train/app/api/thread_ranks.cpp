// SPDX-License-Identifier: Apache-2.0
#include "train/app/api/thread_ranks.h"

#include <thread>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "train/launch/workers/run_folder.h"

namespace gradring::train::api {

void JoinGate::pass() {
  std::unique_lock lock(mutex_);
  --missing_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return missing_ == 0 || error_; });
  if (error_) throw DeviceError("another rank has failed");
}

void JoinGate::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  changed_.notify_all();
}

void run_ranks_as_threads(int ranks, const RankBody& body) {
  const RunFolder folder;
  JoinGate gate(ranks);
  const auto run = [&](int rank) {
    const WorkerEnvironment environment{.rank = rank,
                                        .world_size = ranks,
                                        .local_rank = rank,
                                        .local_world_size = ranks,
                                        .role_rank = rank,
                                        .role_world_size = ranks,
                                        .store_path = folder.store()};
    KeptAlive kept;  // peers notice when it disappears, and their errors must not come first
    try {
      body(environment, kept, [&gate] { gate.pass(); });
    } catch (...) {
      gate.fail(std::current_exception());
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (int rank = 1; rank < ranks; ++rank) others.emplace_back(run, rank);
      run(0);
    } catch (...) {  // a thread that cannot be started
      gate.fail(std::current_exception());
    }
  }
  gate.rethrow_first();
}

}  // namespace gradring::train::api
