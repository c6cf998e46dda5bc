// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/engine/fiber.h"

#include <sys/mman.h>
#include <string>

#include "kernels/base/error.h"

namespace gradring::simt::detail {

void Turns::begin(ThreadOrder order, std::uint64_t seed, unsigned threads) {
  threads_ = threads;
  started_ = ready_count_ = ready_first_ = 0;
  random_ = order == ThreadOrder::random;
  for (unsigned i = 0; i < threads; ++i) start_order_[i] = order == ThreadOrder::reverse ? threads - 1 - i : i;
  if (!random_) return;
  state_ = seed * 0x9e3779b97f4a7c15u | 1;
  for (unsigned i = threads; i > 1; --i) {
    const unsigned j = draw(i);
    const unsigned last = start_order_[i - 1];
    start_order_[i - 1] = start_order_[j];
    start_order_[j] = last;
  }
}

bool Turns::prefer_ready() {
  if (!any_ready()) return false;
  return all_started() || !random_ || draw(2) == 0;
}

void Turns::push_ready(Fiber* fiber) { ready_[(ready_first_ + ready_count_++) % kMaxThreads] = fiber; }

Fiber* Turns::pop_ready() {
  const unsigned chosen = random_ ? (ready_first_ + draw(ready_count_)) % kMaxThreads : ready_first_;
  Fiber* fiber = ready_[chosen];
  ready_[chosen] = ready_[ready_first_];
  ready_first_ = (ready_first_ + 1) % kMaxThreads;
  --ready_count_;
  return fiber;
}

unsigned Turns::draw(unsigned below) {
  state_ ^= state_ << 13;
  state_ ^= state_ >> 7;
  state_ ^= state_ << 17;
  return static_cast<unsigned>(state_ >> 33) % below;
}

Stacks::Stacks(std::size_t count, std::size_t bytes_each) : count_(count), bytes_each_(bytes_each) {
  const std::size_t bytes = count * bytes_each;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw DeviceError("cannot map " + std::to_string(bytes) +
                      " bytes for the stacks of a block: out of address space; raise ulimit -v, or lower --threads");
  memory_ = static_cast<char*>(memory);
}

Stacks::~Stacks() { munmap(memory_, count_ * bytes_each_); }

}  // namespace gradring::simt::detail
