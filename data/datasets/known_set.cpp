// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/known_set.h"

#include <algorithm>
#include <string>

#include "data/datasets/open_dataset.h"
#include "kernels/runtime/error.h"
#include "kernels/runtime/nearest_name.h"

namespace gradring::data {
namespace {

constexpr std::array<std::string_view, 10> kDigits = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
constexpr std::array<std::string_view, 10> kClothes = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                       "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
constexpr std::array<std::string_view, 10> kCifar10 = {"airplane", "automobile", "bird",  "cat",  "deer",
                                                       "dog",      "frog",       "horse", "ship", "truck"};

}  // namespace

const KnownSet& known_set(std::string_view name) {
  static const KnownSet sets[] = {{"mnist", {28, 28, 1}, kDigits},
                                  {"fashion-mnist", {28, 28, 1}, kClothes},
                                  {"cifar10", {32, 32, 3}, kCifar10},
                                  {"digits", {28, 28, 1}, kDigits}};
  const auto found = std::ranges::find(sets, name, &KnownSet::name);
  if (found == std::end(sets))
    throw InvalidArgument("there is no data set '" + std::string(name) + "'." + did_you_mean(name, dataset_names()));
  return *found;
}

}  // namespace gradring::data
