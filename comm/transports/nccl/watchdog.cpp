// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/nccl/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/base/error.h"

namespace gradring::comm::nccl {
namespace {

constexpr std::chrono::milliseconds kEventInterval(5);  // of event queries, which are cheap
/// A collective publishes its position after this fraction of the timeout.
constexpr int kPublishFraction = 10;

/// So that all ranks together read the store, which one of them may serve, at most a thousand times a second.
std::chrono::milliseconds peer_interval(int world_size) {
  return std::max(std::chrono::milliseconds(50), std::chrono::milliseconds(world_size));
}

/// True also on an error of the stream: its events are never reached, and it throws by itself.
bool finished(const kernels::Event& event) {
  try {
    return event.reached();
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

Watchdog::Watchdog(const NcclOptions& options, GroupHealth& health, ErrorPropagation& propagation,
                   Communicator& communicator, PeerProcesses processes)
    : options_(options),
      health_(health),
      propagation_(propagation),
      communicator_(communicator),
      processes_(std::move(processes)),
      peer_interval_(peer_interval(options.world_size)),
      left_after_(static_cast<std::size_t>(options.world_size)),
      thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::begin(kernels::Stream& stream, std::string_view operation) {
  Watched next;
  next.started = options_.device.make_event();
  next.ended = options_.device.make_event();
  stream.record(*next.started);
  const std::lock_guard lock(mutex_);
  next.collective.number = ++begun_;
  next.collective.op.operation = operation;
  watched_.push_back(std::move(next));
}

void Watchdog::note(const PendingOp& op, const std::string& what, const std::vector<int>& peers) {
  const std::lock_guard lock(mutex_);
  Collective& collective = watched_.back().collective;
  collective.op = op;
  collective.what = what;
  collective.peers = peers;
}

void Watchdog::end(kernels::Stream& stream) {
  kernels::Event* ended = nullptr;
  {
    const std::lock_guard lock(mutex_);
    ended = watched_.back().ended.get();  // stays valid: it is not posted yet
  }
  stream.record(*ended);
  const std::lock_guard lock(mutex_);
  watched_.back().posted = true;
}

std::uint64_t Watchdog::begun() const {
  const std::lock_guard lock(mutex_);
  return begun_;
}

void Watchdog::drain(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (!health_.failed() && !deadline.passed()) {
    drop_ended();
    if (watched_.empty()) return;
    changed_.wait_for(lock, kEventInterval);
  }
}

void Watchdog::run() {
  try {
    options_.make_current();  // NCCL restores what was current: in a new thread that would be device 0
  } catch (const Error&) {    // a failed device: its streams and events throw by themselves
  }
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kEventInterval, [this] { return stop_; })) {
    if (health_.failed()) continue;
    drop_ended();
    const std::optional<Collective> first = oldest();
    lock.unlock();
    check(first);
    lock.lock();
  }
}

void Watchdog::drop_ended() {
  while (!watched_.empty() && watched_.front().posted && finished(*watched_.front().ended)) watched_.pop_front();
}

std::optional<Watchdog::Collective> Watchdog::oldest() {
  if (watched_.empty()) return std::nullopt;
  Collective& collective = watched_.front().collective;
  if (!collective.since && finished(*watched_.front().started)) collective.since = Clock::now();
  Collective copy = collective;
  if (copy.since) copy.op.since = *copy.since;
  return copy;
}

void Watchdog::check(const std::optional<Collective>& oldest) {
  if (Clock::now() - peers_checked_ >= peer_interval_) {
    peers_checked_ = Clock::now();
    check_peers(oldest);
  }
  if (!oldest || !oldest->since || health_.failed()) return;
  const ncclResult_t state = communicator_.async_error();
  if (state != ncclSuccess && state != ncclInProgress) return health_.fail_in_nccl(state, oldest->op);
  const auto waited = Clock::now() - *oldest->since;
  if (waited > options_.timeout / kPublishFraction && std::exchange(published_, oldest->number) != oldest->number)
    propagation_.publish_position({oldest->number, oldest->what});
  if (waited > options_.timeout) report_timeout(*oldest);
}

void Watchdog::check_peers(const std::optional<Collective>& oldest) {
  const PendingOp op = oldest ? oldest->op : PendingOp{.operation = "no collective"};
  health_.adopt(op);
  std::vector<bool> gone;
  for (const auto& process : processes_) gone.push_back(process && process->gone());
  // What a rank writes to the store before it exits is read after that, so that it is final.
  const bool has_notice = propagation_.has_notice();
  if (has_notice)
    if (const std::optional<RootCause> cause = propagation_.root_cause()) return health_.follow(*cause, op);
  const bool needed = has_notice && oldest && oldest->since;
  for (int peer = 0; peer < options_.world_size; ++peer) {
    const bool is_gone = gone[static_cast<std::size_t>(peer)];
    if (!is_gone && !needed) continue;
    const std::optional<std::uint64_t> left = left_after(peer);
    if (is_gone && !left)
      health_.fail(op, [&](GroupFailure& failure) { failure.throw_peer_lost(peer, "died", op); });
    else if (needed && left && *left < oldest->number)
      health_.fail(op, [&](GroupFailure& failure) { failure.throw_peer_left(peer, op); });
  }
}

std::optional<std::uint64_t> Watchdog::left_after(int peer) {
  std::optional<std::uint64_t>& left = left_after_[static_cast<std::size_t>(peer)];
  if (!left) left = propagation_.left_after(peer);
  return left;
}

void Watchdog::report_timeout(const Collective& collective) {
  std::vector<int> absent;
  for (int peer = 0; peer < options_.world_size; ++peer) {
    if (peer == options_.rank) continue;
    const std::optional<Position> theirs = propagation_.position(peer);
    if (!theirs || theirs->number < collective.number) absent.push_back(peer);
    if (theirs && theirs->number == collective.number && theirs->what != collective.what) {
      const std::string text = fmt::format(
          "ranks are out of sync: rank {} waits in {}, but rank {} in {}; make the same calls in the same order on the "
          "same ranges on all ranks",
          options_.rank, collective.what, peer, theirs->what);
      return health_.fail(collective.op,
                          [&](GroupFailure& failure) { failure.throw_desync(peer, text, collective.op); });
    }
  }
  const std::vector<int>& awaited = collective.peers.empty() ? absent : collective.peers;
  health_.fail(collective.op, [&](GroupFailure& failure) {
    if (!absent.empty())
      failure.throw_timeout(awaited, absent.front(), "has not reached it; look at its log, or raise the timeout",
                            collective.op);
    failure.throw_timeout(
        awaited, awaited.empty() ? -1 : awaited.front(),
        "has reached it too, but NCCL makes no progress; check the network, and the output of NCCL_DEBUG=INFO",
        collective.op);
  });
}

}  // namespace gradring::comm::nccl
