// SPDX-License-Identifier: Apache-2.0
// What a benchmark reports of a GPU is the device's time, on a runtime that counts it.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/measure_case.h"
#include "kernels/runtime/cuda/cuda_device.h"
#include "tests/support/fake_cudart/fake_cudart.h"

namespace gradring::kernels::bench {
namespace {

using tests::FakeCuda;

/// Flushes by work that takes the device a while and the host little.
class LongFlush final : public Machine {
 public:
  explicit LongFlush(std::unique_ptr<Recording> work) : work_(std::move(work)) {}
  std::string limits() override { return "none"; }
  double least_seconds(const Work&, bool) override { return 0; }
  void flush(const KernelCase&, Stream& stream) override {
    work_->enqueue(stream);
    ++flushes;
  }

  int flushes = 0;

 private:
  std::unique_ptr<Recording> work_;
};

TEST(MeasureOnCuda, ReportsTheDevicesTimeAndNotTheHosts) {
  static_assert(FakeCuda::kEnqueueSeconds > 2 * FakeCuda::kWorkSeconds);
  tests::reset_fake_cuda();
  CudaDevice device(0);
  const auto stream = device.make_stream(StreamMode::in_place);
  CaseMaker make({.kernels = {}, .device = device, .stream = *stream});
  KernelCase c = make.make("clearing");
  BenchArray& y = make.output(c, DType::f32, 3, exact());
  c.reference = [&y] { std::fill_n(y.as<float>(Side::host), 3, 0.0f); };
  c.variants.push_back({"clear", [&y](Stream& s) { s.enqueue_zero(y.at(Side::device), y.bytes()); }});
  LongFlush machine(device.record(*stream, [&] {
    for (int i = 0; i < 100; ++i) stream->enqueue_zero(y.at(Side::device), y.bytes());
  }));
  const auto results = measure(c, device, *stream, machine, {.seconds = 0, .most_samples = 5}, "");
  ASSERT_EQ(results.size(), 1u);
  ASSERT_TRUE(results[0].right());
  for (const Statistics& times : {results[0].hot, results[0].flushed}) {
    EXPECT_EQ(times.count, 5u);
    EXPECT_NEAR(times.least, FakeCuda::kWorkSeconds, 1e-3 * FakeCuda::kWorkSeconds);
  }
  EXPECT_EQ(machine.flushes, 5);
}

}  // namespace
}  // namespace gradring::kernels::bench
