// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/engine/block.h"

#include <bit>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "kernels/simt/cpu/index.h"
#include "kernels/simt/engine/error.h"

namespace gradring::simt::detail {
namespace {

/// Sanitizers put redzones between a function's locals.
constexpr std::size_t kStackBytes = (kAddressSanitizer || kThreadSanitizer ? 256 : 64) * std::size_t{1024};
/// A TSan identity costs most of a megabyte, and a process has about 8,000; making one costs as much as a small kernel.
/// So a block keeps as many as kernels commonly need.
constexpr unsigned kIdentitiesKept = 256;

thread_local constinit Block* running_block = nullptr;

bool has(std::uint32_t mask, unsigned lane) { return (mask >> lane & 1u) != 0; }

}  // namespace

Block::Block(const ExecutorOptions& options) : options_(options), stacks_(kMaxThreads, kStackBytes) { reset_fibers(); }

Block::~Block() { reset_fibers(); }

void Block::reset_fibers() {
  idle_count_ = 0;
  for (unsigned i = kMaxThreads; i-- > 0;) {
    Fiber& fiber = fibers_[i];
    destroy_identity(fiber.tracked);
    if (fiber.context.resume) unpoison(stacks_.stack(i), stacks_.usable_bytes(i));  // functions on it never returned
    fiber.stack_index = i;
    fiber.tracked = {stacks_.stack(i), stacks_.usable_bytes(i), nullptr, nullptr};
    fiber.context = {};
    idle_[idle_count_++] = &fiber;
  }
}

void Block::run(const Grid& grid, std::size_t block_index) {
  begin(grid, block_index);
  release(&started_edge_);
  running_ = &host_;
  switch_to(next_fiber());
  running_ = nullptr;
  acquire(&ended_edge_);
  if (failure_[0] == 0) return;
  for (unsigned i = 0; i < threads_; ++i) join_identity(fibers_[i].tracked, host_.tracked);
  reset_fibers();
  throw Error(failure_, failure_site_);
}

void Block::begin(const Grid& grid, std::size_t block_index) {
  grid_ = &grid;
  threads_ = static_cast<unsigned>(grid.threads.count());
  finished_ = waiting_count_ = votes_ = 0;
  failure_[0] = 0;
  turns_.begin(options_.order, options_.seed + block_index, threads_);
  if (async_work_used_)
    for (AsyncWork& work : async_work_) work.clear();
  async_work_used_ = false;
  mbarriers_.begin();
  for (unsigned first = 0; first < threads_; first += 32) warps_[first / 32].begin(threads_ - first);
  host_.tracked = {};
  adopt_identity(host_.tracked);
  if constexpr (kThreadSanitizer)
    for (unsigned i = 0; i < threads_; ++i) create_identity(fibers_[i].tracked);
}

void Block::release_identities() {
  if constexpr (kThreadSanitizer) {
    for (unsigned i = kIdentitiesKept; i < kMaxThreads; ++i) {
      if (!fibers_[i].tracked.thread) break;
      destroy_identity(fibers_[i].tracked);
    }
  }
}

void Block::enter_fiber() {
  Block& block = *current_block();
  after_switch(block.running_->tracked, block.host_.tracked);
  for (;;) {
    acquire(&block.started_edge_);
    block.grid_->run_thread(block.grid_->kernel);
    block.finish_thread();
  }
}

void Block::assign(Fiber& fiber, unsigned linear) {
  fiber.linear = linear;
  fiber.thread = grid_->threads.at(linear);
  fiber.waits_in = nullptr;
  if (fiber.context.resume) return;
  fiber.context = make_context(stacks_.stack(fiber.stack_index), stacks_.usable_bytes(fiber.stack_index), &enter_fiber);
}

Fiber& Block::next_fiber() {
  if (turns_.prefer_ready()) return *turns_.pop_ready();
  if (!turns_.all_started()) {
    const unsigned linear = turns_.start_next();
    Fiber& fiber = kThreadSanitizer ? fibers_[linear] : *idle_[--idle_count_];
    assign(fiber, linear);
    return fiber;
  }
  if (finished_ != threads_ && failure_[0] == 0) report_deadlock();
  return host_;
}

void Block::switch_to(Fiber& to) {
  Fiber& from = *running_;
  running_ = &to;
  threadIdx = {to.thread.x, to.thread.y, to.thread.z};
  if (&to == &from) return;  // ThreadOrder::random may choose the thread that has just parked itself
  before_switch(from.tracked, to.tracked);
  switch_context(from.context, to.context);
  after_switch(running_->tracked, host_.tracked);
}

void Block::park(Fiber& fiber) {
  if (static_cast<char*>(__builtin_frame_address(0)) < stacks_.stack(fiber.stack_index))
    fail(fiber.site, "stack overflow: a thread has %zu bytes for its locals: %s", kStackBytes, describe(fiber).text);
  switch_to(next_fiber());
}

void Block::finish_thread() {
  Fiber& me = *running_;
  Warp& warp = warps_[me.warp()];
  warp.exited |= 1u << me.lane();
  ++finished_;
  if (waiting_count_ != 0)
    fail(waiting_[0]->site, "barrier after exit: thread (%u,%u,%u) left the block while others wait: %s", me.thread.x,
         me.thread.y, me.thread.z, describe(*waiting_[0]).text);
  for (std::uint32_t left = warp.waiting; left != 0; left &= left - 1) {
    const Deposit& deposit = warp.deposits[static_cast<unsigned>(std::countr_zero(left))];
    if (has(deposit.mask, me.lane()))
      fail(deposit.fiber->site,
           "incomplete warp operation: thread (%u,%u,%u), which mask 0x%x names, left the kernel: %s", me.thread.x,
           me.thread.y, me.thread.z, deposit.mask, describe(*deposit.fiber).text);
  }
  release(&ended_edge_);
  if constexpr (!kThreadSanitizer) {
    if (!turns_.all_started() && !turns_.any_ready()) {  // stay on this stack: no switch for a thread that never waits
      assign(me, turns_.start_next());
      threadIdx = {me.thread.x, me.thread.y, me.thread.z};
      return;
    }
    idle_[idle_count_++] = &me;
  }
  park(me);
}

Fiber& Block::enter(const char* what, Site site) {
  Fiber& me = *running_;
  if (grid_->run_flat)
    fail(site, "%s in a kernel launched flat, at %s:%d: use launch, not launch_flat", what, site.file, site.line);
  me.waits_in = what;
  me.site = site;
  return me;
}

unsigned Block::barrier(const char* what, bool predicate, Site site) {
  Fiber& me = enter(what, site);
  if (finished_ != 0)
    fail(site, "barrier after exit: %u thread(s) had left the block before %s", finished_, describe(me).text);
  if (waiting_count_ != 0 && !(waiting_[0]->site == site))
    fail(site, "divergent barrier: %s but %s", describe(*waiting_[0]).text, describe(me).text);
  const unsigned phase = phase_;
  release(&barrier_edges_[phase & 1]);
  votes_ += predicate ? 1 : 0;
  waiting_[waiting_count_++] = &me;
  if (waiting_count_ == threads_)
    release_barrier();
  else
    park(me);
  acquire(&barrier_edges_[phase & 1]);
  return votes_of_last_phase_;  // still this phase's: the next one ends only when all threads have come to it
}

void Block::release_barrier() {
  for (unsigned i = 0; i < waiting_count_; ++i)
    if (waiting_[i] != running_) turns_.push_ready(waiting_[i]);
  votes_of_last_phase_ = votes_;
  waiting_count_ = votes_ = 0;
  ++phase_;
}

void Block::meet(std::uint32_t mask, WarpOperation operation, const char* what, void* data, Site site, Lead lead) {
  Fiber& me = enter(what, site);
  Warp& warp = warps_[me.warp()];
  const Deposit mine{mask & warp.existing, operation, data, &me};
  check_partners(me, warp, mine);

  const auto group = static_cast<unsigned>(std::countr_zero(mine.mask));
  char* edge = &warp.barrier_edges[group][warp.phase[group] & 1];
  const bool orders_memory = operation == WarpOperation::barrier;
  if (orders_memory) release(edge);

  warp.deposits[me.lane()] = mine;
  warp.waiting |= 1u << me.lane();
  if ((warp.waiting & mine.mask) == mine.mask) {
    lead(warp.deposits, mine.mask, *this);
    for (unsigned lane = 0; lane < 32; ++lane)
      if (has(mine.mask, lane) && lane != me.lane()) turns_.push_ready(warp.deposits[lane].fiber);
    warp.waiting &= ~mine.mask;
    ++warp.phase[group];
  } else {
    park(me);
  }
  if (orders_memory) acquire(edge);
}

void Block::check_partners(const Fiber& fiber, const Warp& warp, const Deposit& mine) {
  if (!has(mine.mask, fiber.lane()))
    fail(fiber.site, "bad warp mask 0x%x: it does not name its own lane %u: %s", mine.mask, fiber.lane(),
         describe(fiber).text);
  if ((mine.mask & warp.exited) != 0)
    fail(fiber.site, "bad warp mask 0x%x: lanes 0x%x have left the kernel: %s", mine.mask, mine.mask & warp.exited,
         describe(fiber).text);
  for (std::uint32_t left = warp.waiting; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const Deposit& other = warp.deposits[lane];
    if (!has(mine.mask, lane) && !has(other.mask, fiber.lane())) continue;  // of another group of lanes
    if (other.mask == mine.mask && other.operation == mine.operation && other.fiber->site == fiber.site)
      break;  // a partner, which has looked at the others
    fail(fiber.site, "mismatched warp operation: %s with mask 0x%x but %s with mask 0x%x", describe(fiber).text,
         mine.mask, describe(*other.fiber).text, other.mask);
  }
}

AsyncWork& Block::async_work(const char* what, Site site) {
  async_work_used_ = true;
  return async_work_[enter(what, site).linear];
}

void Block::report_deadlock() {
  int used = std::snprintf(failure_, sizeof failure_, "deadlock: %u of %u thread(s) finished", finished_, threads_);
  const auto add = [&](const char* format, unsigned count, const Fiber& example) {
    if (static_cast<std::size_t>(used) >= sizeof failure_ / 2) return;
    const auto at = static_cast<std::size_t>(used);
    used += std::snprintf(failure_ + at, sizeof failure_ - at, format, count, describe(example).text);
    failure_site_ = example.site;
  };
  for (const Warp& warp : warps_) {
    if (&warp >= warps_.data() + (threads_ + 31) / 32) break;
    if (warp.waiting != 0)
      add("; %u lane(s) of a warp wait for others, among them %s", static_cast<unsigned>(std::popcount(warp.waiting)),
          *warp.deposits[static_cast<unsigned>(std::countr_zero(warp.waiting))].fiber);
  }
  if (waiting_count_ != 0) add("; %u wait for the block, among them %s", waiting_count_, *waiting_[0]);
  if (mbarriers_.waiting() == 0) return;
  add("; %u wait for an mbarrier, among them %s", mbarriers_.waiting(), mbarriers_.one_waiting());
  if (static_cast<std::size_t>(used) < sizeof failure_)
    mbarriers_.say_what_is_missing(failure_ + used, sizeof failure_ - static_cast<std::size_t>(used));
}

void Block::fail(Site site, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(failure_, sizeof failure_, format, arguments);
  va_end(arguments);
  failure_site_ = site;
  switch_to(host_);
  __builtin_unreachable();  // host_ throws the failure and makes all stacks anew
}

Block* current_block() { return running_block; }
void set_current_block(Block* block) { running_block = block; }

Description describe(const Fiber& fiber) {
  Description description;
  std::snprintf(description.text, sizeof description.text, "thread (%u,%u,%u) in %s at %s:%d", fiber.thread.x,
                fiber.thread.y, fiber.thread.z, fiber.waits_in ? fiber.waits_in : "the kernel", fiber.site.file,
                fiber.site.line);
  return description;
}

}  // namespace gradring::simt::detail
