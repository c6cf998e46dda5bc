// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/idx/idx_dataset.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "data/datasets/idx/idx_file.h"
#include "data/datasets/in_memory_dataset.h"
#include "data/error.h"

namespace gradring::data {
namespace {

/// The names under which mirrors offer one file, the quickest to read first.
std::vector<std::string> spellings(Split split, const std::string& content) {
  const std::string part = split == Split::train ? "train-" : "t10k-";
  const std::string kind = content == "images" ? "idx3-ubyte" : "idx1-ubyte";
  const std::string dashed = part + content + "-" + kind, dotted = part + content + "." + kind;
  return {dashed, dotted, dashed + ".gz", dotted + ".gz"};
}

std::optional<std::filesystem::path> find(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::error_code unreadable;  // then it is not found
    if (std::filesystem::is_regular_file(folder / name, unreadable)) return folder / name;
  }
  return std::nullopt;
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

[[noreturn]] void missing(const std::vector<std::filesystem::path>& folders, const std::vector<std::string>& names,
                          const std::string& fetch) {
  std::vector<std::string> places;
  for (const auto& folder : folders) places.push_back(folder.string());
  const auto is_there = [](const std::filesystem::path& folder) {
    std::error_code unreadable;
    return std::filesystem::is_directory(folder, unreadable);
  };
  const auto there = std::find_if(folders.begin(), folders.end(), is_there);
  const bool is_folder = there != folders.end();
  throw DataError(
      is_folder ? *there : folders.back(),
      std::string(is_folder ? "" : "is no folder, ") + "found none of the files " + list(names) + " in " + list(places),
      "get it: " + fetch + "; or name the folder that has it");
}

}  // namespace

std::unique_ptr<Dataset> open_idx(const IdxFiles& files) {
  IdxFile image_file(files.images, 3), label_file(files.labels, 1);
  const std::vector<std::int64_t>& extents = image_file.extents();
  if (extents[0] != label_file.extents()[0])
    throw DataError(files.labels,
                    "holds " + std::to_string(label_file.extents()[0]) + " labels, but there are " +
                        std::to_string(extents[0]) + " images in " + files.images.string(),
                    "take both files from the same source");
  std::vector<std::uint8_t> labels = label_file.read_values();
  std::vector<std::uint8_t> images = image_file.read_values();
  if (images.empty()) throw DataError(files.images, "holds no images", "delete the file and get it again");
  const auto outside =
      std::find_if(labels.begin(), labels.end(), [&](std::uint8_t label) { return label >= files.classes; });
  if (outside != labels.end())
    throw DataError(files.labels,
                    "gives sample " + std::to_string(outside - labels.begin()) + " the label " +
                        std::to_string(*outside) + ", but labels go from 0 to " + std::to_string(files.classes - 1),
                    "delete the file and get it again");
  return std::make_unique<InMemoryDataset>(InMemoryDataset::Contents{.name = files.name,
                                                                     .shape = {extents[1], extents[2], 1},
                                                                     .classes = files.classes,
                                                                     .pixels = std::move(images),
                                                                     .labels = std::move(labels)});
}

IdxFiles find_idx_files(Split split, const std::vector<std::filesystem::path>& folders, const std::string& fetch) {
  const auto image_names = spellings(split, "images"), label_names = spellings(split, "labels");
  for (const auto& folder : folders) {
    const auto images = find(folder, image_names);
    if (!images) continue;
    const auto labels = find(folder, label_names);
    if (!labels) missing({folder}, label_names, fetch);
    return {.name = {}, .images = *images, .labels = *labels};
  }
  missing(folders, image_names, fetch);
}

}  // namespace gradring::data
