// SPDX-License-Identifier: Apache-2.0
#include "train/bench/annotated_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temp_folder.h"

namespace gradring::train::bench {
namespace {

using simulated_gpu::LaunchCounts;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

/// Line 2 of a file of three has two instructions.
LaunchCounts launch() {
  LaunchCounts made{.kernel = "scale_kernel<float>"};
  made.listing.emplace();
  made.listing->mangled = "_Zscale";
  made.listing->instructions = {{.text = "mul.f32 %f1, %f2, %f3;",
                                 .file = "kernels/ops/elementwise/1_flat.cu",
                                 .line = 2,
                                 .warp_instructions = 10,
                                 .machine = {{0x10, 12}}},
                                {.text = "st.global.f32 [%rd1], %f1;",
                                 .file = "kernels/ops/elementwise/1_flat.cu",
                                 .line = 2,
                                 .warp_instructions = 10,
                                 .sectors = 80,
                                 .least_sectors = 40,
                                 .machine = {{0x20, 10}}}};
  return made;
}

class AnnotatedSources : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_.path() / "kernels/ops/elementwise");
    std::ofstream(folder_.path() / "kernels/ops/elementwise/1_flat.cu")
        << "// the first\n  y[i] = a * x[i];\n// the last\n";
  }
  std::string text(bool ptx) const {
    AnnotatedSource source({.file = folder_.path() / "out", .source_root = folder_.path(), .ptx = ptx});
    source.add(launch());
    source.add(launch());
    return source.text();
  }
  tests::TempFolder folder_;
};

TEST_F(AnnotatedSources, ShowEveryLineWithTheSumsOfAllLaunches) {
  EXPECT_THAT(text(false),
              AllOf(HasSubstr("scale_kernel<float>: 2 launches"), HasSubstr("\nkernels/ops/elementwise/1_flat.cu\n"),
                    ContainsRegex(" 40 +44 +160 +80 +2 \\|   y\\[i\\] = a \\* x\\[i\\];"),
                    ContainsRegex("   1 \\| // the first"), HasSubstr("// the last"), Not(HasSubstr("mul.f32"))));
}

TEST_F(AnnotatedSources, ShowPtxBelowItsLine) {
  EXPECT_THAT(text(true), AllOf(ContainsRegex(" 20 +24 +\\|   ptx  mul.f32 %f1"),
                                ContainsRegex(" 20 +20 +160 +80 +\\|   ptx  st.global")));
}

TEST_F(AnnotatedSources, ShowTheCountsOfSourcesThatAreMissing) {
  std::filesystem::remove_all(folder_.path() / "kernels");
  EXPECT_THAT(text(false), AllOf(HasSubstr("kernels/ops/elementwise/1_flat.cu: cannot be read in"),
                                 HasSubstr("--source-root"), ContainsRegex(" 40 +44 +160 +80 +2 \\|")));
}

TEST(Disassembly, IsReadByKernelAndOffset) {
  EXPECT_THAT(disassembly_of("_Zscale",
                             ".text._Zother:\n        /*0000*/                   EXIT ;\n"
                             ".text._Zscale:\n.L_x_0:\n        /*0000*/              @P0 FMUL R1, R2, R3 ;\n"
                             "        /*0010*/                   EXIT ;\n"),
              ElementsAre(Pair(0, "@P0 FMUL R1, R2, R3"), Pair(16, "EXIT")));
}

}  // namespace
}  // namespace gradring::train::bench
