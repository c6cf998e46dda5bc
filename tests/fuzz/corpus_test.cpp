// SPDX-License-Identifier: Apache-2.0
// Feeds every file of the corpus to the fuzz target that is linked in, without a fuzzer; and each cut short and with a bit
// flipped, so that a small corpus goes a long way.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_target.h"

namespace gradring::tests {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::vector<Bytes> corpus() {
  std::vector<Bytes> files;
  for (const auto& entry : std::filesystem::directory_iterator(GRADRING_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return files;
}

/// A copy on the heap of exactly that size, so that AddressSanitizer sees a step past its end.
void feed(const Bytes& input) {
  const Bytes exact(input.begin(), input.end());
  EXPECT_EQ(LLVMFuzzerTestOneInput(exact.data(), exact.size()), 0);
}

TEST(Corpus, IsTakenOrRejected) {
  const auto files = corpus();
  EXPECT_FALSE(files.empty());
  for (const Bytes& file : files) feed(file);
  feed({});
}

TEST(Corpus, DamagedIsTakenOrRejected) {
  constexpr unsigned kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  for (const Bytes& file : corpus())
    for (int i = 0; i < 200 && !file.empty(); ++i) {
      Bytes damaged = file;
      damaged[below(file.size())] ^= static_cast<std::uint8_t>(1u << below(8));
      feed(damaged);
      damaged.resize(below(file.size()));
      feed(damaged);
    }
}

}  // namespace
}  // namespace gradring::tests
