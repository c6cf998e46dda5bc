// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/own_data.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "data/datasets/class_names.h"
#include "data/datasets/dataset_files.h"
#include "data/files/byte_source.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderAdvice =
    "name the folder of train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
    "t10k-labels-idx1-ubyte with --data-dir";

/// What stands before the name of MNIST's file: "emnist-letters-" of emnist-letters-test-images-idx3-ubyte.gz.
bool names_images(std::string_view name, Split split, std::string& prefix) {
  if (name.ends_with(".gz")) name.remove_suffix(3);
  const std::array<std::string_view, 2> starts = split == Split::train
                                                     ? std::array<std::string_view, 2>{"train", "train"}
                                                     : std::array<std::string_view, 2>{"t10k", "test"};
  for (const std::string_view start : starts)
    for (const char* end : {"-images-idx3-ubyte", "-images.idx3-ubyte"})
      if (const std::string ending = std::string(start) + end; name.ends_with(ending)) {
        prefix = name.substr(0, name.size() - ending.size());
        return true;
      }
  return false;
}

/// The file of images for each prefix in the folder, plain ones before packed ones.
std::map<std::string, fs::path> image_files(const fs::path& folder, Split split) {
  std::error_code error;
  std::map<std::string, fs::path> found;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::string prefix;
    if (!names_images(name, split, prefix) || !is_file(entry->path())) continue;
    fs::path& file = found[prefix];
    if (file.empty() || entry->path().native().size() < file.native().size()) file = entry->path();
  }
  if (error) throw DataError(folder, "cannot be listed (" + error.message() + ")", kFolderAdvice);
  return found;
}

/// The labels beside a file of images, packed or not.
fs::path labels_of(const fs::path& images) {
  std::string name = images.filename().string();
  name.replace(name.rfind("images"), 6, "labels");
  name.replace(name.rfind("idx3"), 4, "idx1");
  const bool is_packed = name.ends_with(".gz");
  const std::string other = is_packed ? name.substr(0, name.size() - 3) : name + ".gz";
  for (const std::string& each : {name, other})
    if (is_file(images.parent_path() / each)) return images.parent_path() / each;
  check_missing(std::array{images.parent_path()}, std::array{name});
  throw DataError(images.parent_path(), "holds " + images.filename().string() + ", but no " + name,
                  "put the labels beside the images");
}

IdxFiles files_of(const fs::path& folder, Split split) {
  const std::map<std::string, fs::path> found = image_files(folder, split);
  if (found.empty()) {
    const std::string name = std::string(split == Split::train ? "train" : "t10k") + "-images-idx3-ubyte";
    check_missing(std::array{folder}, std::array{name});
    throw DataError(folder, "holds no " + name, split == Split::test ? kNoTestFilesAdvice : kFolderAdvice);
  }
  if (found.size() > 1)
    throw DataError(folder,
                    "holds several data sets, such as " + found.begin()->second.filename().string() + " and " +
                        found.rbegin()->second.filename().string(),
                    "put the files of each into a folder of its own");
  const fs::path images = found.begin()->second;
  return {.name = kOwnIdx, .images = images, .labels = labels_of(images)};
}

std::vector<std::string> names_of_classes(const fs::path& folder) {
  const fs::path file = files_of(folder, Split::train).labels;
  const IdxArray labels = read_idx(file, 1);
  if (labels.values.empty()) throw DataError(file, "holds no labels", kFolderAdvice);
  return class_names_in(folder, *std::ranges::max_element(labels.values), file);
}

}  // namespace

DatasetFacts facts_of_own_idx(const fs::path& folder) {
  const std::vector<std::int64_t> extents = idx_extents(files_of(folder, Split::train).images, 3);
  if (std::ranges::count(extents, 0) > 0) throw DataError(folder, "holds no training images", kFolderAdvice);
  return {.name = kOwnIdx, .shape = {extents[1], extents[2], 1}, .class_names = names_of_classes(folder)};
}

bool has_test_idx(const fs::path& folder) { return !image_files(folder, Split::test).empty(); }

std::unique_ptr<Dataset> open_own_idx(const fs::path& folder, Split split) {
  IdxFiles files = files_of(folder, split);
  files.class_names = names_of_classes(folder);
  files.classes = static_cast<int>(files.class_names.size());
  return open_idx(files);
}

}  // namespace gradring::data
