// SPDX-License-Identifier: Apache-2.0
// What a benchmark reports of a GPU is the device's time, on a runtime that counts it.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/bench/kernel_case.h"
#include "kernels/bench/measure_case.h"
#include "kernels/runtime/cuda/cuda_device.h"
#include "kernels/runtime/cuda/cuda_stream.h"
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

class MeasureOnCuda : public testing::Test {
 protected:
  MeasureOnCuda() {
    c_.reference = [this] { std::fill_n(y_.as<float>(Side::host), 3, 0.0f); };
    c_.variants.push_back({"clear", [this](Stream& s) { clear(s); }});
  }

  void clear(Stream& stream) { stream.enqueue_zero(y_.at(Side::device), y_.bytes()); }
  std::vector<Measured> measured() {
    return measure(c_, device_, *stream_, machine_, {.seconds = 0, .most_samples = 5}, "");
  }

  [[maybe_unused]] bool fresh_ = (tests::reset_fake_cuda(), true);  // before anything is made
  CudaDevice device_{0};
  std::unique_ptr<Stream> stream_ = device_.make_stream(StreamMode::in_place);
  CaseMaker make_{{.kernels = {}, .device = device_, .stream = *stream_}};
  KernelCase c_ = make_.make("clearing");
  BenchArray& y_ = make_.output(c_, "y", DType::f32, 3, exact());
  LongFlush machine_{device_.record(*stream_, [this] {
    for (int i = 0; i < 100; ++i) clear(*stream_);
  })};
};

TEST_F(MeasureOnCuda, ReportsTheDevicesTimeAndNotTheHosts) {
  static_assert(FakeCuda::kEnqueueSeconds > 2 * FakeCuda::kWorkSeconds);
  const auto results = measured();
  ASSERT_EQ(results.size(), 1u);
  ASSERT_TRUE(results[0].right());
  for (const Statistics& times : {results[0].hot, results[0].flushed}) {
    EXPECT_EQ(times.count, 5u);
    EXPECT_NEAR(times.least, FakeCuda::kWorkSeconds, 1e-3 * FakeCuda::kWorkSeconds);
  }
  EXPECT_EQ(machine_.flushes, 5 + 2) << "five are timed; two more are of values seen and never seen, and are checked";
}

TEST_F(MeasureOnCuda, ReportsPeersThatCannotBeRecordedAndGoesOn) {
  c_.peers.push_back({"unrecordable", [this](Stream& s) {
                        if (is_captured(s)) throw DeviceError("allocates");
                        clear(s);
                      }});
  c_.peers.push_back({"broken", [](Stream&) { throw DeviceError("does not start"); }});
  c_.peers.push_back({"library", [this](Stream& s) { clear(s); }});
  const auto results = measured();
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[1].failure, "allocates");
  EXPECT_EQ(results[2].failure, "does not start");
  for (const std::size_t failed : {1, 2}) {
    EXPECT_FALSE(results[failed].right());
    EXPECT_EQ(results[failed].hot.count, 0u);
  }
  for (const std::size_t timed : {0, 3}) {
    EXPECT_TRUE(results[timed].right());
    EXPECT_EQ(results[timed].flushed.count, 5u);
  }
}

TEST_F(MeasureOnCuda, EndsWhenAPeerFailsTheDevice) {
  c_.peers.push_back({"fatal", [](Stream& s) { s.enqueue([] { throw DeviceError("the device failed"); }); }});
  EXPECT_THROW(measured(), DeviceError);
}

}  // namespace
}  // namespace gradring::kernels::bench
