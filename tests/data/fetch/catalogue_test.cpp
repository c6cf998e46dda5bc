// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/catalogue.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "data/datasets/open_dataset.h"
#include "data/fetch/fetch.h"
#include "kernels/base/error.h"
#include "tests/data/support/message_of.h"

namespace gradring::data {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

void expect_complete(const KnownFile& file, bool needs_hash = true) {
  EXPECT_THAT(std::string(file.name), AllOf(Not(IsEmpty()), Not(HasSubstr("/"))));
  EXPECT_GT(file.bytes, 0);
  EXPECT_THAT(std::string(file.sha256), MatchesRegex(needs_hash ? "[0-9a-f]{64}" : "|[0-9a-f]{64}"));
}

TEST(Catalogue, SaysEverythingAboutEachFile) {
  for (const CatalogueEntry& entry : catalogue()) {
    for (const CatalogueFile& file : entry.files) {
      expect_complete(file.file, entry.archive.name.empty());
      if (!file.unpacked.name.empty()) expect_complete(file.unpacked);
    }
    if (!entry.archive.name.empty()) expect_complete(entry.archive);
    EXPECT_GE(entry.mirrors.size(), 2) << entry.name << ": one of them may be down";
    for (std::string_view mirror : entry.mirrors)
      EXPECT_THAT(std::string(mirror), AllOf(StartsWith("http"), EndsWith("/")));
  }
}

TEST(Catalogue, HoldsWhatCanBeOpened) {
  for (const CatalogueEntry& entry : catalogue()) {
    EXPECT_THAT(dataset_names(), Contains(entry.name));
    EXPECT_EQ(&find_entry(entry.name), &entry);
  }
}

TEST(Catalogue, NamesTheNearest) {
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { find_entry("cifar-10"); }), HasSubstr("Did you mean 'cifar10'?"));
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { find_entry("digits"); }), HasSubstr("digits is generated"));
}

/// What the table says of the real files, where the machine has them.
TEST(Catalogue, AgreesWithTheRealFiles) {
  const char* folder = std::getenv("GRADRING_DATA_DIR");
  if (!folder) GTEST_SKIP() << "GRADRING_DATA_DIR is not set";
  std::size_t found = 0;
  for (const CatalogueEntry& entry : catalogue())
    for (const VerifiedFile& file : verify(entry, folder)) {
      if (file.check.state == FileState::missing) continue;
      ++found;
      EXPECT_EQ(file.check.state, FileState::good) << file.path << " " << file.check.found;
    }
  if (found == 0) GTEST_SKIP() << "GRADRING_DATA_DIR has none of the files";
}

}  // namespace
}  // namespace gradring::data
