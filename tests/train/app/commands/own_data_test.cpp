// SPDX-License-Identifier: Apache-2.0
// Data sets of the user's own: arrays and IDX files, by the program that was built.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "data/images/image.h"
#include "tests/data/support/written_idx.h"
#include "tests/data/support/written_npy.h"
#include "tests/data/support/written_png.h"
#include "tests/train/app/commands/support/run_directories.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::Bytes;
using tests::joined;
using tests::npy_bytes;
using tests::ProgramEnd;
using tests::Words;

constexpr std::size_t kPixels = 28 * 28 * 3;

class OwnData : public tests::RunDirectories {
 protected:
  OwnData() {
    write_split("train", {40, 15, 5});
    write_split("test", {6, 4, 2});
    const std::string names = "rose\ntulip\nT-shirt/top\n";
    place_.folder().write("own/class_names.txt", Bytes(names.begin(), names.end()));
  }

  /// Images of one colour with noise; so many of each class.
  void write_split(const std::string& split, const std::vector<int>& of_class) const {
    Bytes pixels, labels;
    for (std::size_t label = 0; label < of_class.size(); ++label)
      for (int i = 0; i < of_class[label]; ++i) {
        labels.push_back(static_cast<std::uint8_t>(label));
        for (std::size_t k = 0; k < kPixels; ++k)
          pixels.push_back(static_cast<std::uint8_t>((k % 3 == label ? 150 : 20) + (k * 7 + labels.size() * 13) % 50));
      }
    const std::string count = std::to_string(labels.size());
    place_.folder().write("own/" + split + "_images.npy", npy_bytes("|u1", "(" + count + ", 28, 28, 3)", pixels));
    place_.folder().write("own/" + split + "_labels.npy", npy_bytes("|u1", "(" + count + ",)", labels));
  }
  static Words train(const Words& more = {}) {
    return joined({"train", "--dataset", "arrays", "--data-dir", "own", "--run-dir", "run", "--epochs", "2",
                   "--threads", "1", "--batch-size", "5", "--device", "cpu"},
                  more);
  }
  void expect_success(const Words& words) const {
    const ProgramEnd end = place_.run(words);
    ASSERT_EQ(end.code, 0) << end.err;
  }
  json meta(int step) const { return tests::parse_json(tests::text_of(step_folder(step) / "meta.json")); }
  json printed(const Words& words) const {
    const ProgramEnd end = place_.run(words);
    EXPECT_EQ(end.code, 0) << end.err;
    return tests::try_parse_json(end.out);
  }
};

/// The means and deviations of the three channels, by a plain sum.
std::pair<std::vector<double>, std::vector<double>> statistics(const std::string& file) {
  const std::size_t begin = file.find('\n') + 1;
  std::vector<double> mean(3), std(3);
  const auto pixel = [&](std::size_t i) {
    return static_cast<double>(static_cast<unsigned char>(file[begin + i])) / 255;
  };
  const std::size_t count = file.size() - begin;
  for (std::size_t i = 0; i < count; ++i) mean[i % 3] += pixel(i) * 3 / static_cast<double>(count);
  for (std::size_t i = 0; i < count; ++i)
    std[i % 3] += std::pow(pixel(i) - mean[i % 3], 2) * 3 / static_cast<double>(count);
  for (double& value : std) value = std::sqrt(value);
  return {mean, std};
}

TEST_F(OwnData, IsRecordedWithTheRun) {
  expect_success(train());
  const json dataset = meta(24)["about"]["dataset"];
  EXPECT_EQ(dataset["name"], "arrays");
  EXPECT_EQ(dataset["shape"], json({28, 28, 3}));
  EXPECT_EQ(dataset["class_names"], json({"rose", "tulip", "T-shirt/top"}));
  const auto [mean, std] = statistics(tests::text_of(place_.path("own/train_images.npy")));
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(dataset["mean"][c].get<double>(), mean[c], 1e-6);
    EXPECT_NEAR(dataset["std"][c].get<double>(), std[c], 1e-6);
  }
  const std::string config = tests::text_of(run() / "config.resolved.toml");
  EXPECT_THAT(config, AllOf(HasSubstr("dataset = \"arrays\"\n"), HasSubstr("normalize = \"0.")));
  expect_config_is_accepted("run/config.resolved.toml");
}

/// Evaluation, prediction and export need the checkpoint only: data.meta says how pixels are normalized.
TEST_F(OwnData, IsNotNeededToUseTheModel) {
  expect_success(train({"--epochs", "6", "--lr", "0.003"}));
  const json evaluated = printed({"eval", "run", "--json", "--device", "cpu"});
  EXPECT_GE(evaluated["accuracy"].get<double>(), 0.9) << "colours tell the classes apart";
  EXPECT_NEAR(evaluated["loss"].get<double>(), summary_in(run())["loss"].get<double>(), 1e-5);
  std::filesystem::rename(place_.path("own"), place_.path("gone"));
  if (!data::png_library().empty()) {
    tests::WrittenPng png{.width = 28, .height = 28, .colour = tests::WrittenPng::rgb, .rows = {}};
    for (std::size_t k = 0; k < kPixels; ++k) png.rows.push_back(k % 3 == 1 ? 175 : 45);
    place_.folder().write("green.png", png.bytes());
    EXPECT_EQ(printed({"predict", "run", "green.png", "--json", "--device", "cpu"})[0]["class"], "tulip");
  }
  expect_success({"export", "run", "--output", "m.onnx"});
  EXPECT_THAT(tests::text_of(place_.path("m.onnx")), HasSubstr("T-shirt/top"));
  EXPECT_EQ(place_.run({"eval", "run"}).code, 4) << "this needs the test set";
}

/// Trains on random samples of `channels` channels: own/test_images.npy has two, which are returned.
class ManyChannels : public OwnData {
 protected:
  Bytes train_on(int channels) const {
    const auto sample_bytes = static_cast<std::size_t>(20 * 17 * channels);
    Bytes pixels(4 * sample_bytes);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * i / 7 % 251);
    for (const auto& [split, count] : {std::pair("train", 4), std::pair("test", 2)}) {
      pixels.resize(static_cast<std::size_t>(count) * sample_bytes);
      const std::string shape = fmt::format("({}, 20, 17, {})", count, channels);
      place_.folder().write(fmt::format("own/{}_images.npy", split), npy_bytes("|u1", shape, pixels));
      Bytes labels = {0, 1, 2, 1};
      labels.resize(static_cast<std::size_t>(count));
      place_.folder().write(fmt::format("own/{}_labels.npy", split),
                            npy_bytes("|u1", fmt::format("({},)", count), labels));
    }
    expect_success({"train", "--dataset", "arrays", "--data-dir", "own", "--model", "lenet5", "--steps", "1",
                    "--batch-size", "2", "--run-dir", "run", "--device", "cpu"});
    return pixels;
  }
  /// A PNG of 17 x 20 pixels.
  void write_png(const std::string& name, tests::WrittenPng::Colour colour, const Bytes& rows) const {
    place_.folder().write(name, tests::WrittenPng{.width = 17, .height = 20, .colour = colour, .rows = rows}.bytes());
  }
};

TEST_F(ManyChannels, FourAreThoseOfATransparentPng) {
  if (data::png_library().empty()) GTEST_SKIP() << "built without libpng";
  const Bytes pixels = train_on(4);
  write_png("a.png", tests::WrittenPng::rgba, Bytes(pixels.begin(), pixels.begin() + std::ssize(pixels) / 2));
  write_png("b.png", tests::WrittenPng::rgba, Bytes(pixels.begin() + std::ssize(pixels) / 2, pixels.end()));
  expect_success({"eval", "run", "--logits", "evaluated.npy", "--device", "cpu"});
  expect_success({"predict", "run", "a.png", "b.png", "--logits", "predicted.npy", "--device", "cpu"});
  EXPECT_EQ(tests::text_of(place_.path("predicted.npy")), tests::text_of(place_.path("evaluated.npy")));
  write_png("rgb.png", tests::WrittenPng::rgb, Bytes(17 * 20 * 3, 9));
  const ProgramEnd opaque = place_.run({"predict", "run", "rgb.png"});
  EXPECT_EQ(opaque.code, 4);
  EXPECT_THAT(opaque.err, HasSubstr("rgb.png: is not transparent, and the model was trained on samples of 4 channels"));
}

TEST_F(ManyChannels, TwoAreNoImage) {
  train_on(2);
  write_png("grey_alpha.png", tests::WrittenPng::grey_alpha, Bytes(17 * 20 * 2, 9));
  const ProgramEnd end = place_.run({"predict", "run", "grey_alpha.png"});
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(end.err, AllOf(HasSubstr("was trained on samples of 2 channels, but images have 1, 3 or 4"),
                             HasSubstr("gradring eval"), ::testing::Not(HasSubstr(".cpp"))));
}

TEST_F(OwnData, HasTheSameLossesOnOneAndTwoRanks) {
  const Words same = {"--global-batch", "10", "--reproducible", "--sampler", "balanced", "--val-split", "0.2"};
  expect_success(train(same));
  expect_success(train(joined({"--nprocs", "2", "--run-dir", "two"}, same)));
  EXPECT_EQ(summary_in(run())["parameters_sha256"], summary_in(place_.path("two"))["parameters_sha256"]);
  expect_success(train(joined({"--epochs", "1", "--run-dir", "half"}, same)));
  expect_success(train(joined({"--epochs", "2", "--run-dir", "half", "--resume", "auto", "--nprocs", "2"}, same)));
  EXPECT_EQ(summary_in(run())["parameters_sha256"], summary_in(place_.path("half"))["parameters_sha256"]);
}

TEST_F(OwnData, HoldsOutSamplesOfAllClasses) {
  expect_success(train({"--val-split", "0.2", "--run-dir", "all"}));
  expect_success(train({"--val-split", "0.2", "--stratify", "off", "--run-dir", "some"}));
  for (const char* run : {"all", "some"}) {
    const json recorded = summary_in(place_.path(run))["validation_accuracy"];
    const json found = printed({"eval", run, "--split", "validation", "--json", "--device", "cpu"});
    EXPECT_EQ(found["accuracy"], recorded) << "the same samples";
    EXPECT_EQ(found["samples"], 12);
  }
  const ProgramEnd end = place_.run(train({"--val-split", "0.2", "--run-dir", "some", "--resume", "auto"}));
  EXPECT_EQ(end.code, 2) << end.err;
  EXPECT_THAT(end.err, HasSubstr("--stratify"));
}

/// As an image folder.
TEST_F(OwnData, NeedsNoTestFilesWithAValidationSet) {
  const std::filesystem::path own = place_.path("own");
  std::filesystem::remove(own / "test_images.npy");
  EXPECT_THAT(place_.run(train({"--val-split", "0.2"})).err, HasSubstr("own: holds no test_images.npy"))
      << "the labels are there";
  std::filesystem::remove(own / "test_labels.npy");
  EXPECT_THAT(place_.run(train()).err, HasSubstr("--val-split"));
  expect_success(train({"--val-split", "0.2"}));
  EXPECT_EQ(summary_in(run())["accuracy"], summary_in(run())["validation_accuracy"]);
  expect_success({"report", "run", "-o", "report.html"});
  EXPECT_THAT(tests::text_of(place_.path("report.html")), HasSubstr("on the 12 validation samples of arrays"));
  const json evaluated = printed({"eval", "run", "--json"});
  EXPECT_EQ(evaluated["split"], "validation");
  EXPECT_EQ(evaluated["samples"], 12);
  EXPECT_EQ(place_.run({"eval", "run", "--split", "test"}).code, 4);
}

TEST_F(OwnData, IsFoundWhereTheTrainingHadItWhateverTheVariableSays) {
  expect_success(train());
  const tests::Workplace::Variables elsewhere = {{"GRADRING_DATA_DIR", place_.path("data").string()}};
  EXPECT_EQ(place_.run({"eval", "run"}, elsewhere).code, 0);
  EXPECT_EQ(place_.run({"report", "run", "-o", "report.html"}, elsewhere).code, 0);
  EXPECT_THAT(tests::text_of(place_.path("report.html")), HasSubstr("on the 12 test samples of arrays"));
}

TEST_F(OwnData, KeepsNormalizationAndClassesInAResume) {
  expect_success(train({"--normalize", "0.25:0.5"}));
  const ProgramEnd other = place_.run(train({"--resume", "auto", "--epochs", "3"}));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("resume with --normalize 0.25:0.5"));
  expect_success(train({"--resume", "auto", "--epochs", "3", "--normalize", "0.25:0.5"}));
  const std::string names = "rose\ntulip\ndaisy\n";
  place_.folder().write("own/class_names.txt", Bytes(names.begin(), names.end()));
  for (const Words& words : {train({"--resume", "auto", "--epochs", "4", "--normalize", "0.25:0.5"}),
                             Words{"eval", "run", "--device", "cpu"}}) {
    const ProgramEnd end = place_.run(words);
    EXPECT_EQ(end.code, 4);
    EXPECT_THAT(end.err, HasSubstr("class 2 is T-shirt/top, but the data here has 3 classes, of which it is daisy"));
  }
}

TEST_F(OwnData, OfAChannelWithOneValueIsRemarkedUpon) {
  std::string images = tests::text_of(place_.path("own/train_images.npy"));
  for (std::size_t i = images.find('\n') + 3; i < images.size(); i += 3) images[i] = '\xff';  // the third, as an alpha
  place_.folder().write("own/train_images.npy", Bytes(images.begin(), images.end()));
  const ProgramEnd end = place_.run(train());
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.out + end.err, HasSubstr("channel 3 of 3 has one value in all training images"));
  EXPECT_THAT(end.out + end.err, Not(HasSubstr("channel 1 of 3")));
}

/// Each way to a training, and the one that only checks.
TEST_F(OwnData, WithOneValueToNormalizeIsRejectedBeforeTheFirstStep) {
  std::ofstream(place_.path("points.toml"))
      << "layers = [{ conv2d = 'conv', out = 4, kernel = 3 }, { global_avg_pool2d = 'pool' }, { batch_norm2d = 'bn' },"
         " { flatten = 'flatten' }, { linear = 'fc', out = 'classes' }]";
  const Words last = {"--model", "points.toml", "--batch-size", "59"};  // of 60 samples
  for (Words words : {train(last), train(joined(last, {"--dry-run"})), train(joined(last, {"--ema", "0.9"}))}) {
    for (const char* command : {"train", "lr-find", "plan"}) {
      if (command != std::string("train") && words.back() == "--dry-run") continue;
      words.front() = command;
      const ProgramEnd end = place_.run(words);
      EXPECT_EQ(end.code, 2) << command;
      EXPECT_THAT(end.err, AllOf(HasSubstr("batch normalization bn has 1 value per channel in step 2 of an epoch"),
                                 HasSubstr("another --batch-size, --sync-batchnorm on several ranks")));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(run()));
  expect_success(train({"--model", "points.toml", "--batch-size", "1", "--nprocs", "2", "--sync-batchnorm"}));
}

TEST_F(OwnData, IsRejectedBeforeAnythingIsWritten) {
  place_.folder().write("few/class_names.txt", {});
  place_.folder().write("empty/file", {});
  const std::pair<Words, std::pair<int, const char*>> bad[] = {
      {train({"--data-dir", "empty"}), {4, "empty: holds no train_images.npy"}},
      {train({"--data-dir", "few", "--nprocs", "2"}), {4, "few: holds no train_images.npy"}},
      {train({"--data-dir", "absent"}), {4, "absent: is not a folder"}},
      {train({"--data-dir", ""}), {2, "--dataset arrays reads your files: name their folder with --data-dir"}},
      {train({"--dataset", "idx"}), {4, "holds no train-images-idx3-ubyte"}},
      {train({"--dataset", "array"}), {2, "arrays"}},
      {train({"--normalize", "mean"}), {2, "must be auto, half, dataset, or means"}},
      {train({"--normalize", "0.1,0.2:0.5", "--dataset", "digits"}), {2, "samples of digits have 1 channel"}},
      {train({"--normalize", "0.1:0", "--dataset", "digits"}), {2, "standard deviations"}}};
  for (const auto& [words, expected] : bad) {
    const ProgramEnd end = place_.run(words);
    EXPECT_EQ(end.code, expected.first) << end.err;
    EXPECT_THAT(end.err, HasSubstr(expected.second));
  }
  EXPECT_THAT(place_.left(), ElementsAre("empty", "few", "own")) << "no run directory";
}

TEST_F(OwnData, MayBeAnyIdxFiles) {
  const std::filesystem::path folder = "letters";
  place_.folder().write(folder / "emnist-train-images-idx3-ubyte",
                        tests::idx_bytes({40, 28, 28}, tests::counting(40 * 784)));
  Bytes labels(40);
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint8_t>(i % 26);
  place_.folder().write(folder / "emnist-train-labels-idx1-ubyte", tests::idx_bytes({40}, labels));
  place_.folder().write(folder / "emnist-test-images-idx3-ubyte",
                        tests::idx_bytes({5, 28, 28}, tests::counting(5 * 784)));
  place_.folder().write(folder / "emnist-test-labels-idx1-ubyte", tests::idx_bytes({5}, {0, 1, 2, 3, 25}));
  expect_success(train({"--dataset", "idx", "--data-dir", "letters"}));
  EXPECT_EQ(meta(16)["about"]["dataset"]["class_names"].size(), 26u);
  const ProgramEnd info = place_.run({"data", "info", "idx", "--data-dir", "letters"});
  EXPECT_THAT(info.out, HasSubstr("40 samples of [28, 28, 1], 26 classes of 1 to 2 samples each"));
  for (const char* what : {"images-idx3", "labels-idx1"})
    std::filesystem::remove(place_.path(folder / fmt::format("emnist-test-{}-ubyte", what)));
  expect_success(train({"--dataset", "idx", "--data-dir", "letters", "--val-split", "5", "--run-dir", "held"}));
}

}  // namespace
}  // namespace gradring
