// SPDX-License-Identifier: Apache-2.0
// --dataset folder, by the program that was built.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "data/images/image.h"
#include "tests/data/support/written_png.h"
#include "tests/train/app/commands/support/run_directories.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::Bytes;
using tests::joined;
using tests::ProgramEnd;
using tests::Words;
using tests::WrittenPng;
namespace fs = std::filesystem;

class ImageFolders : public tests::RunDirectories {
 protected:
  void SetUp() override {
    if (data::png_library().empty()) GTEST_SKIP() << "built without libpng";
  }

  static Bytes png(std::uint32_t width, std::uint32_t height, std::uint8_t red) {
    WrittenPng image{.width = width, .height = height, .colour = WrittenPng::rgb, .rows = {}};
    for (std::uint32_t i = 0; i < width * height; ++i)
      image.rows.insert(image.rows.end(), {red, static_cast<std::uint8_t>(i), 100});
    return image.bytes();
  }
  void add(const std::string& path, const Bytes& bytes) const { place_.folder().write(path, bytes); }
  /// Reds and blacks of several sizes: 2 classes x 12 for training, x 4 for tests.
  void add_photos(const std::string& folder = "photos") const {
    for (std::uint32_t i = 0; i < 12; ++i)
      for (const auto& [name, red] : {std::pair("black", 20), std::pair("red", 220)}) {
        const Bytes image = png(9 + i, 12 - i / 2, static_cast<std::uint8_t>(red + static_cast<int>(i)));
        add(folder + "/train/" + name + "/" + std::to_string(i) + ".png", image);
        if (i < 4) add(folder + "/test/" + name + "/" + std::to_string(i) + ".png", image);
      }
  }
  ProgramEnd run_it(const Words& words) const {
    return place_.run(words, {{"GRADRING_CACHE_DIR", place_.path("cache").string()}});
  }
  ProgramEnd train(const Words& more, const std::string& run = "run") const {
    return run_it(joined({"train", "--dataset", "folder", "--data-dir", "photos", "--image-size", "28", "--epochs", "2",
                          "--device", "cpu", "--run-dir", run, "--progress", "plain"},
                         more));
  }
};

TEST_F(ImageFolders, TrainsToEqualWeightsOnOneAndTwoRanks) {
  add_photos();
  const ProgramEnd one = train({"--reproducible", "--global-batch", "8", "--batch-size", "4"}, "one");
  ASSERT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("folder: 24 training, 8 test samples"));
  EXPECT_THAT(one.err, HasSubstr("preparing the images of photos/train: 24 files"));
  const ProgramEnd two = train({"--reproducible", "--global-batch", "8", "--batch-size", "4", "--nprocs", "2"}, "two");
  ASSERT_EQ(two.code, 0) << two.err;
  EXPECT_THAT(two.err, Not(HasSubstr("preparing"))) << "the first start did";
  const auto weights = [&](const char* run) { return summary_in(place_.path(run))["parameters_sha256"]; };
  EXPECT_FALSE(weights("one").is_null());
  EXPECT_EQ(weights("one"), weights("two"));
}

TEST_F(ImageFolders, IsResumedEvaluatedAndRecognized) {
  add_photos();
  ASSERT_EQ(train({"--batch-size", "4", "--epochs", "1"}).code, 0);
  ASSERT_EQ(train({"--batch-size", "4", "--epochs", "4", "--lr", "0.003", "--resume", "auto"}).code, 0);
  const ProgramEnd smaller = run_it({"train", "--dataset", "folder", "--data-dir", "photos", "--image-size", "20",
                                     "--batch-size", "4", "--device", "cpu", "--run-dir", "run", "--resume", "auto"});
  EXPECT_EQ(smaller.code, 4) << smaller.err;
  EXPECT_THAT(smaller.err, HasSubstr("--image-size"));
  const ProgramEnd evaluated = run_it({"eval", "run", "--json"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_EQ(tests::parse_json(evaluated.out)["samples"], 8);
  fs::rename(place_.path("photos"), place_.path("elsewhere"));
  const ProgramEnd predicted = run_it({"predict", "run", "elsewhere/test/red", "--json"});
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  const auto results = tests::parse_json(predicted.out);
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0]["class"], "red") << "named without the training set: " << predicted.out;
  EXPECT_EQ(run_it({"export", "run", "--output", "model.onnx"}).code, 0);
}

/// Whoever leaves the resize out feeds the model other pixels than it was trained on.
TEST_F(ImageFolders, ExportsRecordHowImagesWereResized) {
  add_photos();
  for (const auto& [run, resize] : {std::pair("run", "31"), std::pair("plain", "0")}) {
    ASSERT_EQ(train({"--batch-size", "4", "--steps", "1", "--resize", resize}, run).code, 0);
    const std::string shorter = resize == std::string("0") ? "28" : resize;
    for (const char* extension : {".safetensors", ".pt", ".onnx"}) {
      const std::string file = run + std::string(extension), card = file + ".md";
      const ProgramEnd end = run_it({"export", run, "--output", file, "--card", card});
      ASSERT_EQ(end.code, 0) << end.err;
      std::string text = tests::text_of(place_.path(file));
      std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '"' || c == '\\'; });
      EXPECT_THAT(text, AllOf(HasSubstr("resize"), HasSubstr("bilinearwithantialiasing,asPillow'sBILINEAR"),
                              HasSubstr("center_crop"), HasSubstr("[28,28]"), HasSubstr("resize,center_crop"),
                              HasSubstr("RGB")));
      EXPECT_THAT(tests::text_of(place_.path(card)),
                  AllOf(HasSubstr("resized to " + shorter + " pixels (bilinear"), HasSubstr("middle 28 x 28 cut out")));
      if (extension == std::string(".onnx")) continue;
      EXPECT_THAT(text, HasSubstr("resize:" + shorter));
    }
  }
}

TEST_F(ImageFolders, IsEvaluatedOnTheValidationSetWithoutTestImages) {
  add_photos();
  fs::remove_all(place_.path("photos/test"));
  const ProgramEnd refused = train({"--batch-size", "4"});
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, HasSubstr("photos: holds neither a folder test nor val"));
  const ProgramEnd end = train({"--batch-size", "4", "--val-split", "0.25"});
  EXPECT_EQ(end.code, 0) << end.err;
}

TEST_F(ImageFolders, CacheIsListedAndRemoved) {
  add_photos();
  ASSERT_EQ(train({"--batch-size", "4", "--steps", "1"}).code, 0);
  const ProgramEnd listed = run_it({"data", "cache", "ls"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, AllOf(HasSubstr("photos/train"), HasSubstr("photos/test"), HasSubstr("28 x 28")));
  EXPECT_EQ(run_it({"data", "cache", "rm"}).code, 2);
  EXPECT_EQ(run_it({"data", "cache", "rm", "zz"}).code, 2);
  EXPECT_EQ(run_it({"data", "cache", "rm", "--all"}).code, 0);
  EXPECT_TRUE(fs::is_empty(place_.path("cache/images")));
  EXPECT_THAT(run_it({"data", "cache", "ls"}).out, HasSubstr("no images in"));
}

/// A folder that cannot be trained on: what is changed in a good one, the exit code, and a part of the message.
struct BadFolder {
  const char* what;
  std::function<void(const fs::path&)> change;
  int code;
  const char* message;
  Words options = {};
};

void write(const fs::path& path, const Bytes& bytes) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

Bytes with_size(std::uint32_t width, std::uint32_t height) {
  const Bytes rows = width == 0 ? Bytes() : Bytes{1, 2, 3};
  return WrittenPng{.width = width, .height = height, .colour = WrittenPng::rgb, .rows = rows}.bytes();
}

std::vector<BadFolder> bad_folders() {
  const auto writes = [](const std::string& name, const Bytes& bytes) {
    return [=](const fs::path& folder) { write(folder / name, bytes); };
  };
  const auto removes = [](const std::string& name) {
    return [=](const fs::path& folder) { fs::remove_all(folder / name); };
  };
  const std::string cat = "train/red/x.png";
  Bytes truncated = with_size(1, 1);
  truncated.resize(truncated.size() - 20);
  return {
      {"no folder", removes(""), 4, "photos: cannot be opened"},
      {"no training images", removes("train"), 4, "holds no folder train"},
      {"no test images", removes("test"), 4, "neither a folder test nor val"},
      {"one class", removes("train/red"), 4, "holds one folder, 'black': one class"},
      {"an empty class", [](const fs::path& at) { fs::create_directories(at / "train/green"); }, 4,
       "train/green: holds no .jpg, .jpeg or .png file"},
      {"images beside the classes only",
       [](const fs::path& at) {
         fs::remove_all(at / "train");
         fs::create_directories(at / "train");
         write(at / "train/1.png", with_size(1, 1));
       },
       4, "train: holds no folders"},
      {"another class in test",
       [](const fs::path& at) {
         fs::create_directories(at / "test/green");
         write(at / "test/green/1.png", with_size(1, 1));
       },
       4, "test/green: is a class that the training set lacks: it has black, red"},
      {"train is a file",
       [](const fs::path& at) {
         fs::remove_all(at / "train");
         write(at / "train", {1});
       },
       4, "train: cannot be listed (Not a directory)"},
      {"a circle of links", [](const fs::path& at) { fs::create_directory_symlink("..", at / "train/red/up"); }, 4,
       "is a link to a folder that it is in"},
      {"a link to nothing", [](const fs::path& at) { fs::create_symlink("nothing", at / "train/red/x.png"); }, 4,
       "red/x.png: cannot be opened"},
      {"an empty image", writes(cat, {}), 4, "red/x.png: is empty"},
      {"a GIF by another name", writes(cat, {'G', 'I', 'F', '8', '9', 'a', 0}), 4, "red/x.png: is a GIF"},
      {"a web page by another name", writes(cat, {'<', 'h', 't', 'm', 'l', '>'}), 4, "red/x.png: is a web page"},
      {"text by another name", writes(cat, {'h', 'e', 'l', 'l', 'o'}), 4, "begins neither as a PNG nor as a JPEG"},
      {"a truncated PNG", writes(cat, truncated), 4, "red/x.png: cannot be read as a PNG"},
      {"a bomb of 10^10 pixels", writes(cat, with_size(100'000, 100'000)), 4, "has 100000 x 100000 pixels"},
      {"a bomb of one row", writes(cat, with_size(0x7fffffff, 1)), 4, "red/x.png: "},
      {"a PNG of no pixels", writes(cat, with_size(0, 0)), 4, "red/x.png: cannot be read as a PNG"},
      {"a JPEG that ends", writes("train/red/x.jpg", {0xff, 0xd8, 0xff, 0xe0, 0, 16}), 4, "red/x.jpg: "},
      {"a class without readable images",
       [](const fs::path& at) {
         fs::create_directories(at / "train/green");
         write(at / "train/green/1.png", {1, 2, 3});
       },
       4,
       "train/green: holds no image that can be read",
       {"--broken", "skip"}},
      {"no image size", [](const fs::path&) {}, 2, "--image-size", {"--image-size", "0"}},
      {"a large image size", [](const fs::path&) {}, 2, "--image-size", {"--image-size", "100000"}},
      {"a crop out of less", [](const fs::path&) {}, 2, "--resize 4 is less than --image-size 28", {"--resize", "4"}},
      {"another response", [](const fs::path&) {}, 2, "--broken", {"--broken", "maybe"}},
      {"an image size of other data",
       [](const fs::path&) {},
       2,
       "--image-size, --resize and --broken require --dataset folder, found digits",
       {"--dataset", "digits"}},
      {"no data folder", [](const fs::path&) {}, 2, "name their folder with --data-dir", {"--data-dir", ""}},
  };
}

TEST_F(ImageFolders, BadOnesAreRejectedBeforeAnythingIsWritten) {
  for (const BadFolder& bad : bad_folders()) {
    SCOPED_TRACE(bad.what);
    fs::remove_all(place_.path("photos"));
    add_photos();
    bad.change(place_.path("photos"));
    const ProgramEnd end = train(joined({"--batch-size", "4"}, bad.options));
    EXPECT_EQ(end.code, bad.code) << end.err;
    EXPECT_THAT(end.err, HasSubstr(bad.message));
    EXPECT_FALSE(fs::exists(run() / "metrics.jsonl"));
  }
}

TEST_F(ImageFolders, AreTakenByCommandsThatDoNotTrain) {
  add_photos();
  add("photos/train/red/x.png", {});
  fs::remove_all(place_.path("photos/test"));
  const Words folder = {"--data-dir", "photos", "--image-size", "28", "--resize", "31"};
  const Words named = joined(folder, {"--dataset", "folder"});
  const ProgramEnd refused = run_it(joined({"data", "info", "folder"}, folder));
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("red/x.png: is empty"), HasSubstr("--broken skip")));
  const ProgramEnd info = run_it(joined({"data", "info", "--broken", "skip"}, named));
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_THAT(info.out, AllOf(HasSubstr("train  24 samples of [28, 28, 3], 2 classes of 12 to 12"),
                              HasSubstr("black 12, red 12"), Not(HasSubstr("test "))));
  EXPECT_EQ(run_it(joined({"data", "info", "folder"}, folder)).out, "");
  const ProgramEnd model = run_it(joined({"model", "show", "convnet"}, named));
  EXPECT_EQ(model.code, 0) << model.err;
  EXPECT_THAT(model.out, HasSubstr("convnet: images of 28 x 28 x 3, 2 classes\n"));
  for (const Words& command : {Words{"model", "show", "convnet", "--dataset", "mnist"}, Words{"data", "info", "mnist"},
                               Words{"bench", "compare", "--dataset", "mnist"}}) {
    const ProgramEnd end = run_it(joined(command, folder));
    EXPECT_EQ(end.code, 2) << end.out;
    EXPECT_THAT(end.err, HasSubstr("--image-size, --resize and --broken require --dataset folder, found mnist"));
  }
  const ProgramEnd listed =
      run_it(joined({"bench", "compare", "--list", "--nprocs", "1", "--batch-size", "4", "--broken", "skip"}, named));
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("1 rank x batch 4 of folder"));
}

/// One rank says it, in every command of several ranks.
TEST_F(ImageFolders, SayOnceWhatIsLeftOut) {
  add_photos();
  add("photos/train/red/x.png", {});
  const Words options = {"--dataset",    "folder", "--data-dir", "photos", "--image-size", "28", "--broken", "skip",
                         "--batch-size", "4",      "--device",   "cpu",    "--steps",      "10", "--nprocs", "2"};
  for (const char* command : {"train", "lr-find", "plan"}) {
    const ProgramEnd end = run_it(joined({command}, options));
    ASSERT_EQ(end.code, 0) << command << end.err;
    const std::string found = "left out: 1 of 25 images";
    EXPECT_THAT(end.err, HasSubstr(found)) << command;
    EXPECT_EQ(end.err.find(found), end.err.rfind(found)) << command << end.err;
  }
}

TEST_F(ImageFolders, SayThatASplitLeavesAClassEmpty) {
  add_photos();
  add("photos/train/blue/1.png", png(12, 12, 99));
  std::string said;
  for (int seed = 0; seed < 20 && said.empty(); ++seed) {
    const ProgramEnd end = train(
        {"--dry-run", "--val-split", "0.5", "--stratify", "off", "--batch-size", "4", "--seed", std::to_string(seed)});
    if (end.err.find("no samples of 1 of its 3 classes (blue)") != std::string::npos &&
        end.err.find("training set no samples") != std::string::npos)
      said = end.err;
  }
  EXPECT_THAT(said, HasSubstr("folder: --val-split leaves the training set no samples of 1 of its 3 classes (blue); "
                              "use --stratify on"));
  EXPECT_THAT(train({"--dry-run", "--val-split", "0.5", "--batch-size", "4"}).err,
              Not(HasSubstr("leaves the training set")));
}

TEST_F(ImageFolders, SkipsBrokenImagesAndNamesThemAllInTheLog) {
  add_photos();
  for (char name = 'a'; name < 'l'; ++name) add(std::string("photos/train/black/") + name + ".png", {});
  add("photos/train/red/x.png", with_size(100'000, 100'000));
  const ProgramEnd end = train({"--batch-size", "4", "--broken", "skip", "--steps", "1", "--nprocs", "2"});
  ASSERT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out, HasSubstr("24 training"));
  const std::string found = "photos/train: left out: 12 of 36 images cannot be read:";
  EXPECT_EQ(end.err.find(found), end.err.rfind(found)) << "by one rank: " << end.err;
  EXPECT_THAT(end.err,
              AllOf(HasSubstr(found), HasSubstr("black/j.png"), HasSubstr("..."), Not(HasSubstr("red/x.png"))));
  const std::string log = tests::text_of(run() / "logs/rank_0.log");
  EXPECT_THAT(log, AllOf(HasSubstr(found), HasSubstr("black/j.png"), HasSubstr("black/k.png: is empty"),
                         HasSubstr("red/x.png: has 100000 x 100000 pixels")));
  add("photos/test/red/x.png", {});
  EXPECT_EQ(run_it({"eval", "run", "--broken", "fail", "--device", "cpu"}).code, 4);
  EXPECT_EQ(run_it({"eval", "run", "--device", "cpu"}).code, 0) << "as in the checkpoint";
  EXPECT_EQ(run_it({"predict", "run", "photos/test/red", "--broken", "fail", "--device", "cpu"}).code, 4);
  const ProgramEnd predicted = run_it({"predict", "run", "photos/test/red", "--device", "cpu", "--json"});
  EXPECT_EQ(predicted.code, 0) << predicted.err;
  EXPECT_EQ(tests::parse_json(predicted.out).size(), 4u);
  EXPECT_THAT(predicted.err, HasSubstr("photos/test/red/x.png: is empty"));
  const ProgramEnd other = run_it({"eval", "run", "--dataset", "digits", "--device", "cpu"});
  EXPECT_THAT(other.err, Not(HasSubstr("require --dataset folder"))) << "options of the run, not of digits";
}

}  // namespace
}  // namespace gradring
