// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/cifar10/cifar10_file.h"

#include <gmock/gmock.h>

#include "data/error.h"
#include "tests/data/support/message_of.h"
#include "tests/data/support/written_cifar10.h"
#include "tests/support/temp_folder.h"

namespace gradring::data {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tests::Bytes;

class Cifar10File : public ::testing::Test {
 protected:
  std::string error(const Bytes& bytes) const {
    const auto path = folder_.write("batch.bin", bytes);
    return tests::message_of<DataError>([&] {
      Cifar10Records records;
      append_cifar10(path, records);
    });
  }

  const tests::TempFolder folder_;
};

TEST_F(Cifar10File, TurnsPlanesIntoPixels) {
  Cifar10Records records;
  append_cifar10(folder_.write("batch.bin", tests::cifar10_record(7)), records);
  EXPECT_THAT(records.labels, ElementsAre(7));
  EXPECT_EQ(records.pixels, tests::cifar10_pixels(7));
}

TEST_F(Cifar10File, AppendsFileAfterFile) {
  Cifar10Records records;
  append_cifar10(folder_.write("first", tests::cifar10_bytes(2, 3)), records);
  append_cifar10(folder_.write("second", tests::cifar10_bytes(1, 9)), records);
  EXPECT_THAT(records.labels, ElementsAre(3, 4, 9));
  const auto last = std::span(records.pixels).last(Cifar10Records::kPixels);
  EXPECT_EQ(Bytes(last.begin(), last.end()), tests::cifar10_pixels(9));
}

TEST_F(Cifar10File, CountsByTheSizeAlone) {
  EXPECT_EQ(count_cifar10(folder_.write("batch.bin", Bytes(3 * 3073, 0xff))), 3);
}

TEST_F(Cifar10File, RefusesOneThatIsCutShortAtAnyByte) {
  const Bytes whole = tests::cifar10_bytes(1);
  for (std::size_t size = 1; size < whole.size(); size += 97)
    EXPECT_THAT(error(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))),
                AllOf(HasSubstr("batch.bin: has " + std::to_string(size) + " bytes"), HasSubstr("cut short"),
                      HasSubstr("get it again")));
}

TEST_F(Cifar10File, RefusesOneByteTooMany) {
  Bytes bytes = tests::cifar10_bytes(2);
  bytes.push_back(0);
  EXPECT_THAT(error(bytes), HasSubstr("has 6147 bytes, which is no multiple of a record's 3073"));
}

TEST_F(Cifar10File, RefusesAnEmptyFile) { EXPECT_THAT(error({}), HasSubstr("is empty")); }

TEST_F(Cifar10File, RefusesALabelOutOfRange) {
  Bytes bytes = tests::cifar10_bytes(3);
  bytes[2 * 3073] = 10;
  EXPECT_THAT(error(bytes), AllOf(HasSubstr("record 2"), HasSubstr("label 10"), HasSubstr("0 to 9")));
}

TEST_F(Cifar10File, SaysThatItCannotBeOpened) {
  EXPECT_THAT(tests::message_of<DataError>([&] { count_cifar10(folder_.path() / "absent.bin"); }),
              HasSubstr("absent.bin: cannot be opened"));
}

}  // namespace
}  // namespace gradring::data
