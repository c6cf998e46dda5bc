// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/cudart/scheduler.h"

#include <algorithm>
#include <utility>

namespace gradring::simulated_gpu {

struct Scheduler::Work {
  Spec spec;
  OrderedWork order;
  std::size_t unmet = 0;  // work that it still waits for
  std::vector<MutableWork> dependents;
  double begin = 0;  // counted seconds: the latest end of what it waited for
  double end = 0;
  std::atomic<bool> done{false};
  mutable bool is_awaited = false;
};

namespace {

/// How long other work waits for a function of the host, so that the order depends on the seed alone; then the device
/// goes on.
constexpr std::chrono::milliseconds kHostGrace(50);

/// SplitMix64 (Steele, Lea, Flood, 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Scheduler::Scheduler(std::uint64_t seed, std::chrono::milliseconds hold)
    : seed_(mixed(seed)), hold_(hold), last_call_(std::chrono::steady_clock::now()) {}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  host_work_.notify_all();
  if (device_.joinable()) device_.join();
  if (host_.joinable()) host_.join();
}

void Scheduler::reseed(std::uint64_t seed) {
  const std::lock_guard lock(mutex_);
  seed_ = mixed(seed);
}

std::uint64_t Scheduler::new_lanes(std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  return std::exchange(last_lane_, last_lane_ + count) + 1;
}

void Scheduler::start_threads() {
  if (std::exchange(started_, true)) return;
  device_ = std::thread([this] { serve(); });
  host_ = std::thread([this] { serve_host(); });
}

Scheduler::WorkPtr Scheduler::enqueue(Spec spec, std::span<const WorkPtr> after) {
  auto work = std::make_shared<Work>();
  work->spec = std::move(spec);
  const std::lock_guard lock(mutex_);
  start_threads();
  work->order = {.number = ++last_number_, .lane = work->spec.lane, .before = known_to_host_};
  if (work->spec.overlaps) work->order.before_wait = known_to_host_;
  lanes_.push_back(work->spec.run ? std::optional(work->spec.lane) : std::nullopt);
  unfinished_.insert(last_number_);
  for (const WorkPtr& other : after) {
    if (!other) continue;
    work->begin = std::max(work->begin, other->end);
    work->order.before.add(other->order.done_with());
    if (work->order.before_wait && other != work->spec.overlaps) work->order.before_wait->add(other->order.done_with());
    if (other->done) continue;
    std::const_pointer_cast<Work>(other)->dependents.push_back(work);
    ++work->unmet;
  }
  // If other work is ready, the device knows when to look again.
  const bool is_news = work->unmet == 0 && (ready_.empty() || !work->spec.run);
  if (work->unmet == 0) {
    if (work->spec.run)
      ready_.push_back(work);
    else
      complete(work, 0);
  }
  last_call_ = std::chrono::steady_clock::now();
  if (is_news) changed_.notify_all();
  return work;
}

OrderedWork Scheduler::host_use() {
  const std::lock_guard lock(mutex_);
  OrderedWork use{.number = ++last_number_, .lane = kHostLane, .before = known_to_host_};
  lanes_.push_back(kHostLane);
  known_to_host_.add(kHostLane, use.number);
  return use;
}

bool Scheduler::is_done(const WorkPtr& work) {
  if (!work) return true;
  if (!work->done.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  host_knows(work->order.done_with());
  return true;
}

void Scheduler::host_knows(const KnownDone& done) {
  known_to_host_.add(done);
  const auto is_known = [this](std::uint64_t number) {  // work that only joins others uses no memory
    const std::optional<std::uint64_t> lane = lanes_[number - 1];
    return !lane || known_to_host_.contains(*lane, number);
  };
  std::uint64_t all_up_to = known_to_host_.all_up_to();
  while (all_up_to < last_number_ && is_known(all_up_to + 1)) ++all_up_to;
  known_to_host_.add_all_up_to(all_up_to);
}

double Scheduler::end_seconds(const WorkPtr& work) const {
  const std::lock_guard lock(mutex_);
  return work ? work->end : 0;
}

void Scheduler::add_request(const WorkPtr& work) {
  if (!work || work->done || std::ranges::find(requests_, work, &Request::target) != requests_.end()) return;
  last_call_ = std::chrono::steady_clock::now();
  requests_.push_back({last_number_, work});
  changed_.notify_all();
}

void Scheduler::request(const WorkPtr& work) {
  const std::lock_guard lock(mutex_);
  add_request(work);
}

void Scheduler::wait(const WorkPtr& work) {
  std::unique_lock lock(mutex_);
  add_request(work);
  if (!work) return;
  work->is_awaited = true;
  changed_.wait(lock, [&] { return stopping_ || work->done; });
  if (work->done) host_knows(work->order.done_with());
}

void Scheduler::wait_for_all() {
  std::unique_lock lock(mutex_);
  const std::uint64_t last = last_number_;
  if (!unfinished_.empty()) {
    requests_.push_back({last, nullptr});
    changed_.notify_all();
    const auto awaited = awaited_.insert(last);
    changed_.wait(lock, [&] { return stopping_ || unfinished_.empty() || *unfinished_.begin() > last; });
    awaited_.erase(awaited);
  }
  if (!stopping_) known_to_host_.add_all_up_to(last);
}

void Scheduler::stop(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
  host_work_.notify_all();
  changed_.wait_for(lock, patience, [&] { return running_ == 0; });
}

std::uint64_t Scheduler::priority(std::uint64_t lane) const {
  constexpr std::uint64_t kShifts = 6;  // priorities last for 1, 2, 4, ... 32 pieces of work, by the seed
  return mixed(seed_ ^ mixed(lane ^ mixed(performed_ >> (seed_ % kShifts))));
}

Scheduler::MutableWork Scheduler::best_ready(std::uint64_t limit) {
  auto best = ready_.end();
  const auto comes_first = [this](const Work& a, const Work& b) {
    const std::uint64_t priority_of_a = priority(a.spec.lane), priority_of_b = priority(b.spec.lane);
    return priority_of_a != priority_of_b ? priority_of_a > priority_of_b : a.order.number < b.order.number;
  };
  for (auto work = ready_.begin(); work != ready_.end(); ++work) {
    if ((*work)->order.number > limit) continue;
    if (best == ready_.end() || comes_first(**work, **best)) best = work;
  }
  if (best == ready_.end()) return nullptr;
  MutableWork work = std::move(*best);
  ready_.erase(best);
  return work;
}

Scheduler::MutableWork Scheduler::next() {
  const auto is_met = [this](const Request& request) {
    if (request.target) return request.target->done.load();
    return running_ == 0 &&
           std::ranges::none_of(ready_, [&](const auto& work) { return work->order.number <= request.limit; });
  };
  // The time without a call counts from the end of a request: before it, the host was waiting.
  if (std::erase_if(requests_, is_met) > 0) last_call_ = std::chrono::steady_clock::now();
  for (const Request& request : requests_)  // after the first, where that waits for a function of the host
    if (MutableWork work = best_ready(request.limit)) return work;
  return nullptr;
}

void Scheduler::serve() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (const MutableWork work = next()) {
      perform(lock, work);
      continue;
    }
    if (ready_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto held_until = last_call_ + hold_;
    if (std::chrono::steady_clock::now() >= held_until)
      requests_.push_back({last_number_, nullptr});
    else
      changed_.wait_until(lock, held_until);
  }
}

void Scheduler::perform(std::unique_lock<std::mutex>& lock, const MutableWork& work) {
  ++performed_;
  if (!work->spec.on_host) return run(lock, work);
  host_queue_.push_back(work);
  ++running_;
  host_work_.notify_one();
  changed_.wait_for(lock, kHostGrace, [&] { return stopping_ || work->done; });
}

void Scheduler::run(std::unique_lock<std::mutex>& lock, const MutableWork& work) {
  if (!work->spec.on_host) ++running_;
  double seconds = 0;
  {
    const std::function<double()> action = std::move(work->spec.run);
    if (const WorkPtr overlapped = std::exchange(work->spec.overlaps, nullptr))
      work->order.before_wait->add(overlapped->order.released());
    lock.unlock();
    current_work = &work->order;
    seconds = action();
    current_work = nullptr;
  }  // what it holds is destroyed without the lock
  lock.lock();
  --running_;
  bool is_news = complete(work, seconds) || work->spec.on_host || stopping_;
  if (!awaited_.empty()) is_news |= unfinished_.empty() || *unfinished_.begin() > *awaited_.begin();
  if (is_news) changed_.notify_all();
}

void Scheduler::serve_host() {
  std::unique_lock lock(mutex_);
  for (;;) {
    host_work_.wait(lock, [&] { return stopping_ || !host_queue_.empty(); });
    if (stopping_) return;
    const MutableWork work = std::move(host_queue_.front());
    host_queue_.pop_front();
    run(lock, work);
  }
}

bool Scheduler::complete(const MutableWork& first, double seconds) {
  bool is_awaited = false;
  first->end = first->begin + seconds;
  std::vector<MutableWork> finished = {first};
  while (!finished.empty()) {
    const MutableWork work = std::move(finished.back());
    finished.pop_back();
    unfinished_.erase(work->order.number);
    work->done.store(true, std::memory_order_release);
    is_awaited |= work->is_awaited;
    for (const MutableWork& dependent : std::exchange(work->dependents, {})) {
      dependent->begin = std::max(dependent->begin, work->end);
      if (--dependent->unmet > 0) continue;
      if (dependent->spec.run) {
        ready_.push_back(dependent);
      } else {
        dependent->end = dependent->begin;
        finished.push_back(dependent);
      }
    }
  }
  return is_awaited;
}

}  // namespace gradring::simulated_gpu
