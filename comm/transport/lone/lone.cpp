// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/lone/lone.h"

#include <algorithm>
#include <utility>

#include "kernels/runtime/error.h"

namespace gradring::comm {
namespace {

class LoneSegment final : public Segment {
 public:
  LoneSegment(kernels::Buffer memory, std::size_t bytes) : Segment(memory.data(), bytes), memory_(std::move(memory)) {}

 private:
  kernels::Buffer memory_;
};

class LoneTransport final : public Transport {
 public:
  explicit LoneTransport(kernels::Device& device) : device_(device) {}

  int rank() const override { return 0; }
  int world_size() const override { return 1; }

  std::unique_ptr<Segment> allocate(std::size_t bytes, Deadline deadline) override {
    kernels::Buffer memory = device_.allocate(std::max<std::size_t>(bytes, 1));
    const auto stream = device_.make_stream(kernels::StreamMode::in_place);
    stream->enqueue_zero(memory.data(), memory.size());
    stream->synchronize(deadline);
    return std::make_unique<LoneSegment>(std::move(memory), bytes);
  }

  void submit(kernels::Stream&, std::function<void()> collective) override { collective(); }
  void enqueue(const Step& step) override {
    check(step.moves.empty(), "a world of one has nobody to exchange data with");
  }
  Progress poll() override { return Progress::done; }
  void wait(Deadline) override {}

 private:
  kernels::Device& device_;
};

}  // namespace

std::unique_ptr<Transport> make_lone_transport(kernels::Device& device) {
  return std::make_unique<LoneTransport>(device);
}

}  // namespace gradring::comm
