// SPDX-License-Identifier: Apache-2.0
// The conversation with the Python beside each rank, held here with shell scripts. The real one is measured by
// `gradring bench allreduce --compare gloo`.
#include "comm/bench/gloo_peer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kernels/base/error.h"
#include "tests/comm/support/ranks.h"
#include "tests/support/temp_folder.h"

namespace gradring::comm::bench {
namespace {

class GlooPeerTest : public ::testing::Test {
 protected:
  /// A program that stands in for Python: it is called with -c and the real script, and does `body` instead.
  std::string python(const std::string& body) const {
    const auto path = folder_.path() / "python";
    std::ofstream(path) << "#!/bin/sh\n" << body << "\n";
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }
  GlooPeerSpec spec(const std::string& body) const {
    return {
        .python = python(body), .store_file = (folder_.path() / "store").string(), .timeout = std::chrono::seconds(30)};
  }

 private:
  tests::TempFolder folder_;
};

TEST_F(GlooPeerTest, RunsOnePeerPerRankAndReportsTheSlowestTimes) {
  const auto peer_spec = spec("echo ready gloo of $WORLD_SIZE\nread line\necho 0.5 0.${RANK}25");
  tests::run_as_threads(3, [&](ProcessGroup& group) {
    GlooPeer peer(group, peer_spec);
    EXPECT_EQ(peer.name(), "gloo of 3");
    EXPECT_EQ(peer.seconds("allreduce", 4096, {.warmups = 1, .iterations = 2}), (std::vector{0.5, 0.225}));
  });
}

TEST_F(GlooPeerTest, SendsTheMeasurementParameters) {
  const auto peer_spec = spec("echo ready gloo\nread line\ntest \"$line\" = 'allreduce 4096 7 2 1' && echo 1 1");
  tests::run_as_threads(1, [&](ProcessGroup& group) {
    GlooPeer peer(group, peer_spec);
    EXPECT_EQ(peer.seconds("allreduce", 4096, {.warmups = 7, .iterations = 2, .fresh = true}).size(), 2u);
  });
}

TEST_F(GlooPeerTest, FailsOnExitOrInvalidAnswer) {
  tests::run_as_threads(1, [&](ProcessGroup& group) {
    EXPECT_THROW(GlooPeer(group, spec("exit 1")), DeviceError);
    EXPECT_THROW(GlooPeer(group, spec("echo something else")), DeviceError);
    GlooPeer ends(group, spec("echo ready gloo\nread line\nexit 0"));
    EXPECT_THROW(ends.seconds("allreduce", 4, {}), DeviceError);
    GlooPeer short_of_one(group, spec("echo ready gloo\nread line\necho 0.1"));
    EXPECT_THROW(short_of_one.seconds("barrier", 0, {.warmups = 0, .iterations = 2}), DeviceError);
  });
}

}  // namespace
}  // namespace gradring::comm::bench
