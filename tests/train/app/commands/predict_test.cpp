// SPDX-License-Identifier: Apache-2.0
// gradring predict, on images that the test draws.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "data/datasets/digits.h"
#include "data/images/image.h"
#include "kernels/base/deadline.h"
#include "kernels/base/file.h"
#include "tests/data/support/written_png.h"
#include "tests/train/app/commands/support/in_shell.h"
#include "tests/train/app/commands/support/trained.h"
#include "tests/train/support/text_of.h"
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
  EXPECT_THAT(none.err, HasSubstr("empty: holds no .jpg, .jpeg or .png file"));
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

TEST_F(Predict, WalksFoldersAsATrainingDoes) {
  std::filesystem::create_directories(place_.path("digits/.ipynb_checkpoints"));
  std::filesystem::create_directories(place_.path("more"));
  for (const auto& [digit, to] : {std::pair(0, "digits/._a.png"), std::pair(1, "digits/.ipynb_checkpoints/b.png"),
                                  std::pair(2, "more/c.png"), std::pair(3, "digits/z.png")})
    std::filesystem::rename(place_.path(write_digit(digit)), place_.path(to));
  std::filesystem::create_directory_symlink("../more", place_.path("digits/linked"));
  std::ofstream(place_.path("digits/notes.txt")) << "no image";
  const json found = json_of({"predict", "run", "digits"});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]["image"], "digits/z.png");
  EXPECT_EQ(found[1]["image"], "digits/linked/c.png");
  EXPECT_THAT(place_.run({"predict", "run", "digits"}).err,
              HasSubstr("digits: 1 file is not used, such as notes.txt: images are .jpg, .jpeg or .png files"));
  std::filesystem::create_directory_symlink("..", place_.path("digits/up"));
  const ProgramEnd circle = place_.run({"predict", "run", "digits"});
  EXPECT_EQ(circle.code, 4);
  EXPECT_THAT(circle.err, HasSubstr("is a link to a folder that it is in"));
}

TEST_F(Predict, PrintsAllOthersWhereImagesAreBroken) {
  std::filesystem::create_directory(place_.path("digits"));
  for (int i = 0; i < 5; ++i)
    std::filesystem::rename(place_.path(write_digit(i)), place_.path("digits/" + std::to_string(2 * i) + ".png"));
  std::filesystem::create_symlink("nothing", place_.path("digits/1.png"));
  std::filesystem::create_symlink("7.png", place_.path("digits/7.png"));
  std::ofstream(place_.path("digits/3.png")) << "no image";
  const Words words = {"predict", "run", "digits", "--batch-size", "2", "--logits", "l.npy", "--force"};
  const ProgramEnd end = place_.run(words);
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(end.out, AllOf(HasSubstr("\ndigits/0.png "), HasSubstr("\ndigits/8.png ")));
  EXPECT_EQ(std::ranges::count(end.out, '\n'), 1 + 1 + 5) << "checkpoint, one head, a row for each image:\n" << end.out;
  EXPECT_THAT(end.err, AllOf(HasSubstr("digits/1.png: cannot be opened"), HasSubstr("digits/7.png: cannot be opened"),
                             HasSubstr("digits/3.png: begins neither as a PNG nor as a JPEG"),
                             HasSubstr("gradring predict: images: 3 of 8 cannot be read"), HasSubstr("--broken skip")));
  EXPECT_EQ(logits("l.npy").size(), 50u) << "of the images that were read";
  const ProgramEnd skipped = place_.run(tests::joined(words, {"--broken", "skip"}));
  EXPECT_EQ(skipped.code, 0);
  EXPECT_EQ(skipped.out, end.out);
  EXPECT_THAT(skipped.err, HasSubstr("digits/3.png: begins neither"));
  EXPECT_EQ(json_of(words).size(), 5u) << "one array of several batches";
  for (const char* good : {"0", "2", "4", "6", "8"})
    std::filesystem::remove(place_.path("digits/" + std::string(good) + ".png"));
  const ProgramEnd none = place_.run(tests::joined(words, {"--broken", "skip", "--json"}));
  EXPECT_EQ(none.code, 4) << "nothing is predicted";
  EXPECT_EQ(none.out, "[]\n");
}

/// The last image is a pipe, to which this test writes once it has seen the results of those before.
TEST_F(Predict, PrintsEachBatchBeforeItReadsTheNext) {
  const std::string pipe = place_.path("pipe").string(), image = write_digit(1);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  tests::RunningProgram program(
      tests::in_shell(place_.gradring(predict({"--batch-size", "1", image, "pipe"})), R"(exec "$@" > seen)"));
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  std::string seen;
  while (seen.find("\n" + image) == seen.npos && !deadline.passed()) {
    sleep_for(std::chrono::milliseconds(20));
    if (std::filesystem::exists(place_.path("seen"))) seen = tests::text_of(place_.path("seen"));
  }
  UniqueFd writer(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK));
  ASSERT_TRUE(writer) << "the program reads the pipe no more: " << seen;
  EXPECT_EQ(write_all(writer.get(), tests::text_of(place_.path(image))), 0);
  writer.reset();
  EXPECT_EQ(program.wait().code, 0);
  EXPECT_THAT(tests::text_of(place_.path("seen")), AllOf(::testing::StartsWith(seen), HasSubstr("\npipe ")));
}

TEST_F(Predict, RejectsHostileImages) {
  WrittenPng huge{.width = 60'000, .height = 60'000, .rows = {1}};
  place_.folder().write("huge.png", huge.bytes());
  const ProgramEnd end = place_.run(predict({write_digit(0), "huge.png"}));
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(end.err, AllOf(HasSubstr("huge.png: has 60000 x 60000 pixels"), HasSubstr("make it smaller")));
  EXPECT_THAT(end.out, AllOf(HasSubstr("\ndigit-0-1.png "), Not(HasSubstr("huge"))));
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
