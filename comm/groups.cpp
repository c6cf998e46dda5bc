// SPDX-License-Identifier: Apache-2.0
#include "comm/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/transport/segment.h"
#include "comm/transports/in_process/in_process.h"
#include "comm/transports/tcp/tcp_transport.h"
#include "kernels/base/descriptor_limit.h"
#include "kernels/base/error.h"

namespace gradring::comm {
namespace {

class SingleRankTransport final : public Transport {
 public:
  explicit SingleRankTransport(kernels::Device& device) : device_(device) {}

  int rank() const override { return 0; }
  int world_size() const override { return 1; }

  std::unique_ptr<Segment> allocate(std::size_t bytes, Deadline deadline) override {
    kernels::Buffer memory = device_.allocate(std::max<std::size_t>(bytes, 1));
    std::byte* const data = memory.data();
    const auto stream = device_.make_stream(kernels::StreamMode::in_place);
    stream->enqueue_zero(data, memory.size());
    stream->synchronize(deadline);
    return std::make_unique<OwnSegment<kernels::Buffer>>(data, std::move(memory), bytes, ++segments_);
  }

  void submit(kernels::Stream&, std::function<void()> collective) override { collective(); }
  void enqueue(const Step& step) override {
    check(step.moves.empty(), "a step of a single-rank group has moves: expected none, because there are no peers");
  }
  Progress poll() override { return Progress::done; }
  void wait(Deadline) override {}
  void share_failure(FirstFailure&) override {}  // it cannot fail

 private:
  kernels::Device& device_;
  std::uint64_t segments_ = 0;
};

constexpr std::size_t kTransports = 2;
/// Data, logs, checkpoints.
constexpr std::size_t kOtherFiles = 32;

/// Before a rank connects: what both transports of the group keep open, one for each peer.
void require_descriptors_of_group(int world_size) {
  require_descriptors(kOtherFiles + kTransports * static_cast<std::size_t>(std::max(world_size, 0)),
                      fmt::format("a rank of a world of {}", world_size));
}

}  // namespace

InProcessHub::InProcessHub(int world_size, ProcessGroup::Duration timeout)
    : data_(std::make_shared<InProcessRendezvous>(world_size)),
      control_(std::make_shared<InProcessRendezvous>(world_size)),
      timeout_(timeout) {}

InProcessHub::~InProcessHub() = default;

int InProcessHub::world_size() const { return data_->world_size(); }

std::unique_ptr<ProcessGroup> InProcessHub::join(int rank) {
  return std::make_unique<ProcessGroup>(make_in_process_transport(data_, rank),
                                        make_in_process_transport(control_, rank), timeout_);
}

std::unique_ptr<ProcessGroup> make_shared_memory_group(Store& store, const SharedMemoryGroupOptions& options) {
  require_descriptors_of_group(options.world_size);
  const auto transport = [&](const std::string& channel) {
    SharedMemoryGroupOptions own = options;
    own.name += "/" + channel;
    return make_shared_memory_transport(store, own, Deadline::after(own.timeout));
  };
  auto data = transport("data");
  return std::make_unique<ProcessGroup>(std::move(data), transport("control"), options.timeout);
}

std::unique_ptr<Transport> make_tcp_transport(Store& store, const TcpGroupOptions& options,
                                              const std::string& channel) {
  TcpGroupOptions own = options;
  own.name += "/" + channel;
  return std::make_unique<TcpTransport>(tcp::connect_mesh(store, own, Deadline::after(own.timeout)), own.rank);
}

std::unique_ptr<ProcessGroup> make_tcp_group(Store& store, const TcpGroupOptions& options) {
  require_descriptors_of_group(options.world_size);
  auto data = make_tcp_transport(store, options, "data");
  return std::make_unique<ProcessGroup>(std::move(data), make_tcp_transport(store, options, "control"),
                                        options.timeout);
}

std::unique_ptr<Transport> make_single_rank_transport(kernels::Device& device) {
  return std::make_unique<SingleRankTransport>(device);
}

}  // namespace gradring::comm
