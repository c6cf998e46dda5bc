// SPDX-License-Identifier: Apache-2.0
// The log of findings: launches go on, each finding is noted once, suppressions, JSON.
#include "kernels/simulated_gpu/machine/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "kernels/base/error.h"
#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/words.h"

namespace gradring::simulated_gpu {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void launch(FindingLog& log, const std::string& body, Extent grid = {}, Extent block = {64}) {
  GlobalMemory memory;
  DeviceArray<U32> array(memory, numbered(256));
  TestKernel(body, 1).run(memory, {array.address()}, grid, block, {.findings = &log});
}

TEST(Findings, AreNotedOnceAndTheLaunchGoesOn) {
  FindingLog log({.goes_on = true});
  GlobalMemory memory;
  DeviceArray<U32> array(memory, numbered(64));
  const TestKernel kernel(".shared .align 4 .b32 words[64];\n" + kThread +
                              "shl.b32 %r1, %thread, 2; mov.u32 %r2, words; add.u32 %r2, %r2, %r1;"
                              "st.shared.u32 [%r2], %thread; xor.b32 %r3, %r1, 128; mov.u32 %r4, words;"
                              "add.u32 %r4, %r4, %r3; ld.shared.u32 %r5, [%r4]; st.global.u32 [%address], 5;",
                          1);
  for (int i = 0; i < 3; ++i) kernel.run(memory, {array.address()}, {}, {64}, {.findings = &log});
  EXPECT_EQ(array.values(), std::vector<U32>(64, 5));
  const std::vector<Finding> findings = log.all();
  ASSERT_EQ(findings.size(), 3u) << log.summary();  // warp 0 reads too early, warp 1 writes what was read, and reads
  EXPECT_EQ(findings[0].kind, FindingKind::not_written);
  EXPECT_EQ(findings[1].kind, FindingKind::shared_race);
  EXPECT_EQ(findings[2].kind, FindingKind::shared_race);
  EXPECT_EQ(findings[1].instruction, "st.shared.u32 [%r2], %thread;");
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.severity, Severity::error);
    EXPECT_EQ(finding.kernel, "test");
    EXPECT_EQ(finding.count, 32u * 3);
  }
}

TEST(Findings, WhatAGpuFailsOnEndsTheLaunch) {
  FindingLog log({.goes_on = true});
  EXPECT_THAT(fault_of([&] { launch(log, kThread + "st.global.u32 [%address+4096], 1;"); }),
              HasSubstr("out of bounds"));
  EXPECT_THAT(log.texts(), IsEmpty()) << "whoever catches the Fault adds its finding";
}

TEST(Findings, AreNamedByWarpOperationsToo) {
  FindingLog log({.goes_on = true});
  launch(log, kThread + "setp.lt.u32 %q1, %thread, 16; @!%q1 ret; shfl.sync.idx.b32 %r1, %thread, 20, 31, 65535;", {},
         {32});
  ASSERT_EQ(log.all().size(), 1u);
  EXPECT_EQ(log.all()[0].kind, FindingKind::undefined_value);
}

TEST(Findings, OfRacesBetweenBlocksAreOneForEachTwoInstructions) {
  FindingLog log({.goes_on = true});
  launch(log, kThread + "mov.u32 %r1, %ctaid.x; st.global.u32 [%address], %r1; st.global.u32 [%address+128], %r1;", {4},
         {32});
  EXPECT_EQ(log.all().size(), 2u) << log.summary();
  EXPECT_EQ(log.all()[0].kind, FindingKind::block_race);
  EXPECT_THAT(log.all()[0].text, HasSubstr("race in global memory"));
}

/// Warp 1 of each block overwrites what warp 0 has read, and reads what it wrote. The launches of the kernel differ in
/// their grids, blocks, parameters and memory.
TEST(Findings, OfALaunchDoNotDependOnTheLaunchesBefore) {
  const TestKernel kernel(kThread +
                              "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 256; add.u64 %address, %address, %rd1;"
                              "mov.u32 %r2, %nctaid.x; st.global.u32 [%address], %r2; xor.b32 %r3, %thread, 32;"
                              "mul.wide.u32 %rd2, %r3, 4; add.u64 %rd2, %rd2, %rd1; add.u64 %rd2, %rd2, %p0;"
                              "setp.eq.u64 %q1, %p1, 0; @%q1 bra $load; bar.sync 0; $load: ld.global.u32 %r4, [%rd2];",
                          2);
  const auto check = [&](unsigned blocks, unsigned threads, bool synchronises) {
    FindingLog log({.goes_on = true});
    GlobalMemory memory;
    const DeviceArray<U32> array(memory, numbered(64 * blocks));
    kernel.run(memory, {array.address(), U64{synchronises}}, {blocks}, {threads}, {.findings = &log});
    std::uint64_t found = 0;
    for (const Finding& finding : log.all()) {
      EXPECT_EQ(finding.kind, FindingKind::global_race) << finding.text;
      found += finding.count;
    }
    EXPECT_EQ(found, threads == 32 || synchronises ? 0 : 64 * blocks) << blocks << " blocks of " << threads;
    EXPECT_EQ(array.values().front(), blocks);
    EXPECT_EQ(array.values().back(), threads == 64 ? blocks : 64 * blocks - 1);
  };
  check(2, 64, false);
  check(2, 64, true);
  check(5, 64, false);
  check(3, 32, false);
  check(1, 64, true);
  check(1, 64, false);
}

TEST(Findings, AreSuppressedByKindKernelFileAndLine) {
  const auto errors = [](const std::string& suppressions) {
    FindingLog log({.goes_on = true, .suppressions = suppressions});
    log.add({}, {.kind = FindingKind::shared_race,
                 .kernel = "sum<float>",
                 .file = "src/sum.cu",
                 .line = 31,
                 .other = CodeLocation{.kernel = "fill", .file = "src/fill.cu", .line = 8},
                 .text = "x"});
    return log.count(Severity::error);
  };
  EXPECT_EQ(errors(""), 1u);
  EXPECT_EQ(errors("# none\n\n  kind=block-race\n"), 1u);
  EXPECT_EQ(errors("kind=shared-race kernel=sum<.*> file=sum.cu line=31  # known"), 0u);
  EXPECT_EQ(errors("kernel=fill line=8"), 0u) << "the other side of a race";
  EXPECT_EQ(errors("kernel=fill line=31"), 1u) << "all of one side";
  EXPECT_EQ(errors("kernel=sum"), 1u) << "the whole name";
  EXPECT_EQ(errors("line=32\nline=31"), 0u);
  for (const char* const wrong : {"kind=none", "kernel=(", "line=x", "line=0", "key=3", "file="})
    EXPECT_THROW(FindingLog({.suppressions = wrong}), InvalidArgument) << wrong;
}

TEST(Findings, AreSummedUpAndWrittenAsJson) {
  std::vector<std::string> shown;
  FindingLog log({.goes_on = true, .suppressions = "kind=mistake"},
                 [&](const Finding& finding) { shown.push_back(text_of(finding)); });
  log.add(FindingKind::leak, "2 of cudaMalloc \"left\"\n");
  log.add(FindingKind::leak, "2 of cudaMalloc \"left\"\n");
  log.add({.position = 1}, {.kind = FindingKind::stream_race,
                            .kernel = "sum",
                            .file = "sum.cu",
                            .line = 3,
                            .instruction = "ld",
                            .other = CodeLocation{.kernel = "fill", .file = "fill.cu", .line = 8, .instruction = "st"},
                            .text = "race"});
  log.add(FindingKind::mistake, "quiet");
  log.add(FindingKind::early_exit, "formal, and nobody asked");
  EXPECT_THAT(shown, ElementsAre("warning: 2 of cudaMalloc \"left\"\n", "race"));
  EXPECT_EQ(log.summary(), "1 error, 1 warning (1 suppressed)\n   stream-race: 1\n   leak: 1, seen 2 times");
  EXPECT_EQ(
      log.json(),
      "{\"errors\": 1, \"warnings\": 1, \"formal\": 0, \"findings\": [\n"
      "  {\"kind\": \"leak\", \"severity\": \"warning\", \"count\": 2, \"suppressed\": false, \"device\": -1, "
      "\"kernel\": \"\", \"file\": \"\", \"line\": 0, \"called_from\": \"\", \"instruction\": \"\", "
      "\"other\": null, \"thread\": null, \"block\": null, \"text\": \"2 of cudaMalloc \\\"left\\\"\\u000a\", "
      "\"host_stack\": []},\n"
      "  {\"kind\": \"stream-race\", \"severity\": \"error\", \"count\": 1, \"suppressed\": false, \"device\": -1, "
      "\"kernel\": \"sum\", \"file\": \"sum.cu\", \"line\": 3, \"called_from\": \"\", \"instruction\": \"ld\", "
      "\"other\": {\"kernel\": \"fill\", \"file\": \"fill.cu\", \"line\": 8, \"instruction\": \"st\"}, "
      "\"thread\": null, \"block\": null, \"text\": \"race\", \"host_stack\": []},\n"
      "  {\"kind\": \"mistake\", \"severity\": \"warning\", \"count\": 1, \"suppressed\": true, \"device\": -1, "
      "\"kernel\": \"\", \"file\": \"\", \"line\": 0, \"called_from\": \"\", \"instruction\": \"\", "
      "\"other\": null, \"thread\": null, \"block\": null, \"text\": \"quiet\", \"host_stack\": []}]}\n");
}

TEST(Findings, AreValidJsonWhateverTheEncoding) {
  FindingLog log;
  log.add(FindingKind::leak, "caf\xc3\xa9 caf\xe9 \xed\xa0\x80");
  EXPECT_THAT(log.json(), HasSubstr("\"text\": \"caf\xc3\xa9 caf\\ufffd \\ufffd\\ufffd\\ufffd\""));
}

TEST(Findings, HaveKindsThatTheDocumentsName) {
  for (const std::string document : {"/cuda.md", "/cuda.schema.json", "/simulated_gpu.md"}) {
    std::ifstream file(GRADRING_DOCS + document);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::size_t kind = 0; kind < kFindingKinds; ++kind)
      EXPECT_THAT(text, testing::ContainsRegex("\\b" + std::string(name_of(static_cast<FindingKind>(kind))) + "\\b"))
          << document;
  }
}

TEST(Findings, BarrierIsCompleteWithoutThreadsThatHaveEnded) {
  const std::string body = ".shared .align 4 .b32 words[64];\n" + kThread +
                           "setp.ge.u32 %q1, %thread, 40; @%q1 ret; shl.b32 %r1, %thread, 2; mov.u32 %r2, words;"
                           "add.u32 %r2, %r2, %r1; st.shared.u32 [%r2], %thread; bar.sync 0;"
                           "mov.u32 %r3, 39; sub.u32 %r3, %r3, %thread; shl.b32 %r3, %r3, 2; mov.u32 %r4, words;"
                           "add.u32 %r4, %r4, %r3; ld.shared.u32 %r5, [%r4]; st.global.u32 [%address], %r5;";
  FindingLog log({.goes_on = true});
  launch(log, body, {}, {96});
  EXPECT_THAT(log.texts(), IsEmpty());
  FindingLog formal({.goes_on = true, .formal = true});
  launch(formal, body, {}, {96});
  ASSERT_EQ(formal.all().size(), 1u);
  EXPECT_EQ(formal.all()[0].kind, FindingKind::early_exit);
}

}  // namespace
}  // namespace gradring::simulated_gpu
