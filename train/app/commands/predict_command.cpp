// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/datasets/dataset_facts.h"
#include "data/datasets/open_folder.h"
#include "data/datasets/pack_images.h"
#include "data/files/byte_source.h"
#include "data/images/image.h"
#include "kernels/base/file.h"
#include "train/app/commands/commands.h"
#include "train/app/commands/trained_model.h"
#include "train/core/trainer/training_state.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/environment_error.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

struct PredictOptions {
  InferenceOptions inference;
  std::int64_t top = 3;
  bool invert = false;
};

CommandLine command_line(PredictOptions& options) {
  options.inference.given["data-dir"] = ".";  // required with most datasets; no file of it is read
  CommandLine line{
      .command = "gradring predict",
      .purpose = "classes that a checkpoint recognizes in image files",
      .usage = {"gradring predict RUN IMAGE|FOLDER... [OPTIONS]"},
      .options = inference_options(options.inference),
      .takes_words = true,
      .notes =
          "RUN is a run directory, a checkpoint or a file of weights. A folder stands for all .png, .jpg and .jpeg "
          "files in it and below it. Each image is scaled to the size and channels of the training samples; "
          "proportions are "
          "not kept. After a training on an image folder, it is resized and cropped as those of the training."};
  line.options.insert(
      line.options.begin() + 2,
      {option_of_training("dataset", "dataset whose classes were trained (default as in the checkpoint)",
                          options.inference.given),
       tta_option(options.inference.given),
       count_option("top", "most likely classes to show per image (default 3)", 1, options.top),
       switch_option("invert", "swap of light and dark, for dark digits on a light background", options.invert)});
  return line;
}

std::string suffix_of(const fs::path& path) {
  std::string suffix = path.extension().string();
  std::ranges::transform(suffix, suffix.begin(), [](unsigned char c) { return std::tolower(c); });
  return suffix;
}

bool is_jpeg(const fs::path& path) { return suffix_of(path) == ".jpg" || suffix_of(path) == ".jpeg"; }
bool is_image(const fs::path& path) { return suffix_of(path) == ".png" || is_jpeg(path); }

/// As those of the training.
std::vector<std::uint8_t> sample_of(const std::string& name, const TrainConfig& config, bool invert) {
  const data::DatasetFacts& set = *config.facts;
  if (set.name != data::kFolder)
    return data::to_sample(is_jpeg(name) ? data::read_image(name) : data::read_png(name), set.shape, invert);
  std::vector<std::uint8_t> pixels = data::decoded(name, dataset_spec(config).images);
  if (invert)
    for (std::uint8_t& value : pixels) value = static_cast<std::uint8_t>(255 - value);
  return pixels;
}

/// The images as a dataset whose labels are all 0.
data::InMemoryDataset read_images(const std::vector<std::string>& names, const TrainConfig& config, bool invert) {
  const data::DatasetFacts& set = *config.facts;
  data::InMemoryDataset::Contents contents{.name = "images",
                                           .shape = set.shape,
                                           .classes = set.classes(),
                                           .pixels = {},
                                           .labels = {},
                                           .class_names = set.class_names};
  for (const std::string& name : names) {
    const auto pixels = sample_of(name, config, invert);
    if (!invert && set.shape[2] == 1 && data::has_light_border(pixels, set.shape))
      print_to_stderr(
          fmt::format("{} has a light border, but {} is light on dark: it may need --invert\n", name, set.name));
    contents.pixels.insert(contents.pixels.end(), pixels.begin(), pixels.end());
    contents.labels.push_back(0);
  }
  return data::InMemoryDataset(std::move(contents));
}

/// A class and its probability.
struct Guess {
  std::size_t index = 0;
  std::string_view name;
  double probability = 0;
};

/// The most likely first; among equals, the first class.
std::vector<Guess> guesses(std::span<const float> logits, const data::DatasetFacts& set, std::int64_t top) {
  const std::vector<double> probabilities = probabilities_of(logits);
  std::vector<Guess> all;
  for (std::size_t i = 0; i < probabilities.size(); ++i) all.push_back({i, set.class_names[i], probabilities[i]});
  std::ranges::sort(all, {}, [](const Guess& guess) { return std::pair(-guess.probability, guess.index); });
  all.resize(std::min(all.size(), static_cast<std::size_t>(top)));
  return all;
}

/// An image, and its most likely classes.
struct Prediction {
  std::string image;
  std::vector<Guess> best;
};

/// A row for each image: its classes and their probabilities, the most likely first.
void print(const std::vector<Prediction>& predictions, const data::DatasetFacts& set) {
  std::size_t class_width = 5;
  for (const std::string& name : set.class_names) class_width = std::max(class_width, columns_of(name));
  TextTable table{.columns = {{.head = "image"}}, .gap = 2};
  for (std::size_t i = 0; i < predictions.front().best.size(); ++i) {
    table.columns.push_back({.head = padded(i == 0 ? "class" : fmt::format("{}.", i + 1), class_width)});
    table.columns.push_back({.head = "     %", .right_aligned = true});
  }
  for (const auto& [image, best] : predictions) {
    std::vector<std::string>& row = table.rows.emplace_back(1, image);
    for (const Guess& guess : best)
      row.insert(row.end(), {std::string(guess.name), fmt::format("{:.2f}", 100 * guess.probability)});
  }
  print_shown(table.text());
}

nlohmann::ordered_json to_json(const Prediction& prediction, const NamedTensors& by) {
  const auto& [image, best] = prediction;
  nlohmann::ordered_json json = {
      {"image", image}, {"class", best.front().name}, {"index", best.front().index}, {"checkpoint", by.from.string()}};
  for (const Guess& guess : best)
    json["probabilities"].push_back(
        {{"class", guess.name}, {"index", guess.index}, {"probability", guess.probability}});
  return json;
}

/// Whether an image in a folder is a file, or a link to one. False if it does not exist: it may have been removed since.
bool is_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::status_known(status))
    throw EnvironmentError(fmt::format("cannot read {}: {}", path.string(), error.message()));
  return fs::is_regular_file(status);
}

/// The files that words name: a folder stands for the images in and below it, in the order of their paths.
std::vector<std::string> image_files(const Words& words) {
  std::vector<std::string> names;
  for (const std::string& word : words) {
    std::error_code error;
    if (!fs::is_directory(word, error)) {
      names.push_back(word);
      continue;
    }
    std::vector<std::string> found;
    std::string at = word;
    for (fs::recursive_directory_iterator entry(word, error), end; !error && entry != end; entry.increment(error)) {
      at = entry->path().string();
      if (is_image(at) && is_file(at)) found.push_back(at);
    }
    if (error) throw EnvironmentError(fmt::format("cannot list {}: {}", at, error.message()));
    if (found.empty())
      throw data::DataError(word, "holds no .png, .jpg or .jpeg file", "name a folder of images, or images");
    std::ranges::sort(found);
    names.insert(names.end(), found.begin(), found.end());
  }
  return names;
}

void run(PredictOptions& options, Words words) {
  constexpr const char* kUsageLine = "gradring predict RUN IMAGE";
  CheckpointChoice& checkpoint = options.inference.checkpoint;
  if (checkpoint.path.empty() && !words.empty() && is_image(words.front()))
    throw UsageError(
        fmt::format("'{}' is an image: name a run directory or a checkpoint first: {}", words.front(), kUsageLine));
  take_path(checkpoint, words, kUsageLine);
  if (words.empty()) throw UsageError(fmt::format("name at least one image: {}", kUsageLine));
  const std::vector<std::string> names = image_files(words);
  InferenceSetting setting = prepare_inference(options.inference);
  const data::DatasetFacts& set = *setting.config.facts;
  check_sample_shape(*setting.tensors.contents.about, set.shape, setting.tensors.from);
  const data::InMemoryDataset images = read_images(names, setting.config, options.invert);
  const std::int64_t batch_size = std::min(setting.config.batch_size, images.size());
  const std::vector<float> logits =
      make_inference(setting, set.shape, images.classes(), batch_size)->run(images, setting.config.tta).logits;
  write_logits(options.inference, images.size(), logits);
  std::vector<Prediction> predictions;
  for (std::size_t i = 0; i < names.size(); ++i)
    predictions.push_back(
        {names[i],
         guesses(std::span(logits).subspan(i * set.class_names.size(), set.class_names.size()), set, options.top)});
  if (options.inference.json) {
    nlohmann::ordered_json results = nlohmann::ordered_json::array();
    for (const Prediction& each : predictions) results.push_back(to_json(each, setting.tensors));
    print_json(results);
    return;
  }
  print_text("{}\n", source_text(setting.tensors));
  print(predictions, set);
}

}  // namespace

const Command kPredictCommand =
    make_command<PredictOptions>("predict", "classes that a checkpoint recognizes in images");

}  // namespace gradring::train
