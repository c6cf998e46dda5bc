// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/nvtx_ranges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/built_file.h"
#include "tests/support/temp_folder.h"

namespace gradring::kernels {
namespace {

using ::testing::ElementsAre;

/// Lines of the recorder without the thread.
std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  std::string domain, category, payload, depth, thread, name;
  while (file >> domain >> category >> payload >> depth >> thread && std::getline(file >> std::ws, name)) {
    lines.push_back(domain);
    for (const std::string& word : {category, payload, depth, name}) lines.back() += " " + word;
  }
  return lines;
}

/// By NVTX's own interface for profilers: it loads the library when it is first called in this process.
TEST(NvtxRanges, ShowScopesToAProfilerAlsoWhileNothingIsRecorded) {
  const tests::TempFolder folder;
  const std::filesystem::path file = folder.path() / "ranges";
  ::setenv("NVTX_INJECTION64_PATH", tests::built_file(GRADRING_NVTX_RECORDER).c_str(), 1);
  ::setenv("GRADRING_NVTX_FILE", file.c_str(), 1);
  const auto ranges = make_nvtx_ranges();
  ASSERT_TRUE(ranges);
  const std::atomic<bool> never{false};
  TraceTrack track("trainer", 0, never);
  { const TraceScope unseen(&track, TraceCategory::step, "step", {1}); }
  track.show(ranges.get());
  {
    const TraceScope step(&track, TraceCategory::step, "step", {12});
    { const TraceScope layer(&track, TraceCategory::forward, "conv_layers.0, relu"); }
    const TraceRange bucket(&track, TraceCategory::bucket, "bucket", 0);
    const TraceRange collective(&track, TraceCategory::collective, "all_reduce", 34);
  }
  { const TraceScope update(&track, TraceCategory::optimizer, "optimizer"); }
  EXPECT_THAT(lines_of(file), ElementsAre("gradring step 12 0 step", "gradring forward - 1 conv_layers.0, relu",
                                          "gradring bucket 0 1 bucket", "gradring collective 34 2 all_reduce",
                                          "gradring optimizer - 0 optimizer"));
  EXPECT_EQ(track.dropped(), 0u);
  EXPECT_TRUE(track.events().empty());
}

}  // namespace
}  // namespace gradring::kernels
