// SPDX-License-Identifier: Apache-2.0
// gradring predict, on images that the test draws.
#include <gmock/gmock.h>

#include <fstream>

#include "data/datasets/digits.h"
#include "data/images/image.h"
#include "tests/data/support/written_png.h"
#include "tests/train/app/commands/support/trained.h"
#include "train/records/checkpoint/tensor_file.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using tests::Bytes;
using tests::ProgramEnd;
using tests::Words;
using tests::WrittenPng;

class Predict : public tests::Trained {
 protected:
  void SetUp() override {
    if (data::png_library().empty()) GTEST_SKIP() << "built without libpng";
    Trained::SetUp();
  }

  /// The first digits of the test set as PNGs, `each` times as large, white on black or the other way round.
  std::string write_digit(int index, std::uint32_t each = 1, bool inverted = false) const {
    WrittenPng png{.width = 28 * each, .height = 28 * each, .rows = {}};
    for (std::uint32_t i = 0; i < png.width * png.height; ++i) {
      const std::uint8_t value = digits_->pixels(index)[i / png.width / each * 28 + i % png.width / each];
      png.rows.push_back(inverted ? static_cast<std::uint8_t>(255 - value) : value);
    }
    std::string name = "digit-" + std::to_string(index) + "-" + std::to_string(each) + (inverted ? "i" : "") + ".png";
    place_.folder().write(name, png.bytes());
    return name;
  }
  Words predict(const Words& more) const { return tests::joined({"predict", "--checkpoint", "run"}, more); }
  std::vector<double> logits(const std::string& file) const {
    train::PosixFileSystem files;
    return *values_of(read_tensor_file(files, place_.path(file)).at(0));
  }

  std::unique_ptr<data::Dataset> digits_ = data::make_digits(data::Split::test);
};

TEST_F(Predict, SeesInFilesWhatEvalSeesInTheDataSet) {
  constexpr std::size_t kCount = 12;
  Words images;
  for (int i = 0; i < static_cast<int>(kCount); ++i) images.push_back(write_digit(i, i % 2 + 1));
  for (const char* tta : {"none", "airbench"}) {
    SCOPED_TRACE(tta);
    const json results = json_of(predict(tests::joined({"--logits", "p.npy", "--tta", tta, "--force"}, images)));
    ASSERT_EQ(place_.run({"eval", "--checkpoint", "run", "--logits", "e.npy", "--tta", tta, "--force"}).code, 0);
    const auto ours = logits("p.npy"), theirs = logits("e.npy");
    ASSERT_EQ(ours.size(), 10 * kCount);
    ASSERT_EQ(results.size(), kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto row = theirs.begin() + static_cast<std::ptrdiff_t>(10 * i);
      for (std::size_t j = 0; j < 10; ++j) EXPECT_NEAR(ours[10 * i + j], row[static_cast<std::ptrdiff_t>(j)], 1e-4);
      EXPECT_EQ(results[i]["index"], std::max_element(row, row + 10) - row);
      EXPECT_EQ(results[i]["class"], results[i]["index"].dump());
      EXPECT_EQ(results[i]["probabilities"].size(), 3u);
    }
  }
}

TEST_F(Predict, InvertsWhenAskedAndHintsWhenNot) {
  const json plain = json_of(predict({"--top", "10", write_digit(3)}));
  const std::string inverted = write_digit(3, 1, true);
  const json asked = json_of(predict({"--top", "10", "--invert", inverted}));
  EXPECT_EQ(asked[0]["probabilities"], plain[0]["probabilities"]);
  double sum = 0;
  for (const json& guess : plain[0]["probabilities"]) sum += guess["probability"].get<double>();
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_THAT(place_.run(predict({inverted})).err, AllOf(HasSubstr(inverted), HasSubstr("--invert")));
  EXPECT_THAT(place_.run(predict({"--invert", inverted})).err, IsEmpty());
  EXPECT_THAT(place_.run(predict({write_digit(3)})).err, IsEmpty());
}

TEST_F(Predict, NamesTheClassesOfTheDataSet) {
  const ProgramEnd end = place_.run(predict({"--dataset", "fashion-mnist", "--top", "10", write_digit(0)}));
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("\ndigit-0-1.png  "), HasSubstr("Ankle boot"), HasSubstr("T-shirt/top")));
}

TEST_F(Predict, TakesTheRunFirstThenImagesAndFolders) {
  std::filesystem::create_directories(place_.path("digits/more"));
  for (const auto& [from, to] :
       {std::pair(write_digit(1), "digits/b.PNG"), std::pair(write_digit(2), "digits/more/a.png"),
        std::pair(write_digit(0), "digits/c.png")})
    std::filesystem::rename(place_.path(from), place_.path(to));
  std::ofstream(place_.path("digits/notes.txt")) << "no image";
  const json found = json_of({"predict", "run", write_digit(3), "digits", "--top", "10"});
  ASSERT_EQ(found.size(), 4u);
  const char* names[] = {"digit-3-1.png", "digits/b.PNG", "digits/c.png", "digits/more/a.png"};
  const int digits[] = {3, 1, 0, 2};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found[i]["image"], names[i]);
    EXPECT_THAT(found[i]["checkpoint"].get<std::string>(), HasSubstr("run/checkpoints/step-40"));
    const json alone = json_of(predict({"--top", "10", write_digit(digits[i])}));
    for (std::size_t j = 0; j < 10; ++j)
      EXPECT_NEAR(found[i]["probabilities"][j]["probability"].get<double>(),
                  alone[0]["probabilities"][j]["probability"].get<double>(), 1e-5);
  }
  const ProgramEnd table = place_.run({"predict", "run", "digits", "--top", "2"});
  EXPECT_THAT(table.out, ::testing::StartsWith("run/checkpoints/step-40 (newest of run)\n"
                                               "image              class       %  2.          %\n"
                                               "digits/b.PNG       "));
  std::filesystem::create_directory(place_.path("empty"));
  const ProgramEnd none = place_.run({"predict", "run", "empty"});
  EXPECT_EQ(none.code, 4);
  EXPECT_THAT(none.err, HasSubstr("empty: holds no .png, .jpg or .jpeg file"));
}

TEST_F(Predict, PrintsNoControlCharactersOfFileNames) {
  const std::string hostile = "digits/\033]0;title\a\n.png";
  std::filesystem::create_directory(place_.path("digits"));
  std::filesystem::rename(place_.path(write_digit(1, 1, true)), place_.path(hostile));
  const ProgramEnd end = place_.run({"predict", "run", "digits"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, AllOf(HasSubstr("digits/\\x1b]0;title\\x07\\x0a.png  "), Not(HasSubstr("\033"))));
  EXPECT_THAT(end.err, AllOf(HasSubstr("digits/\\x1b]0;title\\x07\n.png has a light border"), Not(HasSubstr("\033"))));
  EXPECT_EQ(json_of({"predict", "run", "digits"})[0]["image"], hostile);
  const ProgramEnd missing = place_.run({"predict", "run", "\033[2J.png"});
  EXPECT_EQ(missing.code, 4);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("\\x1b[2J.png"), Not(HasSubstr("\033"))));
}

TEST_F(Predict, NamesAFileInAFolderThatCannotBeRead) {
  std::filesystem::create_directory(place_.path("digits"));
  std::filesystem::create_symlink("nothing", place_.path("digits/gone.png"));
  std::filesystem::rename(place_.path(write_digit(1)), place_.path("digits/a.png"));
  EXPECT_EQ(json_of({"predict", "run", "digits"}).size(), 1u) << "without the link to nothing";
  std::filesystem::create_symlink("loop.png", place_.path("digits/loop.png"));
  const ProgramEnd end = place_.run({"predict", "run", "digits"});
  EXPECT_EQ(end.code, 3);
  EXPECT_THAT(end.err, HasSubstr("cannot read digits/loop.png: Too many levels of symbolic links"));
}

TEST_F(Predict, RejectsHostileImages) {
  WrittenPng huge{.width = 60'000, .height = 60'000, .rows = {1}};
  place_.folder().write("huge.png", huge.bytes());
  const ProgramEnd end = place_.run(predict({write_digit(0), "huge.png"}));
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(end.err, AllOf(HasSubstr("huge.png: has 60000 x 60000 pixels"), HasSubstr("make it smaller")));
  EXPECT_THAT(end.out, IsEmpty());
  Bytes cut = WrittenPng{.width = 28, .height = 28, .rows = Bytes(28 * 28)}.bytes();
  cut.resize(cut.size() / 2);
  place_.folder().write("cut.png", cut);
  std::ofstream(place_.path("text.png")) << "no image";
  for (const char* bad : {"cut.png", "text.png", "nowhere.png"}) {
    const ProgramEnd refused = place_.run(predict({bad}));
    EXPECT_EQ(refused.code, 4) << bad;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("gradring predict: " + std::string(bad)), Not(HasSubstr("libpng error"))));
  }
  EXPECT_EQ(place_.run(predict({})).code, 2) << "no image";
  EXPECT_EQ(place_.run({"predict", write_digit(0)}).code, 2) << "no checkpoint";
  EXPECT_EQ(place_.run({"predict", "--help"}).code, 0);
}

}  // namespace
}  // namespace gradring
