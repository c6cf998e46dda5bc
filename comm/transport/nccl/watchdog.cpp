// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/nccl/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "kernels/runtime/error.h"

namespace gradring::comm::nccl {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(5);  // at events, which costs little
constexpr std::chrono::milliseconds kBetweenNews(50);  // at the store and at processes
/// After this part of its time a collective counts as late enough to say where it stands.
constexpr int kLatePart = 10;

/// An event of a stream that failed is never reached: that stream throws by itself.
bool over(const kernels::Event& event) {
  try {
    return event.reached();
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

Watchdog::Watchdog(const Spec& spec, kernels::Device& device, GroupHealth& health, NewsBoard& board,
                   Communicator& communicator, PeerProcesses processes)
    : spec_(spec),
      device_(device),
      health_(health),
      board_(board),
      communicator_(communicator),
      processes_(std::move(processes)),
      thread_([this] { serve(); }) {}

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
  next.started = device_.make_event();
  next.ended = device_.make_event();
  stream.record(*next.started);
  const std::lock_guard lock(mutex_);
  next.story.number = ++begun_;
  next.story.errand.operation = operation;
  watched_.push_back(std::move(next));
}

void Watchdog::note(const Errand& errand, const std::string& what, const std::vector<int>& peers) {
  const std::lock_guard lock(mutex_);
  Story& story = watched_.back().story;
  story.errand = errand;
  story.what = what;
  story.peers = peers;
}

void Watchdog::end(kernels::Stream& stream) {
  kernels::Event* ended = nullptr;
  {
    const std::lock_guard lock(mutex_);
    ended = watched_.back().ended.get();  // stays there: it is not posted yet
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
  while (!health_.broken() && !deadline.passed()) {
    drop_ended();
    if (watched_.empty()) return;
    changed_.wait_for(lock, kBetweenLooks);
  }
}

void Watchdog::serve() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kBetweenLooks, [this] { return stop_; })) {
    if (health_.broken()) continue;
    drop_ended();
    const std::optional<Story> first = oldest();
    lock.unlock();
    judge(first);
    lock.lock();
  }
}

void Watchdog::drop_ended() {
  while (!watched_.empty() && watched_.front().posted && over(*watched_.front().ended)) watched_.pop_front();
}

std::optional<Watchdog::Story> Watchdog::oldest() {
  if (watched_.empty()) return std::nullopt;
  Story& story = watched_.front().story;
  if (!story.since && over(*watched_.front().started)) story.since = Clock::now();
  Story copy = story;
  if (copy.since) copy.errand.since = *copy.since;
  return copy;
}

void Watchdog::judge(const std::optional<Story>& oldest) {
  if (Clock::now() - heard_ >= kBetweenNews) {
    heard_ = Clock::now();
    hear_news(oldest);
  }
  if (!oldest || !oldest->since || health_.broken()) return;
  const ncclResult_t state = communicator_.async_error();
  if (state != ncclSuccess && state != ncclInProgress) {
    const std::string how = fmt::format("failed in NCCL ({})", communicator_.api().get_error_string(state));
    const int culprit = state == ncclRemoteError ? -1 : spec_.rank;
    health_.fail(oldest->errand, [&](GroupFailure& failure) { failure.lose(culprit, how, oldest->errand); });
    return;
  }
  const auto waited = Clock::now() - *oldest->since;
  if (waited > spec_.timeout / kLatePart) tell_position(*oldest);
  if (waited > spec_.timeout) blame_for_lateness(*oldest);
}

void Watchdog::hear_news(const std::optional<Story>& oldest) {
  const Errand errand = oldest ? oldest->errand : Errand{.operation = "no collective"};
  if (const std::optional<Verdict> verdict = board_.verdict()) return health_.follow(*verdict, errand);
  for (int peer = 0; peer < spec_.world_size; ++peer) {
    const auto& process = processes_[static_cast<std::size_t>(peer)];
    const bool gone = process && process->gone();
    const bool needed = oldest && oldest->since;
    if (!gone && !needed) continue;
    const std::optional<std::uint64_t> left = board_.left_after(peer);  // after `gone`: who is gone says nothing more
    if (gone && !left)
      health_.fail(errand, [&](GroupFailure& failure) { failure.lose(peer, "died", errand); });
    else if (needed && left && *left < oldest->number)
      health_.fail(errand, [&](GroupFailure& failure) { failure.miss(peer, errand); });
  }
}

void Watchdog::tell_position(const Story& story) {
  if (std::exchange(told_, story.number) != story.number) board_.stand_at({story.number, story.what});
}

void Watchdog::blame_for_lateness(const Story& story) {
  std::vector<int> absent;
  for (int peer = 0; peer < spec_.world_size; ++peer) {
    if (peer == spec_.rank) continue;
    const std::optional<Position> theirs = board_.position(peer);
    if (!theirs || theirs->number < story.number) absent.push_back(peer);
    if (theirs && theirs->number == story.number && theirs->what != story.what) {
      const std::string text = fmt::format(
          "rank {} waits in {}, but rank {} in {}: all ranks must make the same calls, in the same order, on "
          "the same ranges",
          spec_.rank, story.what, peer, theirs->what);
      return health_.fail(story.errand,
                          [&](GroupFailure& failure) { failure.report_desync(peer, text, story.errand); });
    }
  }
  const std::vector<int>& awaited = story.peers.empty() ? absent : story.peers;
  health_.fail(story.errand, [&](GroupFailure& failure) {
    if (!absent.empty()) failure.time_out(awaited, absent.front(), "has not come there", story.errand);
    failure.time_out(awaited, awaited.empty() ? -1 : awaited.front(),
                     "has come there too, but NCCL moves nothing: look at the network, and at what NCCL says with "
                     "NCCL_DEBUG=INFO",
                     story.errand);
  });
}

}  // namespace gradring::comm::nccl
