// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/transport/group_failure.h"
#include "comm/transport/message.h"

namespace gradring::comm {

/// One rank's counters and message headers, in memory that all ranks map. Only the owner writes it, except `doorbell`;
/// all ranks may read it.
///
/// A message from rank a to rank b: a fills a slot of its outbox to b and publishes it. b reads the slot, reads a's
/// slice in place, and counts the message as consumed in its inbox from a. Then a may overwrite the slice. The data is
/// copied once, from the sender's slice to the receiver's.
class ControlBlock {
 public:
  static constexpr std::size_t kSlots = 8;  ///< messages in flight from one rank to another
  static constexpr std::size_t kLine = 64;  ///< bytes of a cache line

  /// The cores that a process may run on, one bit each.
  using CoreBits = std::array<std::atomic<std::uint64_t>, 16>;

  struct Status {
    std::atomic<GroupState> state{GroupState::member};
    std::atomic<std::int32_t> failed_rank{-1};
    std::atomic<std::int32_t> waiting_for{-1};     ///< the rank that must notify the owner
    std::atomic<std::int32_t> core{-1};            ///< where the owner ran when it last started to wait
    CoreBits cores{};                              ///< where the owner may run
    std::atomic<bool> cores_known{false};          ///< written after `cores`
    std::atomic<std::uint64_t> created{0};         ///< segments that the owner has created
    std::atomic<std::uint64_t> created_bytes{0};   ///< size of the newest
    std::atomic<std::uint64_t> created_offset{0};  ///< where peers find its part of the newest
    std::atomic<std::uint64_t> mapped{0};          ///< segments of which the owner has mapped every rank's part
    alignas(kLine) std::atomic<std::uint32_t> parked{0};
    std::atomic<std::uint32_t> doorbell{0};  ///< a futex word; the rank that makes progress notifies a parked owner
  };
  struct Outbox {
    std::atomic<std::uint64_t> published{0};
    alignas(kLine) std::array<MessageHeader, kSlots> slots;
  };
  struct Inbox {
    alignas(kLine) std::atomic<std::uint64_t> consumed{0};
  };

  static std::size_t bytes_for(int world_size);
  /// Creates a rank's block in fresh memory, aligned to kLine.
  static ControlBlock create(std::byte* memory, int world_size);
  /// The block that some rank has created there.
  static ControlBlock at(std::byte* memory) { return ControlBlock(memory); }

  /// Whether the memory holds a block of this layout version and world size.
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
