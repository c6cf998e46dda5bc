// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/engine/pool.h"

#include <utility>

namespace gradring::simt::detail {
namespace {

/// Launches come in bursts, and waking a thread costs more than most kernels: look a few times before sleeping.
template <class Predicate>
bool spin(Predicate done) {
  constexpr int kTurns = 500;
  for (int turn = 0; turn < kTurns; ++turn) {
    if (done()) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  return done();
}

}  // namespace

Pool::~Pool() {
  for (auto& helper : crew_) {
    {
      std::lock_guard lock(helper->mutex);
      helper->stop = true;
      helper->calls.fetch_add(1, std::memory_order_release);
    }
    helper->called.notify_one();
    helper->thread.join();
  }
}

void Pool::run(unsigned count, const Job& job) {
  crew_.reserve(helpers_);
  while (crew_.size() < helpers_) {
    auto helper = std::make_unique<Helper>();  // joins the crew only if its thread could be started
    helper->thread = std::thread(
        [this, &helper = *helper, worker = static_cast<unsigned>(crew_.size()) + 1] { serve(helper, worker); });
    crew_.push_back(std::move(helper));
  }
  job_ = &job;
  running_.store(count - 1, std::memory_order_relaxed);
  for (unsigned i = 0; i + 1 < count; ++i) {
    Helper& helper = *crew_[i];
    {
      std::lock_guard lock(helper.mutex);
      helper.calls.fetch_add(1, std::memory_order_release);
    }
    helper.called.notify_one();
  }
  job(0);
  const auto all_done = [this] { return running_.load(std::memory_order_acquire) == 0; };
  if (spin(all_done)) return;
  std::unique_lock lock(done_mutex_);  // without a deadline: a kernel that does not end cannot be given up
  done_.wait(lock, all_done);
}

void Pool::serve(Helper& helper, unsigned worker) {
  for (unsigned seen = 0;; ++seen) {
    const auto called = [&] { return helper.calls.load(std::memory_order_acquire) != seen; };
    if (!spin(called)) {
      std::unique_lock lock(helper.mutex);
      helper.called.wait(lock, called);
    }
    {
      std::lock_guard lock(helper.mutex);
      if (helper.stop) return;
    }
    (*job_)(worker);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      std::lock_guard lock(done_mutex_);
      done_.notify_one();
    }
  }
}

}  // namespace gradring::simt::detail
