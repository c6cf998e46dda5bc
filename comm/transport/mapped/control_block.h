// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/transport/membership.h"
#include "comm/transport/message.h"

namespace gradring::comm {

/// One rank's side of the bookkeeping, in memory that all ranks map. Only its owner writes it, but for `bell`; all may
/// read.
///
/// A message from rank a to rank b: a fills a slot of its outbox to b and publishes it; b reads the slot, reads a's
/// slice in place, and counts the message as consumed in its own inbox from a; then a may overwrite the slice. No byte
/// of the data is copied but from its place at the sender to its place at the receiver.
class ControlBlock {
 public:
  static constexpr std::size_t kSlots = 8;  ///< messages under way from one rank to another
  static constexpr std::size_t kLine = 64;  ///< what two cores pass to and fro as one

  /// Cores that a process may run on, a bit each.
  using CoreBits = std::array<std::atomic<std::uint64_t>, 16>;

  struct Status {
    std::atomic<Membership> membership{Membership::member};
    std::atomic<std::int32_t> culprit{-1};
    std::atomic<std::int32_t> waiting_for{-1};  ///< whom the owner sleeps for; that rank rings
    std::atomic<std::int32_t> core{-1};         ///< where the owner ran when it last began to wait
    CoreBits cores{};                           ///< where the owner may run
    std::atomic<bool> cores_known{false};       ///< written after `cores`
    std::atomic<std::uint64_t> created{0};      ///< segments that the owner has created
    std::atomic<std::uint64_t> created_bytes{0};
    std::atomic<std::uint64_t> mapped{0};  ///< segments of which the owner has mapped every rank's share
    alignas(kLine) std::atomic<std::uint32_t> sleeping{0};
    std::atomic<std::uint32_t> bell{0};  ///< a futex; who changes what a sleeping owner waits for rings it
  };
  struct Outbox {
    std::atomic<std::uint64_t> published{0};
    alignas(kLine) std::array<MessageHeader, kSlots> slots;
  };
  struct Inbox {
    alignas(kLine) std::atomic<std::uint64_t> consumed{0};
  };

  static std::size_t bytes_for(int world_size);
  /// Makes the block of a rank in fresh memory, aligned to kLine.
  static ControlBlock create(std::byte* memory, int world_size);
  /// The block that another rank, or this one, has created there.
  static ControlBlock at(std::byte* memory) { return ControlBlock(memory); }

  /// Whether the memory holds a block of this version of gradring for that many ranks.
  bool valid_for(int world_size) const;
  Status& status() const { return preamble().status; }
  Outbox& outbox(int to) const { return pairs()[to].outbox; }
  Inbox& inbox(int from) const { return pairs()[from].inbox; }

 private:
  struct alignas(kLine) Preamble {
    std::atomic<std::uint64_t> magic{0};  // written last
    std::int32_t world_size = 0;
    Status status;
  };
  struct alignas(kLine) Pair {
    Outbox outbox;
    Inbox inbox;
  };
  explicit ControlBlock(std::byte* memory) : memory_(memory) {}
  Preamble& preamble() const { return *reinterpret_cast<Preamble*>(memory_); }
  Pair* pairs() const { return reinterpret_cast<Pair*>(memory_ + sizeof(Preamble)); }

  std::byte* memory_;

  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share these counters");
};

}  // namespace gradring::comm
