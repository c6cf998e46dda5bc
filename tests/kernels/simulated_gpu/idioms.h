// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/machine/findings.h"
#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/words.h"

namespace gradring::simulated_gpu {

/// "%block", and the address of the word of the thread in the grid.
inline const std::string kOfGrid =
    kThread +
    ".reg .b32 %block; .reg .b64 %own; mov.u32 %block, %ctaid.x; mov.u32 %r8, %ntid.x;"
    "mad.lo.u32 %r8, %block, %r8, %thread; mul.wide.u32 %own, %r8, 4; add.u64 %own, %own, %p0;\n";
inline const std::string kSharedWords = ".shared .align 16 .b32 words[1024]; .reg .b32 %word; ";
/// The address in shared memory of the word of the thread.
inline const std::string kOwnWord = "shl.b32 %word, %thread, 2; mov.u32 %r7, words; add.u32 %word, %word, %r7;\n";

struct Outcome {
  std::vector<std::string> findings;  ///< "block-race: ld.global.u32 %r1, [%p0];"
  std::vector<U32> words;
  std::string fault;
};

/// On `words` words of zeros: %p0, and numbered ones: %p1. Twice, as reads before the first write of another block are
/// known from the second launch on; what the first leaves is cleared.
inline Outcome run(const std::string& body, Extent grid, Extent block, std::uint64_t seed = 0, bool formal = false,
                   std::size_t words = 4096) {
  Outcome result;
  FindingLog log({.goes_on = true, .formal = formal});
  GlobalMemory memory;
  const DeviceArray<U32> source(memory, numbered(words));
  const TestKernel kernel(body, 2);
  result.fault = fault_of([&] {
    for (int i = 0; i < 2; ++i) {
      const DeviceArray<U32> array(memory, std::vector<U32>(words));
      kernel.run(memory, {array.address(), source.address()}, grid, block, {.seed = seed, .findings = &log});
      result.words = array.values();
    }
  });
  for (const Finding& finding : log.all())
    result.findings.push_back(std::string(name_of(finding.kind)) + ": " + finding.instruction);
  std::ranges::sort(result.findings);
  return result;
}

/// In several orders.
inline void expect_nothing(const std::string& body, Extent grid, Extent block, bool formal = false) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Outcome found = run(body, grid, block, seed, formal);
    EXPECT_THAT(found.findings, testing::IsEmpty()) << body;
    EXPECT_EQ(found.fault, "");
  }
}

inline void expect_only(const std::string& kind, const std::string& body, Extent grid, Extent block,
                        bool formal = false) {
  const Outcome found = run(body, grid, block, 0, formal);
  EXPECT_FALSE(found.findings.empty()) << body;
  for (const std::string& one : found.findings) EXPECT_TRUE(one.starts_with(kind + ": ")) << one;
  EXPECT_EQ(found.fault, "");
}

}  // namespace gradring::simulated_gpu
