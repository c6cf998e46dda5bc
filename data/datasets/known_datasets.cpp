// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/known_datasets.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/nearest_name.h"

namespace gradring::data {
namespace {

const std::vector<DatasetFacts>& all_facts() {
  static const std::vector<DatasetFacts> facts = {
      {.name = "mnist", .shape = {28, 28, 1}, .class_names = numbered_classes(10)},
      {.name = "fashion-mnist",
       .shape = {28, 28, 1},
       .class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
                       "Ankle boot"}},
      {.name = "cifar10",
       .shape = {32, 32, 3},
       .class_names = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"}},
      {.name = "cifar100",
       .shape = {32, 32, 3},
       .class_names = {"apple",       "aquarium_fish", "baby",      "bear",       "beaver",       "bed",
                       "bee",         "beetle",        "bicycle",   "bottle",     "bowl",         "boy",
                       "bridge",      "bus",           "butterfly", "camel",      "can",          "castle",
                       "caterpillar", "cattle",        "chair",     "chimpanzee", "clock",        "cloud",
                       "cockroach",   "couch",         "crab",      "crocodile",  "cup",          "dinosaur",
                       "dolphin",     "elephant",      "flatfish",  "forest",     "fox",          "girl",
                       "hamster",     "house",         "kangaroo",  "keyboard",   "lamp",         "lawn_mower",
                       "leopard",     "lion",          "lizard",    "lobster",    "man",          "maple_tree",
                       "motorcycle",  "mountain",      "mouse",     "mushroom",   "oak_tree",     "orange",
                       "orchid",      "otter",         "palm_tree", "pear",       "pickup_truck", "pine_tree",
                       "plain",       "plate",         "poppy",     "porcupine",  "possum",       "rabbit",
                       "raccoon",     "ray",           "road",      "rocket",     "rose",         "sea",
                       "seal",        "shark",         "shrew",     "skunk",      "skyscraper",   "snail",
                       "snake",       "spider",        "squirrel",  "streetcar",  "sunflower",    "sweet_pepper",
                       "table",       "tank",          "telephone", "television", "tiger",        "tractor",
                       "train",       "trout",         "tulip",     "turtle",     "wardrobe",     "whale",
                       "willow_tree", "wolf",          "woman",     "worm"}},
      {.name = "digits", .shape = {28, 28, 1}, .class_names = numbered_classes(10)}};
  return facts;
}

}  // namespace

std::span<const std::string_view> known_dataset_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const DatasetFacts& facts : all_facts()) all.push_back(facts.name);
    return all;
  }();
  return names;
}

const DatasetFacts* find_known_dataset(std::string_view name) {
  const auto found = std::ranges::find(all_facts(), name, &DatasetFacts::name);
  return found == all_facts().end() ? nullptr : &*found;
}

const DatasetFacts& known_dataset(std::string_view name) {
  if (const DatasetFacts* found = find_known_dataset(name)) return *found;
  throw_unknown_dataset(name, known_dataset_names());
}

void throw_unknown_dataset(std::string_view name, std::span<const std::string_view> names) {
  std::string known;
  for (const std::string_view each : names) known += (known.empty() ? "" : ", ") + std::string(each);
  throw InvalidArgument("unknown dataset '" + std::string(name) + "': expected one of " + known + "." +
                        did_you_mean(name, names));
}

}  // namespace gradring::data
