// SPDX-License-Identifier: Apache-2.0
#include "train/cli/predict_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "data/datasets/in_memory_dataset.h"
#include "data/datasets/known_set.h"
#include "data/images/png.h"
#include "data/images/to_sample.h"
#include "kernels/runtime/write_all.h"
#include "train/cli/bench_options.h"
#include "train/cli/inference_options.h"
#include "train/cli/print_json.h"
#include "train/cli/run_command.h"
#include "train/config/usage_error.h"
#include "train/inference/inference.h"
#include "train/launch/exit_code.h"
#include "train/precision/precision.h"
#include "train/trainer/sample_shape.h"

namespace gradring::train {
namespace {

constexpr const char* kHead =
    "gradring predict: what a checkpoint sees in images\n\n"
    "  gradring predict --checkpoint PATH [options] IMAGE.png ...\n\n"
    "Each image is brought to the size and the channels that were trained on, whatever its proportions.\n\n"
    "Options; in brackets the default:\n";

struct Options {
  InferenceOptions inference;
  std::int64_t top = 3;
  bool invert = false;
};

CommandLine command_line(Options& options) {
  options.inference.given["data-dir"] = ".";  // asked for with most data sets; of none a file is read here
  CommandLine line{.command = "gradring predict", .options = inference_options(options.inference), .takes_words = true};
  line.options.insert(
      line.options.begin() + 1,
      {option_of_training("dataset", "whose classes were trained [what the checkpoint says]", options.inference.given),
       count_option("top", "classes that are named of each image [3]", 1, options.top),
       CommandOption{.name = "invert",
                     .letter = 0,
                     .value = {},
                     .help = "swap light and dark, for dark digits on a light ground",
                     .read = set_switch("invert", options.invert)}});
  return line;
}

/// The images as a data set without answers: every label is 0.
data::InMemoryDataset read_images(const std::vector<std::string>& names, const data::KnownSet& set, bool invert) {
  data::InMemoryDataset::Contents contents{.name = "images",
                                           .shape = set.sample,
                                           .classes = static_cast<int>(set.classes.size()),
                                           .pixels = {},
                                           .labels = {}};
  for (const std::string& name : names) {
    const auto pixels = data::to_sample(data::read_png(name), set.sample, invert);
    if (!invert && set.sample[2] == 1 && data::has_light_border(pixels, set.sample))
      print_to_stderr(fmt::format(
          "{}: is light around its border, and {} is light on dark: --invert may be what it needs\n", name, set.name));
    contents.pixels.insert(contents.pixels.end(), pixels.begin(), pixels.end());
    contents.labels.push_back(0);
  }
  return data::InMemoryDataset(std::move(contents));
}

/// One class and how sure the model is of it.
struct Guess {
  std::size_t index = 0;
  std::string_view name;
  double probability = 0;
};

/// The likeliest first; of equals, the first class.
std::vector<Guess> guesses(std::span<const float> logits, const data::KnownSet& set, std::int64_t top) {
  const std::vector<double> probabilities = probabilities_of(logits);
  std::vector<Guess> all;
  for (std::size_t i = 0; i < probabilities.size(); ++i) all.push_back({i, set.classes[i], probabilities[i]});
  std::ranges::sort(all, {}, [](const Guess& guess) { return std::pair(-guess.probability, guess.index); });
  all.resize(std::min(all.size(), static_cast<std::size_t>(top)));
  return all;
}

void print(const std::string& image, const std::vector<Guess>& best) {
  std::string rest;
  for (std::size_t i = 1; i < best.size(); ++i)
    rest += fmt::format("   {} {:.2f} %", best[i].name, 100 * best[i].probability);
  fmt::print("{}: {} ({:.2f} %){}\n", image, best.front().name, 100 * best.front().probability, rest);
}

nlohmann::ordered_json to_json(const std::string& image, const std::vector<Guess>& best) {
  nlohmann::ordered_json json = {{"image", image}, {"class", best.front().name}, {"index", best.front().index}};
  for (const Guess& guess : best)
    json["probabilities"].push_back(
        {{"class", guess.name}, {"index", guess.index}, {"probability", guess.probability}});
  return json;
}

int run(std::span<const std::string> args) {
  Options options;
  const CommandLine line = command_line(options);
  const CommandWords words = read_command_line(line, args);
  if (words.help) {
    fmt::print("{}{}", kHead, help_of(line.options));
    return kOk;
  }
  if (words.words.empty()) throw UsageError("name at least one image: gradring predict --checkpoint PATH IMAGE.png");
  data::require_png();
  InferenceSetting setting = prepare_inference(options.inference);
  const data::KnownSet& set = data::known_set(setting.config.dataset);
  check_sample_shape(setting.tensors.contents.about, set.sample, setting.tensors.from);
  const data::InMemoryDataset images = read_images(words.words, set, options.invert);
  Inference inference({.model = setting.config.model,
                       .sample = set.sample,
                       .classes = images.classes(),
                       .batch_size = std::min(setting.config.batch_size, images.size()),
                       .precision = precision_named(setting.config.precision, setting.compute.device->id())},
                      std::move(setting.tensors.contents.model), setting.tensors.from, setting.compute);
  const std::vector<float> logits = inference.run(images).logits;
  write_logits(options.inference, images.size(), logits);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < words.words.size(); ++i) {
    const auto best = guesses(std::span(logits).subspan(i * set.classes.size(), set.classes.size()), set, options.top);
    options.inference.json ? results.push_back(to_json(words.words[i], best)) : print(words.words[i], best);
  }
  if (options.inference.json) print_json(results);
  return kOk;
}

}  // namespace

int predict_main(std::span<const std::string> args) {
  return run_command("gradring predict", [args] { return run(args); });
}

}  // namespace gradring::train
