// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/open_dataset.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "data/datasets/class_names.h"
#include "data/datasets/dataset_files.h"
#include "data/datasets/digits.h"
#include "data/datasets/known_datasets.h"
#include "data/datasets/open_folder.h"
#include "data/datasets/own_data.h"
#include "data/files/byte_source.h"
#include "kernels/base/error.h"
#include "kernels/base/file.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kNames = {"mnist",  "fashion-mnist", "cifar10", "cifar100",
                                                    "digits", kArrays,         kOwnIdx,   kFolder};

/// A dataset of IDX files. All of them use the same file names, so only the folder tells them apart.
struct IdxSet {
  std::string_view name;
  std::string_view torchvision_name;

  bool owns(std::string_view folder) const { return folder == name || folder == torchvision_name; }
};

constexpr IdxSet kIdxSets[] = {{"mnist", "MNIST"}, {"fashion-mnist", "FashionMNIST"}};

struct CifarSet {
  std::string_view name;
  Cifar which;
  const char* unpacked;  ///< the folder inside the archive
};

constexpr CifarSet kCifarSets[] = {{"cifar10", Cifar::ten, "cifar-10-batches-bin"},
                                   {"cifar100", Cifar::hundred, "cifar-100-binary"}};

/// "mnist" for /data/mnist, ./mnist/ and /data/mnist/raw.
std::string last_name(const fs::path& folder) {
  fs::path path = fs::absolute(folder / "").lexically_normal().parent_path();
  if (path.filename() == "raw") path = path.parent_path();
  return path.filename().string();
}

void check_folder_name(const fs::path& folder, const IdxSet& wanted) {
  const std::string last = last_name(folder);
  for (const IdxSet& set : kIdxSets)
    if (set.name != wanted.name && set.owns(last))
      throw DataError(folder,
                      "is by its name the folder of " + std::string(set.name) + ", not of the requested " +
                          std::string(wanted.name) + "; the files of both have the same names",
                      "name the folder of " + std::string(wanted.name) + ", or the one above both");
}

std::unique_ptr<Dataset> open_idx_set(const IdxSet& set, Split split, const fs::path& data_dir) {
  IdxFiles files = find_idx_files(split, dataset_folders(set.name, data_dir), fetch_command(set.name, data_dir));
  check_folder_name(files.images.parent_path(), set);
  files.name = set.name;
  files.class_names = known_dataset(set.name).class_names;
  return open_idx(files);
}

void check_name(std::string_view name) {
  if (std::ranges::find(kNames, name) == kNames.end()) throw_unknown_dataset(name, kNames);
}

void check_folder(const DatasetSpec& spec) {
  if (spec.data_dir.empty()) throw InvalidArgument(needs_folder_message(spec.name));
}

/// Labels with a hole, or from 1, and a test set without one of the classes may be meant.
void say_empty_classes(const DatasetSpec& spec, const Dataset& dataset, Split split) {
  const std::vector<std::int64_t> samples = samples_of_class(dataset);
  std::vector<std::string> empty;
  for (std::size_t i = 0; i < samples.size(); ++i)
    if (samples[i] == 0) empty.push_back(dataset.class_names()[i]);
  if (empty.empty()) return;
  const char* hint = split == Split::test ? ", so evaluation does not cover every class"
                     : samples[0] == 0    ? "; are the labels counted from 1 instead of 0?"
                                          : "";
  spec.say(spec.name + ": the " + (split == Split::train ? "training" : "test") + " set has no samples of " +
           std::to_string(empty.size()) + " of its " + std::to_string(samples.size()) + " classes (" + list_of(empty) +
           ")" + hint);
}

/// A download that ends between two records looks whole.
void say_unusual_size(const DatasetSpec& spec, const Dataset& dataset, Split split, const std::string& fetch) {
  const std::int64_t usual = split == Split::train ? 50'000 : 10'000;
  if (dataset.size() == usual) return;
  spec.say(spec.name + ": " + std::to_string(dataset.size()) + " " + std::string(name_of(split)) +
           " samples instead of " + std::to_string(usual) +
           "; if this is no selection of yours, download it again: " + fetch);
}

std::unique_ptr<Dataset> open_cifar_set(const CifarSet& set, const DatasetSpec& spec, Split split) {
  const std::string fetch = fetch_command(set.name, spec.data_dir);
  auto dataset =
      open_cifar(set.which, find_cifar_files(set.which, split, dataset_folders(set.name, spec.data_dir), fetch));
  say_unusual_size(spec, *dataset, split, fetch);
  return dataset;
}

/// Of files in `spec.data_dir`.
std::unique_ptr<Dataset> open_own_data(const DatasetSpec& spec, Split split) {
  if (spec.name == kArrays) return open_arrays(spec.data_dir, split);
  if (spec.name == kOwnIdx) return open_own_idx(spec.data_dir, split);
  return open_folder({.folder = spec.data_dir,
                      .settings = spec.images,
                      .on_broken = spec.on_broken,
                      .cache = default_image_cache(),
                      .say = spec.say,
                      .progress = print_remark},
                     split);
}

std::string shell_quoted(const std::string& text) {
  const auto is_plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./+,:@%").find(c) != std::string_view::npos;
  };
  if (std::ranges::all_of(text, is_plain)) return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

void print_remark(const std::string& text) { print_to_stderr("gradring: " + shortened(text) + "\n"); }

std::span<const std::string_view> dataset_names() { return kNames; }

bool is_own_data(std::string_view name) { return name == kArrays || name == kOwnIdx || name == kFolder; }

DatasetFacts facts_of(const DatasetSpec& spec) {
  if (const DatasetFacts* known = find_known_dataset(spec.name)) return *known;
  check_name(spec.name);
  check_folder(spec);
  if (spec.name == kFolder)
    return {.name = spec.name,
            .shape = {spec.images.size, spec.images.size, 3},
            .class_names = folder_class_names(spec.data_dir)};
  return spec.name == kArrays ? facts_of_arrays(spec.data_dir) : facts_of_own_idx(spec.data_dir);
}

std::vector<fs::path> dataset_folders(std::string_view name, const fs::path& data_dir) {
  std::vector<fs::path> folders = {data_dir / name};
  for (const IdxSet& set : kIdxSets)
    if (set.name == name) folders.push_back(data_dir / set.torchvision_name / "raw");
  for (const CifarSet& set : kCifarSets)  // the archive's folder
    if (set.name == name) folders.insert(folders.end(), {data_dir / name / set.unpacked, data_dir / set.unpacked});
  folders.push_back(data_dir);
  return folders;
}

std::unique_ptr<Dataset> open_dataset(const DatasetSpec& spec, Split split) {
  if (spec.name == "digits") return make_digits(split);
  check_name(spec.name);
  check_folder(spec);
  for (const IdxSet& set : kIdxSets)
    if (spec.name == set.name) return open_idx_set(set, split, spec.data_dir);
  for (const CifarSet& set : kCifarSets)
    if (spec.name == set.name) return open_cifar_set(set, spec, split);
  auto own = open_own_data(spec, split);
  say_empty_classes(spec, *own, split);
  return own;
}

bool has_test_set(const DatasetSpec& spec) {
  if (spec.name == kFolder) return has_test_folder(spec.data_dir);
  if (spec.name == kArrays) return has_test_arrays(spec.data_dir);
  return spec.name != kOwnIdx || has_test_idx(spec.data_dir);
}

std::string fetch_command(std::string_view name, const fs::path& data_dir) {
  constexpr const char* kDefault = "datasets";
  return "gradring data fetch " + std::string(name) + " --data-dir " +
         shell_quoted(data_dir.empty() ? kDefault : data_dir.string());
}

std::string needs_folder_message(std::string_view name) {
  if (is_own_data(name))
    return "--dataset " + std::string(name) + " reads your files: name their folder with --data-dir";
  return std::string(name) + " is read from files: name their folder with --data-dir, download them with " +
         fetch_command(name, "") + ", or use --dataset digits, which needs no files";
}

}  // namespace gradring::data
