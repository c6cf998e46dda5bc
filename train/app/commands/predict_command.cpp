// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/datasets/dataset_facts.h"
#include "data/datasets/image_listing.h"
#include "data/datasets/open_folder.h"
#include "data/datasets/pack_images.h"
#include "data/files/byte_source.h"
#include "data/images/image.h"
#include "kernels/base/file.h"
#include "kernels/base/printable.h"
#include "train/app/commands/commands.h"
#include "train/app/commands/trained_model.h"
#include "train/core/trainer/training_state.h"
#include "train/options/exit_code.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/error.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

struct PredictOptions {
  InferenceOptions inference;
  std::int64_t top = 3;
  bool invert = false;
  std::string broken;  ///< a word of OnBroken; empty: as in the checkpoint
};

CommandLine command_line(PredictOptions& options) {
  options.inference.given["data-dir"] = ".";  // required with most datasets; no file of it is read
  options.inference.default_batch = "32";     // results appear after each batch
  CommandLine line{
      .command = "gradring predict",
      .purpose = "classes that a checkpoint recognizes in image files",
      .usage = {"gradring predict RUN IMAGE|FOLDER... [OPTIONS]"},
      .options = inference_options(options.inference),
      .takes_words = true,
      .notes =
          "RUN is a run directory, a checkpoint or a file of weights. A folder stands for the .png, .jpg and .jpeg "
          "files in it and below it, without hidden ones. Each image is scaled to the size and channels of the "
          "training samples; proportions are not kept. After a training on an image folder, it is resized and cropped "
          "as those of the training. Results are printed after each batch. An image that cannot be read is named, and "
          "ends the command with exit code 4 after all others."};
  line.options.insert(
      line.options.begin() + 2,
      {option_of_training("dataset", "dataset whose classes were trained (default as in the checkpoint)",
                          options.inference.given),
       tta_option(options.inference.given),
       choice_option("broken", kWords<OnBroken>,
                     "response to images that cannot be read, after the others; fail: exit code 4; skip: exit code 0 "
                     "if any can be read (default as in the checkpoint, or fail)",
                     options.broken),
       count_option("top", "most likely classes to show per image (default 3)", 1, options.top),
       switch_option("invert", "swap of light and dark, for dark digits on a light background", options.invert)});
  return line;
}

/// The image's pixels, prepared as those of the training.
std::vector<std::uint8_t> sample_of(const std::string& name, const TrainConfig& config, bool invert) {
  const data::DatasetFacts& set = *config.facts;
  if (set.name == data::kFolder) {
    std::vector<std::uint8_t> pixels = data::decoded(name, dataset_spec(config).images);
    if (invert) data::swap_light_and_dark(pixels, set.shape[2]);
    return pixels;
  }
  const bool with_alpha = set.shape[2] == 4;
  const data::Image image = data::read_image(name, with_alpha ? data::Alpha::keep : data::Alpha::drop);
  if (with_alpha && image.channels != 4)
    throw data::DataError(name, "is not transparent, and the model was trained on samples of 4 channels",
                          "save it as a PNG of red, green, blue and alpha");
  return data::to_sample(image, set.shape, invert);
}

/// Images of one batch that can be read.
struct Batch {
  std::vector<std::string> names;
  std::unique_ptr<data::Dataset> images;  ///< their labels are 0; null without images
};

/// Reads images, and names those that cannot be read on stderr.
///
/// Errors    DataError if the only image of the command, `is_only`, cannot be read.
Batch read_images(std::span<const std::string> names, bool is_only, const TrainConfig& config, bool invert) {
  const data::DatasetFacts& set = *config.facts;
  Batch batch;
  data::InMemoryDataset::Contents contents{.name = "images",
                                           .shape = set.shape,
                                           .classes = set.classes(),
                                           .pixels = {},
                                           .labels = {},
                                           .class_names = set.class_names};
  for (const std::string& name : names) try {
      const auto pixels = sample_of(name, config, invert);
      if (!invert && set.shape[2] == 1 && data::has_light_border(pixels, set.shape))
        print_to_stderr(
            fmt::format("{} has a light border, but {} is light on dark: it may need --invert\n", name, set.name));
      contents.pixels.insert(contents.pixels.end(), pixels.begin(), pixels.end());
      contents.labels.push_back(0);
      batch.names.push_back(name);
    } catch (const data::DataError& error) {
      if (is_only) throw;
      print_to_stderr(std::string(error.what()) + "\n");
    }
  if (!batch.names.empty()) batch.images = std::make_unique<data::InMemoryDataset>(std::move(contents));
  return batch;
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

nlohmann::ordered_json to_json(const Prediction& prediction, const NamedTensors& by) {
  const auto& [image, best] = prediction;
  nlohmann::ordered_json json = {
      {"image", image}, {"class", best.front().name}, {"index", best.front().index}, {"checkpoint", by.from.string()}};
  for (const Guess& guess : best)
    json["probabilities"].push_back(
        {{"class", guess.name}, {"index", guess.index}, {"probability", guess.probability}});
  return json;
}

/// Prints the predictions of batch after batch as one table, or as one JSON array.
class Printer {
 public:
  Printer(const NamedTensors& tensors, std::span<const std::string> names, const data::DatasetFacts& set, bool json)
      : tensors_(tensors), json_(json) {
    for (const std::string& name : names) name_width_ = std::max(name_width_, columns_of(printable(name)));
    for (const std::string& name : set.class_names) class_width_ = std::max(class_width_, columns_of(name));
  }

  void print(const std::vector<Prediction>& predictions) {
    std::string text = json_ ? array_of(predictions) : table_of(predictions);
    if (json_)  // "[", elements and "]" on lines of their own: each batch continues the array of those before it
      text = (begun_ ? "," : "[") + text.substr(1, text.size() - 3);
    else
      text = begun_ ? text.substr(text.find('\n') + 1) : source_text(tensors_) + "\n" + text;
    begun_ = true;
    print_shown(text);
    flush_standard_output();  // Programs that read a pipe see each batch, too.
  }
  void finish() const {
    if (json_) print_shown(begun_ ? "\n]\n" : "[]\n");
  }

 private:
  std::string array_of(const std::vector<Prediction>& predictions) const {
    nlohmann::ordered_json results = nlohmann::ordered_json::array();
    for (const Prediction& each : predictions) results.push_back(to_json(each, tensors_));
    return shown_json(results);
  }

  /// A row for each image: its classes and their probabilities, the most likely first.
  std::string table_of(const std::vector<Prediction>& predictions) const {
    TextTable table{.columns = {{.head = padded("image", name_width_)}}, .gap = 2};
    for (std::size_t i = 0; i < predictions.front().best.size(); ++i) {
      table.columns.push_back({.head = padded(i == 0 ? "class" : fmt::format("{}.", i + 1), class_width_)});
      table.columns.push_back({.head = "     %", .right_aligned = true});
    }
    for (const auto& [image, best] : predictions) {
      std::vector<std::string>& row = table.rows.emplace_back(1, image);
      for (const Guess& guess : best)
        row.insert(row.end(), {std::string(guess.name), fmt::format("{:.2f}", 100 * guess.probability)});
    }
    return table.text();
  }

  const NamedTensors& tensors_;
  const bool json_;
  std::size_t name_width_ = 5, class_width_ = 5;
  bool begun_ = false;
};

/// The files that words name: a folder stands for its images.
std::vector<std::string> image_files(const Words& words) {
  std::vector<std::string> names;
  for (const std::string& word : words) {
    std::error_code error;
    if (!fs::is_directory(word, error)) {
      names.push_back(word);
      continue;
    }
    const data::ImageListing listing = data::list_images(word);
    if (listing.others > 0) print_to_stderr(word + ": " + data::describe_others(listing) + "\n");
    for (const data::ImageFile& file : listing.files) names.push_back((listing.folder / file.path).string());
  }
  return names;
}

/// Images have one, three or four channels; models of arrays may have others.
void check_channels(const InferenceSetting& setting) {
  if (const std::int64_t channels = setting.config.facts->shape[2]; channels != 1 && channels != 3 && channels != 4)
    throw CheckpointError(setting.tensors.from,
                          fmt::format("was trained on samples of {} channels, but images have 1, 3 or 4", channels),
                          "evaluate arrays with gradring eval");
}

void run(PredictOptions& options, Words words) {
  constexpr const char* kUsageLine = "gradring predict RUN IMAGE";
  CheckpointChoice& checkpoint = options.inference.checkpoint;
  if (checkpoint.path.empty() && !words.empty() && data::is_image_name(words.front()))
    throw UsageError(
        fmt::format("'{}' is an image: name a run directory or a checkpoint first: {}", words.front(), kUsageLine));
  take_path(checkpoint, words, kUsageLine);
  if (words.empty()) throw UsageError(fmt::format("name at least one image: {}", kUsageLine));
  const std::vector<std::string> names = image_files(words);
  InferenceSetting setting = prepare_inference(options.inference);
  const TrainConfig& config = setting.config;
  const data::DatasetFacts& set = *config.facts;
  check_sample_shape(*setting.tensors.contents.about, set.shape, setting.tensors.from);
  check_channels(setting);
  const std::int64_t batch_size = std::min(config.batch_size, std::ssize(names));
  const auto inference = make_inference(setting, set.shape, set.classes(), batch_size);
  Printer printer(setting.tensors, names, set, options.inference.json);
  std::vector<float> logits;  // of all images
  for (std::span<const std::string> rest = names; !rest.empty();) {
    const auto count = std::min(rest.size(), static_cast<std::size_t>(batch_size));
    const Batch batch = read_images(rest.first(count), names.size() == 1, config, options.invert);
    rest = rest.subspan(count);
    if (!batch.images) continue;
    const std::vector<float> found = inference->run(*batch.images, config.tta).logits;
    std::vector<Prediction> predictions;
    for (std::size_t i = 0; i < batch.names.size(); ++i)
      predictions.push_back(
          {batch.names[i],
           guesses(std::span(found).subspan(i * set.class_names.size(), set.class_names.size()), set, options.top)});
    printer.print(predictions);
    logits.insert(logits.end(), found.begin(), found.end());
  }
  printer.finish();
  const std::int64_t read = std::ssize(logits) / set.classes(), broken = std::ssize(names) - read;
  if (read > 0) write_logits(options.inference, read, logits);
  const bool skips = options.broken.empty() ? config.on_broken == OnBroken::skip : options.broken == "skip";
  if (broken == 0 || (skips && read > 0)) return;
  throw data::DataError("images", fmt::format("{} of {} cannot be read", broken, names.size()),
                        "replace or remove them, or leave them out with --broken skip");
}

}  // namespace

const Command kPredictCommand =
    make_command<PredictOptions>("predict", "classes that a checkpoint recognizes in images");

}  // namespace gradring::train
