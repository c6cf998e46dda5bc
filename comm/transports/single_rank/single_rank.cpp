// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/single_rank/single_rank.h"

#include <algorithm>
#include <utility>

#include "kernels/base/error.h"

namespace gradring::comm {
namespace {

class SingleRankSegment final : public Segment {
 public:
  SingleRankSegment(kernels::Buffer memory, std::size_t bytes)
      : Segment(memory.data(), bytes), memory_(std::move(memory)) {}

 private:
  kernels::Buffer memory_;
};

class SingleRankTransport final : public Transport {
 public:
  explicit SingleRankTransport(kernels::Device& device) : device_(device) {}

  int rank() const override { return 0; }
  int world_size() const override { return 1; }

  std::unique_ptr<Segment> allocate(std::size_t bytes, Deadline deadline) override {
    kernels::Buffer memory = device_.allocate(std::max<std::size_t>(bytes, 1));
    const auto stream = device_.make_stream(kernels::StreamMode::in_place);
    stream->enqueue_zero(memory.data(), memory.size());
    stream->synchronize(deadline);
    return std::make_unique<SingleRankSegment>(std::move(memory), bytes);
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
};

}  // namespace

std::unique_ptr<Transport> make_single_rank_transport(kernels::Device& device) {
  return std::make_unique<SingleRankTransport>(device);
}

}  // namespace gradring::comm
