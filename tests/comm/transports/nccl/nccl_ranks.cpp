// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/transports/nccl/nccl_ranks.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <utility>

#include "tests/comm/support/ranks.h"

namespace gradring::tests {
namespace {

constexpr std::chrono::seconds kLong(60);

/// Runs every collective on its own asynchronous stream, eagerly or captured, and waits for it.
class OwnStreamTransport final : public comm::Transport, public comm::VendorAllReduce {
 public:
  OwnStreamTransport(std::unique_ptr<comm::Transport> inner, kernels::Device& device, bool captured)
      : device_(device),
        captured_(captured),
        stream_(device.make_stream(kernels::StreamMode::asynchronous)),
        inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  std::size_t chunk_bytes() const override { return inner_->chunk_bytes(); }
  comm::VendorAllReduce* vendor_all_reduce() override { return this; }
  std::unique_ptr<comm::Segment> allocate(std::size_t bytes, Deadline deadline) override {
    return inner_->allocate(bytes, deadline);
  }
  void submit(kernels::Stream&, std::function<void()> collective) override {
    run([&] { inner_->submit(*stream_, std::move(collective)); });
  }
  void all_reduce(const comm::SegmentRange& range, std::uint64_t number, kernels::Stream&) override {
    run([&] { inner_->vendor_all_reduce()->all_reduce(range, number, *stream_); });
  }
  void enqueue(const comm::Step& step) override { inner_->enqueue(step); }
  comm::Progress poll() override { return inner_->poll(); }
  void wait(Deadline deadline) override { inner_->wait(deadline); }
  void throw_if_failed() const override { inner_->throw_if_failed(); }
  void share_failure(comm::FirstFailure& first) override { inner_->share_failure(first); }

 private:
  void run(const std::function<void()>& enqueue_collective) {
    std::unique_ptr<kernels::Recording> graph;
    if (captured_) {
      graph = device_.record(*stream_, enqueue_collective);
      inner_->replay(*stream_, [&] { graph->enqueue(*stream_); });
    } else {
      enqueue_collective();
    }
    stream_->synchronize(Deadline::after(kLong));
    inner_->throw_if_failed();
  }

  kernels::Device& device_;
  bool captured_;
  std::unique_ptr<kernels::Stream> stream_;
  std::unique_ptr<comm::Transport> inner_;  // destroyed first: it waits for the stream's work
};

}  // namespace

std::string RecordingStore::get(const std::string& key) {
  {
    const std::lock_guard lock(mutex_);
    looked_for_.push_back(key);
  }
  return entries_.get(key);
}

std::vector<std::string> RecordingStore::looked_for() const {
  const std::lock_guard lock(mutex_);
  return looked_for_;
}

NcclRanks::NcclRanks(int world_size, std::chrono::nanoseconds timeout, const FakeNccl::Behaviour& behaviour)
    : world_size_(world_size),
      timeout_(timeout),
      fake_(behaviour, misuse_),
      kernels_(kernels::kernel_set()),
      control_(std::make_shared<comm::InProcessRendezvous>(world_size)) {
  for (int rank = 0; rank < world_size; ++rank) gpus_.push_back(std::make_unique<FakeGpu>(rank, misuse_));
}

NcclRanks::~NcclRanks() { EXPECT_THAT(misuse_.take(), ::testing::IsEmpty()); }

std::unique_ptr<comm::Transport> NcclRanks::transport(int rank) {
  comm::NcclOptions options{.rank = rank,
                            .world_size = world_size_,
                            .store = store_,
                            .device = *gpus_[static_cast<std::size_t>(std::clamp(rank, 0, world_size_ - 1))],
                            .kernels = kernels_};
  options.timeout = timeout_;
  options.gpu = gpu.empty() ? "gpu" + std::to_string(rank) : gpu;
  options.allow_shared_gpu = allow_shared_gpu;
  options.make_current = [device = make_current ? rank : 0] { FakeGpu::make_current(device); };
  options.broadcast = [this, rank](const std::string& text) {
    if (rank == 0) store_.set("broadcast", text);
    return store_.wait("broadcast", Deadline::after(timeout_));
  };
  options.is_captured = [](kernels::Stream& stream) { return static_cast<FakeStream&>(stream).capture() != nullptr; };
  comm::nccl::Dependencies dependencies;
  dependencies.api = fake_.api(rank);
  dependencies.host = "host";
  dependencies.process = "thread " + std::to_string(rank);
  dependencies.set_default_environment = [this, rank](const std::string& name, const std::string& value) {
    fake_.set_environment(rank, name, value);
    const std::lock_guard lock(mutex_);
    environment_.push_back(name + "=" + value);
  };
  dependencies.exit_process = [this, rank](const std::string& message) {
    fake_.wait_while_stopped(rank);
    {
      const std::lock_guard lock(mutex_);
      exit_messages_.push_back(message);
    }
    fake_.kill(rank);
  };
  // Small, so that short ranges have several chunks and slices.
  dependencies.pipeline = {.chunk_bytes = 96 << 10, .max_slice_bytes = 40 << 10, .min_slice_bytes = 256};
  adjust(rank, dependencies);
  return comm::nccl::make_transport(options, dependencies);
}

std::unique_ptr<comm::ProcessGroup> NcclRanks::join(int rank) {
  auto data = std::make_unique<OwnStreamTransport>(transport(rank), device(rank), captured);
  return std::make_unique<comm::ProcessGroup>(std::move(data), comm::make_in_process_transport(control_, rank),
                                              timeout_);
}

std::unique_ptr<comm::ProcessGroup> NcclRanks::join_on_callers_streams(int rank) {
  return std::make_unique<comm::ProcessGroup>(transport(rank), comm::make_in_process_transport(control_, rank),
                                              timeout_);
}

std::vector<std::exception_ptr> NcclRanks::errors(const std::function<void(comm::ProcessGroup&)>& body) {
  return errors_of_threads(world_size_, body, [this](int rank) { return join(rank); });
}

void NcclRanks::run(const std::function<void(comm::ProcessGroup&)>& body) {
  for (const std::exception_ptr& error : errors(body))
    if (error) std::rethrow_exception(error);
}

std::vector<std::string> NcclRanks::exit_messages() const {
  const std::lock_guard lock(mutex_);
  return exit_messages_;
}

std::vector<std::string> NcclRanks::environment() const {
  const std::lock_guard lock(mutex_);
  return environment_;
}

}  // namespace gradring::tests
