// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace gradring::simt::detail {

/// OS threads that help one executor. They start with the first job and end with the pool.
///
/// Threads   one caller at a time.
class Pool {
 public:
  explicit Pool(unsigned helpers) : helpers_(helpers) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  using Job = std::function<void(unsigned worker)>;
  /// Calls job(0) here and job(1), ..., job(count - 1) on helpers; returns when all have returned. `job` must not
  /// throw.
  ///
  /// Errors    std::system_error if a helper's thread cannot be started; nothing was called then.
  void run(unsigned count, const Job& job);

 private:
  /// One helper thread and the signal that wakes it. Each has its own: a signal shared by all would order the start of
  /// one helper after the end of another, and TSan would no longer see a race between their blocks.
  struct Helper {
    std::mutex mutex;
    std::condition_variable called;
    std::atomic<unsigned> calls{0};
    bool stop = false;
    std::thread thread;
  };
  void serve(Helper& helper, unsigned worker);

  unsigned helpers_;
  std::vector<std::unique_ptr<Helper>> crew_;
  const Job* job_ = nullptr;
  std::atomic<unsigned> running_{0};
  std::mutex done_mutex_;
  std::condition_variable done_;  // the last helper to finish wakes run()
};

}  // namespace gradring::simt::detail
