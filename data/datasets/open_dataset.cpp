// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/open_dataset.h"

#include <array>
#include <string>

#include "data/datasets/digits/digits.h"
#include "data/datasets/idx/idx_dataset.h"
#include "kernels/runtime/error.h"
#include "kernels/runtime/nearest_name.h"

namespace gradring::data {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"mnist", "fashion-mnist", "digits"};

std::unique_ptr<Dataset> open_mnist_like(std::string_view name, const char* torchvision_name, Split split,
                                         const std::filesystem::path& data_dir) {
  check(!data_dir.empty(), std::string(name) +
                               " is read from files: name their folder with --data-dir, or take digits, " +
                               "which needs none");
  IdxFiles files = find_idx_files(split, {data_dir, data_dir / name, data_dir / torchvision_name / "raw"});
  files.name = name;
  return open_idx(files);
}

std::string known_names() {
  std::string text;
  for (std::string_view name : kNames) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

std::span<const std::string_view> dataset_names() { return kNames; }

std::unique_ptr<Dataset> open_dataset(std::string_view name, Split split, const std::filesystem::path& data_dir) {
  if (name == "digits") return make_digits(split);
  if (name == "mnist") return open_mnist_like(name, "MNIST", split, data_dir);
  if (name == "fashion-mnist") return open_mnist_like(name, "FashionMNIST", split, data_dir);
  throw InvalidArgument("there is no data set '" + std::string(name) + "', there are " + known_names() + "." +
                        did_you_mean(name, kNames));
}

}  // namespace gradring::data
