// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/shared_memory/shared_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "comm/transport/error.h"
#include "comm/transports/mapped/control_block.h"
#include "comm/transports/mapped/mapped_transport.h"
#include "comm/transports/shared_memory/memfd.h"
#include "comm/transports/shared_memory/process_handle.h"
#include "kernels/base/deadline.h"
#include "kernels/base/descriptor_limit.h"
#include "kernels/base/error.h"

namespace gradring::comm {
namespace {

/// A rank's entry in the store: "PID FD".
struct Address {
  int pid = 0;
  int fd = 0;

  std::string to_string() const { return fmt::format("{} {}", pid, fd); }
  static Address parse(const std::string& text) {
    std::istringstream fields(text);
    Address address;
    check<DeviceError>(static_cast<bool>(fields >> address.pid >> address.fd), [&] {
      return "invalid address of a rank in the store: found '" + text + "', expected 'PID FD'";
    });
    return address;
  }
};

class ProcessMemory final : public PeerMemory {
 public:
  ProcessMemory(Store& store, const SharedMemoryGroupOptions& spec, Deadline deadline)
      : rank_(spec.rank), own_(Memfd::create()) {
    const std::size_t bytes = ControlBlock::bytes_for(spec.world_size);
    blocks_.resize(static_cast<std::size_t>(spec.world_size));
    blocks_[index(rank_)] = own_.map(own_.allocate(bytes), bytes);
    ControlBlock::create(blocks_[index(rank_)].get(), spec.world_size);
    exchange(store, "shm/" + spec.name, rank_, spec.world_size, Address{::getpid(), own_.fd()}.to_string(), deadline,
             [&](int, const std::string& text) { addresses_.push_back(Address::parse(text)); });
    for (int rank = 0; rank < spec.world_size; ++rank) attach(rank, bytes);
  }

  int rank() const override { return rank_; }
  int world_size() const override { return static_cast<int>(blocks_.size()); }
  std::byte* control_block(int rank) override { return blocks_[index(rank)].get(); }

  Part create(std::size_t bytes) override {
    const std::size_t offset = own_.allocate(bytes);
    return {.memory = own_.map_and_release(offset, bytes), .offset = offset};
  }
  Region map(int peer, std::uint64_t offset, std::size_t bytes) override {
    const std::optional<Memfd> file = open(peer);
    return file && file->size() >= offset + bytes ? file->map(offset, bytes) : nullptr;
  }

  bool gone(int peer) override { return processes_[index(peer)].gone(); }
  bool stopped(int peer) override { return processes_[index(peer)].stopped(); }
  std::string describe(int peer) const override { return fmt::format("process {}", processes_[index(peer)].pid()); }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  void attach(int rank, std::size_t block_bytes) {
    const int pid = addresses_[index(rank)].pid;
    processes_.emplace_back(pid);
    if (rank == rank_) return;
    const std::optional<Memfd> file = open(rank);
    if (!file)
      throw PeerLost(
          {rank_, rank, "join", 0},
          fmt::format("rank {} (process {}) died while rank {} joined it: look at its log", rank, pid, rank_));
    check<DeviceError>(file->size() >= block_bytes, [&] {
      return fmt::format("rank {} (process {}) has no control block: expected a rank of gradring", rank, pid);
    });
    blocks_[index(rank)] = file->map(0, block_bytes);
    check<DeviceError>(ControlBlock::at(control_block(rank)).valid_for(world_size()), [&] {
      return fmt::format(
          "rank {} (process {}) has another version of gradring or another world size: start "
          "all ranks with the same program and world size",
          rank, pid);
    });
  }

  /// A peer's memory; null if it is gone. Opened only while it is mapped, because a process may have few descriptors.
  std::optional<Memfd> open(int rank) {
    constexpr std::chrono::seconds kExitTime(1);  // a killed process closes its files shortly before it is gone
    const ProcessHandle& process = processes_[index(rank)];
    try {
      Memfd file = Memfd::open(process.pid(), addresses_[index(rank)].fd);
      if (process.gone()) return std::nullopt;  // and another process may have its pid
      return file;
    } catch (const DeviceError&) {
      if (!poll_until([&] { return process.gone(); }, Deadline::after(kExitTime))) throw;
      return std::nullopt;
    }
  }

  int rank_;
  Memfd own_;
  std::vector<Address> addresses_;
  std::vector<ProcessHandle> processes_;
  std::vector<Memfd::Mapping> blocks_;
};

}  // namespace

std::unique_ptr<Transport> make_shared_memory_transport(Store& store, const SharedMemoryGroupOptions& spec,
                                                        Deadline deadline) {
  check_rank(spec.rank, spec.world_size);
  // A pidfd of each peer; its memfd is open only while it is mapped.
  require_descriptors(static_cast<std::size_t>(spec.world_size) + 2,
                      fmt::format("a rank of a world of {}", spec.world_size));
  return std::make_unique<MappedTransport>(std::make_unique<ProcessMemory>(store, spec, deadline));
}

}  // namespace gradring::comm
