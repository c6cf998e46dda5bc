// SPDX-License-Identifier: Apache-2.0
#include "data/augment/augmentation.h"

#include <gmock/gmock.h>

#include <string>

#include "kernels/base/error.h"
#include "tests/data/support/message_of.h"

namespace gradring::data {
namespace {

using kernels::gather_batch::Flip;
using ::testing::HasSubstr;

TEST(ParseAugmentation, ReadsTheListInAnyOrder) {
  for (const char* none : {"", "none"}) EXPECT_FALSE(parse_augmentation(none).any());
  const Augmentation all = parse_augmentation("cutout=8,flip=alternating,crop=4");
  EXPECT_EQ(all.flip, Flip::alternating);
  EXPECT_EQ(all.crop, 4);
  EXPECT_EQ(all.cutout, 8);
  EXPECT_EQ(parse_augmentation("flip").flip, Flip::random);
  EXPECT_EQ(text_of(parse_augmentation(" flip, crop=4 ")), "crop=4,flip");
  EXPECT_EQ(text_of(parse_augmentation("resized-crop")), "resized-crop=0.08:1") << "torchvision's default";
}

TEST(ParseAugmentation, ReadsWhatTextOfWrites) {
  for (const char* text : {"none", "flip", "crop=4,flip=alternating", "crop=2,flip,cutout=12", "cutout=1",
                           "resized-crop=0.08:1,flip", "resized-crop=0.3333:0.5", "resized-crop=1:1"})
    EXPECT_EQ(text_of(parse_augmentation(text)), text);
}

TEST(ParseAugmentation, RejectsOtherWordsAndNumbers) {
  for (const char* text : {"flp",
                           "flip=",
                           "flip=2",
                           "crop",
                           "crop=",
                           "crop=0",
                           "crop=-1",
                           "crop=4x",
                           "crop=65537",
                           "crop=99999999999",
                           "cutout=1.5",
                           "flip,flip=alternating",
                           "crop=1,crop=1",
                           ",",
                           "flip,",
                           ",flip",
                           "none,flip",
                           "flip crop=4",
                           "resized-crop=",
                           "resized-crop=0.5",
                           "resized-crop=0:1",
                           "resized-crop=0.5:0.4",
                           "resized-crop=0.5:1.1",
                           "resized-crop=0.5:1:",
                           "resized-crop=nan:1",
                           "resized-crop,crop=2"})
    EXPECT_THROW(parse_augmentation(text), InvalidArgument) << text;
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { parse_augmentation("flip,mirror"); }), HasSubstr("'mirror'"));
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { parse_augmentation("crop=2,crop=3"); }),
              HasSubstr("given twice"));
}

TEST(ParseAugmentation, ReadsAlphasOfMixtures) {
  const Augmentation both = parse_augmentation("cutmix=1,mixup=0.2");
  EXPECT_EQ(both.mixup, 200);
  EXPECT_EQ(both.cutmix, 1000);
  for (const char* text : {"mixup=0.2", "cutmix=1", "crop=4,flip,mixup=0.001,cutmix=100,cutout=8", "mixup=12.345"})
    EXPECT_EQ(text_of(parse_augmentation(text)), text);
  for (const char* text : {"mixup", "mixup=", "mixup=0", "mixup=-1", "mixup=100.1", "cutmix=x", "mixup=0.0001"})
    EXPECT_THAT(tests::message_of<InvalidArgument>([&] { parse_augmentation(text); }),
                HasSubstr("expected the alpha of a Beta distribution"))
        << text;
}

TEST(CheckFits, NamesTheAugmentationAndTheImages) {
  EXPECT_THAT(tests::message_of<InvalidArgument>([] { check_fits({.crop = 28}, {28, 32, 3}); }), HasSubstr("28 x 32"));
  EXPECT_NO_THROW(check_fits({.crop = 27}, {28, 28, 1}));
  EXPECT_NO_THROW(check_fits({.cutout = 64}, {28, 32, 1}));
  for (const Augmentation& what : {Augmentation{.crop = 28}, Augmentation{.cutout = 65}})
    EXPECT_THAT(tests::message_of<InvalidArgument>([&] {
                  check_fits(what, {28, 32, 3});
                }),
                HasSubstr("crop is at most 27 and cutout at most 64"));
}

}  // namespace
}  // namespace gradring::data
