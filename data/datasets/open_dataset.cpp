// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/open_dataset.h"

#include <array>
#include <string>

#include "data/datasets/cifar10/cifar10.h"
#include "data/datasets/digits/digits.h"
#include "data/datasets/fetch_command.h"
#include "data/datasets/idx/idx_dataset.h"
#include "data/error.h"
#include "kernels/runtime/error.h"
#include "kernels/runtime/nearest_name.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> kNames = {"mnist", "fashion-mnist", "cifar10", "digits"};

/// A set of IDX files. All such sets name their files alike: only the folder tells them apart.
struct IdxSet {
  std::string_view name;
  std::string_view torchvision_name;

  bool owns(std::string_view folder) const { return folder == name || folder == torchvision_name; }
};

constexpr IdxSet kIdxSets[] = {{"mnist", "MNIST"}, {"fashion-mnist", "FashionMNIST"}};

/// "mnist" of /data/mnist, ./mnist/ and /data/mnist/raw.
std::string last_name(const fs::path& folder) {
  fs::path path = fs::absolute(folder / "").lexically_normal().parent_path();
  if (path.filename() == "raw") path = path.parent_path();
  return path.filename().string();
}

void refuse_another_sets(const fs::path& folder, const IdxSet& asked) {
  const std::string last = last_name(folder);
  for (const IdxSet& set : kIdxSets)
    if (set.name != asked.name && set.owns(last))
      throw DataError(folder,
                      "is by its name the folder of " + std::string(set.name) + ", and " + std::string(asked.name) +
                          " was asked for; the files of both have the same names",
                      "name the folder of " + std::string(asked.name) + ", or the one above both");
}

void check_folder_given(std::string_view name, const fs::path& data_dir) {
  if (data_dir.empty()) throw InvalidArgument(needs_folder_message(name));
}

std::unique_ptr<Dataset> open_idx_set(const IdxSet& set, Split split, const fs::path& data_dir) {
  check_folder_given(set.name, data_dir);
  IdxFiles files = find_idx_files(split, dataset_folders(set.name, data_dir), fetch_command(set.name, data_dir));
  refuse_another_sets(files.images.parent_path(), set);
  files.name = set.name;
  return open_idx(files);
}

std::unique_ptr<Dataset> open_cifar10_below(Split split, const fs::path& data_dir) {
  check_folder_given("cifar10", data_dir);
  return open_cifar10(
      find_cifar10_files(split, dataset_folders("cifar10", data_dir), fetch_command("cifar10", data_dir)));
}

std::string known_names() {
  std::string text;
  for (std::string_view name : kNames) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

std::span<const std::string_view> dataset_names() { return kNames; }

std::vector<fs::path> dataset_folders(std::string_view name, const fs::path& data_dir) {
  std::vector<fs::path> folders = {data_dir / name};
  for (const IdxSet& set : kIdxSets)
    if (set.name == name) folders.push_back(data_dir / set.torchvision_name / "raw");
  constexpr const char* kUnpacked = "cifar-10-batches-bin";  // the archive has a folder of its own
  if (name == "cifar10") folders.insert(folders.end(), {data_dir / name / kUnpacked, data_dir / kUnpacked});
  folders.push_back(data_dir);
  return folders;
}

std::unique_ptr<Dataset> open_dataset(std::string_view name, Split split, const std::filesystem::path& data_dir) {
  if (name == "digits") return make_digits(split);
  if (name == "cifar10") return open_cifar10_below(split, data_dir);
  for (const IdxSet& set : kIdxSets)
    if (name == set.name) return open_idx_set(set, split, data_dir);
  throw InvalidArgument("there is no data set '" + std::string(name) + "', there are " + known_names() + "." +
                        did_you_mean(name, kNames));
}

}  // namespace gradring::data
