// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/transport/nccl/nccl_ranks.h"

#include <utility>

#include "tests/comm/support/ranks.h"

namespace gradring::tests {
namespace {

constexpr std::chrono::seconds kLong(60);

/// Carries every collective on an asynchronous stream of its own, and waits for it.
class OnItsOwnStream final : public comm::Transport, public comm::VendorAllReduce {
 public:
  OnItsOwnStream(std::unique_ptr<comm::Transport> inner, kernels::Device& device)
      : stream_(device.make_stream(kernels::StreamMode::asynchronous)), inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int world_size() const override { return inner_->world_size(); }
  std::size_t chunk_bytes() const override { return inner_->chunk_bytes(); }
  comm::VendorAllReduce* vendor_all_reduce() override { return this; }
  std::unique_ptr<comm::Segment> allocate(std::size_t bytes, Deadline deadline) override {
    return inner_->allocate(bytes, deadline);
  }
  void submit(kernels::Stream&, std::function<void()> collective) override {
    inner_->submit(*stream_, std::move(collective));
    finish();
  }
  void all_reduce(const comm::SegmentRange& range, std::uint64_t number, kernels::Stream&) override {
    inner_->vendor_all_reduce()->all_reduce(range, number, *stream_);
    finish();
  }
  void enqueue(const comm::Step& step) override { inner_->enqueue(step); }
  comm::Progress poll() override { return inner_->poll(); }
  void wait(Deadline deadline) override { inner_->wait(deadline); }
  void refuse_if_broken() const override { inner_->refuse_if_broken(); }

 private:
  void finish() {
    stream_->synchronize(Deadline::after(kLong));
    inner_->refuse_if_broken();
  }

  std::unique_ptr<kernels::Stream> stream_;
  std::unique_ptr<comm::Transport> inner_;  // first to go: it waits for what is on the stream
};

}  // namespace

NcclRanks::NcclRanks(int world_size, std::chrono::nanoseconds timeout, const FakeNccl::Behaviour& behaviour)
    : world_size_(world_size),
      timeout_(timeout),
      fake_(behaviour),
      kernels_(kernels::kernel_set()),
      control_(std::make_shared<comm::InProcessMeeting>(world_size)) {}

std::unique_ptr<comm::Transport> NcclRanks::transport(int rank) {
  comm::NcclOptions options{
      .rank = rank, .world_size = world_size_, .store = store_, .device = device_, .kernels = kernels_};
  options.timeout = timeout_;
  options.gpu = gpu.empty() ? "gpu" + std::to_string(rank) : gpu;
  options.allow_shared_gpu = allow_shared_gpu;
  options.is_captured = [this](kernels::Stream&) { return captured; };
  comm::nccl::Surroundings surroundings;
  surroundings.api = fake_.api(rank);
  surroundings.host = "host";
  surroundings.process = "thread " + std::to_string(rank);
  surroundings.set_environment = [this](const std::string& name, const std::string& value) {
    const std::lock_guard lock(mutex_);
    environment_.push_back(name + "=" + value);
  };
  surroundings.leave_process = [this](const std::string& words) {
    {
      const std::lock_guard lock(mutex_);
      last_words_.push_back(words);
    }
    fake_.let_aborts_end();
  };
  surroundings.abort_patience = abort_patience;
  // Small, so that short ranges are cut into chunks and pieces, too.
  surroundings.cut = {.chunk_bytes = 96 << 10, .most_bytes = 40 << 10, .least_bytes = 256};
  return comm::nccl::make_transport(options, surroundings);
}

std::unique_ptr<comm::ProcessGroup> NcclRanks::join(int rank) {
  auto data = std::make_unique<OnItsOwnStream>(transport(rank), device_);
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

std::vector<std::string> NcclRanks::last_words() const {
  const std::lock_guard lock(mutex_);
  return last_words_;
}

std::vector<std::string> NcclRanks::environment() const {
  const std::lock_guard lock(mutex_);
  return environment_;
}

}  // namespace gradring::tests
