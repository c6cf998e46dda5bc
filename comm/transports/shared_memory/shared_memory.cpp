// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/shared_memory/shared_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <utility>
#include <vector>

#include "comm/transport/error.h"
#include "comm/transports/mapped/control_block.h"
#include "comm/transports/mapped/mapped_transport.h"
#include "comm/transports/shared_memory/memfd.h"
#include "comm/transports/shared_memory/process_handle.h"
#include "kernels/base/deadline.h"
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
    std::vector<Address> addresses;
    exchange(store, "shm/" + spec.name, rank_, spec.world_size, Address{::getpid(), own_.fd()}.to_string(), deadline,
             [&](int, const std::string& text) { addresses.push_back(Address::parse(text)); });
    for (int rank = 0; rank < spec.world_size; ++rank) attach(rank, addresses[index(rank)], bytes);
  }

  int rank() const override { return rank_; }
  int world_size() const override { return static_cast<int>(blocks_.size()); }
  std::byte* control_block(int rank) override { return blocks_[index(rank)].get(); }

  Part create(std::size_t bytes) override {
    const std::size_t offset = own_.allocate(bytes);
    return {.memory = own_.map_and_release(offset, bytes), .offset = offset};
  }
  Region map(int peer, std::uint64_t offset, std::size_t bytes) override {
    if (files_[index(peer)].size() < offset + bytes) return nullptr;
    return files_[index(peer)].map(offset, bytes);
  }

  bool gone(int peer) override { return processes_[index(peer)].gone(); }
  bool stopped(int peer) override { return processes_[index(peer)].stopped(); }
  std::string describe(int peer) const override { return fmt::format("process {}", processes_[index(peer)].pid()); }

 private:
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  void attach(int rank, const Address& address, std::size_t block_bytes) {
    processes_.emplace_back(address.pid);
    files_.push_back(rank == rank_ ? own_ : open(rank, address));
    if (rank == rank_) return;
    const Memfd& file = files_.back();
    check<DeviceError>(file.size() >= block_bytes, [&] {
      return fmt::format("rank {} (process {}) has no control block: expected a rank of gradring", rank, address.pid);
    });
    blocks_[index(rank)] = file.map(0, block_bytes);
    check<DeviceError>(ControlBlock::at(control_block(rank)).valid_for(world_size()), [&] {
      return fmt::format(
          "rank {} (process {}) has another version of gradring or another world size: start "
          "all ranks with the same program and world size",
          rank, address.pid);
    });
  }

  /// A killed process closes its files shortly before it is gone.
  Memfd open(int rank, const Address& address) {
    constexpr std::chrono::seconds kExitTime(1);
    try {
      return Memfd::open(address.pid, address.fd);
    } catch (const DeviceError& error) {
      if (!poll_until([&] { return processes_.back().gone(); }, Deadline::after(kExitTime))) throw;
      throw PeerLost(
          {rank_, rank, "join", 0},
          fmt::format("rank {} (process {}) died while rank {} joined it: look at its log", rank, address.pid, rank_));
    }
  }

  int rank_;
  Memfd own_;
  std::vector<Memfd> files_;
  std::vector<ProcessHandle> processes_;
  std::vector<Memfd::Mapping> blocks_;
};

}  // namespace

std::unique_ptr<Transport> make_shared_memory_transport(Store& store, const SharedMemoryGroupOptions& spec,
                                                        Deadline deadline) {
  check_rank(spec.rank, spec.world_size);
  return std::make_unique<MappedTransport>(std::make_unique<ProcessMemory>(store, spec, deadline));
}

}  // namespace gradring::comm
