// SPDX-License-Identifier: Apache-2.0
// What gradring-dev installs is enough to build a program on the C++ API, by CMake and by pkg-config, and has no other header.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/simt/engine/sanitizer.h"
#include "tests/train/app/commands/support/workplace.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using tests::ProgramEnd;
using tests::Words;

class InstalledDev : public testing::Test {
 protected:
  void SetUp() override {
    if (simt::detail::kAddressSanitizer || simt::detail::kThreadSanitizer)
      GTEST_SKIP() << "the example is built without the sanitizer that the library has";
    const fs::path first = place_.path("first");
    ASSERT_EQ(run({GRADRING_CMAKE, "--install", GRADRING_BUILD, "--component", "dev", "--prefix", first.string()}), "");
    fs::rename(first, prefix_);
  }

  /// Runs a program. Returns what went wrong, or nothing.
  std::string run(const Words& command, const tests::Workplace::Variables& variables = {}) {
    const ProgramEnd end = tests::run_program({.command = command, .folder = place_.path(""), .variables = variables});
    out_ = end.out;
    return end.code == 0 ? "" : command.front() + " ended with " + std::to_string(end.code) + ":\n" + end.out + end.err;
  }

  std::vector<std::string> headers() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(prefix_ / "include"))
      if (!entry.is_directory()) found.push_back(fs::relative(entry.path(), prefix_ / "include").string());
    std::ranges::sort(found);
    return found;
  }

  const tests::Workplace place_;
  const fs::path prefix_ = place_.path("moved");
  std::string out_;
};

TEST_F(InstalledDev, HasTheHeadersOfTheApiAndNoOther) {
  EXPECT_THAT(headers(),
              ElementsAre("gradring/dataset.h", "gradring/error.h", "gradring/gradring.h", "gradring/model.h",
                          "gradring/options.h", "gradring/training.h", "gradring/version.h", "gradring/weights.h"));
}

TEST_F(InstalledDev, HasHeadersThatCompileAlone) {
  for (const std::string& header : headers()) {
    std::ofstream(place_.path("alone.cpp")) << "#include <" << header << ">\n";
    EXPECT_EQ(run({GRADRING_CXX, "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", "-I",
                   (prefix_ / "include").string(), "alone.cpp"}),
              "");
  }
}

TEST_F(InstalledDev, BuildsTheExampleByCMake) {
  ASSERT_EQ(run({GRADRING_CMAKE, "-S", GRADRING_EXAMPLE, "-B", "build",
                 std::string("-DCMAKE_CXX_COMPILER=") + GRADRING_CXX, "-DCMAKE_PREFIX_PATH=" + prefix_.string()}),
            "");
  ASSERT_EQ(run({GRADRING_CMAKE, "--build", "build"}), "");
  ASSERT_EQ(run({"build/spirals"}), "");
  EXPECT_THAT(out_, HasSubstr("2 ranks, "));
  const std::string by_threads = out_.substr(0, out_.find("2 ranks, "));

  const Words launched = {GRADRING_BINARY, "launch", "--nproc-per-node", "2", "--no-python", "build/spirals"};
  ASSERT_EQ(run(launched), "");
  EXPECT_EQ(out_.substr(0, out_.find("2 ranks, ")), by_threads) << "ranks that are processes compute the same";
}

TEST_F(InstalledDev, BuildsTheExampleByPkgConfig) {
  const std::string path = (fs::path(prefix_) / GRADRING_LIBRARIES / "pkgconfig").string();
  ASSERT_EQ(run({"/bin/sh", "-c",
                 GRADRING_CXX " -std=c++20 " GRADRING_EXAMPLE
                              "/spirals.cpp $(pkg-config --cflags --libs gradring) -o spirals"},
                {{"PKG_CONFIG_PATH", path}}),
            "");
  EXPECT_EQ(run({"./spirals"}), "");
}

}  // namespace
}  // namespace gradring
