// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/known_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/datasets/open_dataset.h"
#include "kernels/runtime/error.h"
#include "tests/data/support/message_of.h"

namespace gradring::data {
namespace {

TEST(KnownSet, KnowsEveryDataSet) {
  for (const std::string_view name : dataset_names()) EXPECT_EQ(known_set(name).name, name);
  const auto digits = open_dataset("digits", Split::test, "");
  EXPECT_EQ(known_set("digits").sample, digits->shape());
  EXPECT_EQ(known_set("digits").classes.size(), static_cast<std::size_t>(digits->classes()));
}

TEST(KnownSet, NamesTheNearest) {
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { known_set("mnits"); }), testing::HasSubstr("'mnist'"));
}

}  // namespace
}  // namespace gradring::data
