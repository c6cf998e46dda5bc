// SPDX-License-Identifier: Apache-2.0
#include "train/app/export/exported_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <variant>
#include <vector>

#include "train/core/trainer/parameter_tensors.h"
#include "train/records/checkpoint/checkpoint.h"
#include "train/view/page/markdown.h"

namespace gradring::train {
namespace {

using markdown::code;
using markdown::plain;
using Rows = std::vector<std::vector<std::string>>;

std::string torch_module(const nn::Layer& layer) {
  return std::visit([](const auto& one) { return one.torch_module(); }, layer);
}

std::int64_t parameter_count(const nn::Model& model) {
  std::int64_t count = 0;
  for (const nn::Parameter& parameter : nn::parameters_of(model)) count += parameter.shape.elements();
  return count;
}

std::string layers(const nn::Model& model) {
  Rows rows = {{"layer", "as a PyTorch module"}};
  for (const nn::NamedLayer& layer : model.layers) rows.push_back({code(layer.name), code(torch_module(layer.layer))});
  return markdown::table(rows);
}

std::string input_section(const ModelFacts& facts) {
  const kernels::Shape& sample = facts.model.sample;
  std::string labels;
  for (std::size_t i = 0; i < facts.labels.size(); ++i)
    labels += fmt::format("{}{}: {}", i > 0 ? ", " : "", i, plain(facts.labels[i]));
  std::string from_files;
  if (facts.images)
    from_files = fmt::format(
        "* From an image file: the orientation in EXIF is applied, the image converted to RGB, its shorter side\n"
        "  resized to {} pixels ({}), and the middle {} x {} cut out.\n",
        facts.images->resize, data::kInterpolation, facts.images->size, facts.images->size);
  return fmt::format(
      "## Input and output\n\n"
      "* Images of {} x {} pixels with {} channel{}, values 0 to 255.\n{}"
      "* Preprocessing: `(pixels / 255 - mean) / std`, mean {}, std {}, one value per channel. The ONNX\n"
      "  export contains it and takes uint8 [N, {}, {}, {}]; the weights alone expect its result, float32\n"
      "  [N, {}, {}, {}]. Other constants change the results.\n"
      "* Output: {} logits, in the order of the labels ({}).\n\n",
      sample[0], sample[1], sample[2], sample[2] == 1 ? "" : "s", from_files, fmt::join(facts.mean, ", "),
      fmt::join(facts.std, ", "), sample[0], sample[1], sample[2], sample[2], sample[0], sample[1], facts.labels.size(),
      labels);
}

const RunHeader* header_of(const CardContents& card) {
  return card.history && !card.history->headers.empty() ? &card.history->headers.back().record : nullptr;
}

std::string data_section(const CardContents& card) {
  std::string text = fmt::format("## Data\n\nTrained on {}", code(card.facts.dataset));
  if (const RunHeader* header = header_of(card))
    text += fmt::format(", {} training samples; {} test samples", header->train_samples, header->test_samples);
  return text + ".\n\n";
}

void add_metrics(Rows& rows, const EvalRecord& eval, bool averaged) {
  const double accuracy = averaged ? eval.ema_accuracy.value() : eval.accuracy;
  const double loss = averaged ? eval.ema_loss.value_or(eval.loss) : eval.loss;
  rows.push_back(
      {eval.split, fmt::format("{:.2f} %", 100 * accuracy), fmt::format("{:.6f}", loss), std::to_string(eval.samples)});
}

std::string metrics_section(const CardContents& card) {
  Rows rows = {{"split", "accuracy", "loss", "samples"}};
  if (card.history && card.facts.step)
    for (const auto& [time, eval] : card.history->evals)
      if (eval.step == *card.facts.step && (!card.averaged || eval.ema_accuracy))
        add_metrics(rows, eval, card.averaged);
  std::string text = "## Metrics\n\n";
  if (rows.size() == 1) return text + "No evaluation of these weights is recorded; `gradring eval` measures them.\n\n";
  return text + markdown::table(rows) + "\n";
}

std::string training_section(const CardContents& card) {
  const RunHeader* const header = header_of(card);
  std::string text = "## Training\n\n";
  if (card.facts.step)
    text += fmt::format("* {} steps{}\n", *card.facts.step, card.averaged ? "; averaged weights" : "");
  if (!header) return text + "* The command is unknown: no metrics.jsonl lies beside the checkpoint.\n\n";
  text += fmt::format("* Command: {}\n", code(start_command(*header)));
  text += fmt::format("* gradring {} ({}), {} rank{}, {} samples a step, {}\n", plain(header->version),
                      plain(header->commit), header->ranks, header->ranks == 1 ? "" : "s", header->global_batch,
                      plain(header->precision));
  const bool is_named_twice = header->machine.starts_with(header->device);  // a CPU
  text += fmt::format("* {}{}\n", is_named_twice ? "" : plain(header->device) + ", ", plain(header->machine));
  text += "\n<details><summary>All options</summary>\n\n";
  Rows rows = {{"option", "value"}};
  for (const auto& [name, value] : header->config) rows.push_back({code(name), code(value)});
  return text + markdown::table(rows) + "\n</details>\n\n";
}

std::string limits_section(const CardContents& card) {
  const ModelFacts& facts = card.facts;
  const std::string found = non_finite_weights(card.named.contents.model);
  return fmt::format(
      "## Limits\n\n{}"
      "* Every image gets one of {} labels, also one that shows something else.\n"
      "* The probabilities (softmax of the logits) are not calibrated.\n"
      "* Metrics hold for images like those of {}: the same size, centring, colours and preprocessing.\n\n",
      found.empty() ? "" : fmt::format("* The model does not work: {}.\n", plain(found)), facts.labels.size(),
      code(facts.dataset));
}

std::string hashes_section(const CardContents& card) {
  Rows rows = {{"what", "SHA-256"}};
  if (!card.file.empty())
    rows.push_back({code(std::filesystem::path(card.file).filename().string()), code(card.file_sha256)});
  for (const TensorRecord& tensor : card.named.contents.model)
    rows.push_back({code(tensor.name), code(sha256_hex(tensor.bytes))});
  return "## Hashes\n\nOf the file, and of the weights as little-endian values in PyTorch's order.\n\n" +
         markdown::table(rows) + "\n";
}

}  // namespace

std::string model_card(const CardContents& card) {
  const ModelFacts& facts = card.facts;
  return fmt::format("# {} trained on {}\n\n", plain(facts.model.name), plain(facts.dataset)) +
         fmt::format("An image classifier with {} parameters, trained by gradring, from {}.\n\n",
                     parameter_count(facts.model), code(card.named.from.string())) +
         "License: not stated; whoever publishes the model states it here.\n\n" + input_section(facts) +
         data_section(card) + metrics_section(card) + training_section(card) + "## Layers\n\n" + layers(facts.model) +
         "\n" + limits_section(card) + hashes_section(card);
}

}  // namespace gradring::train
