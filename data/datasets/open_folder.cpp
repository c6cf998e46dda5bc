// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/open_folder.h"

#include <algorithm>
#include <utility>

#include "data/datasets/class_names.h"
#include "data/files/byte_source.h"
#include "kernels/base/error.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

std::string advice_without_train(const fs::path& folder) {
  const fs::path whole = fs::absolute(folder / "").lexically_normal().parent_path();
  if (whole.filename() == "train")
    return "name the folder that it is in with --data-dir " + whole.parent_path().string();
  for (const char* name : {"Train", "TRAIN", "training", "Training"})
    if (std::error_code error; fs::is_directory(folder / name, error))
      return "rename its folder " + std::string(name) + " to train";
  return "put the training images into train/CLASS, one folder for each class";
}

fs::path existing_split_folder(const fs::path& folder, Split split) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw DataError(folder, error ? "cannot be opened (" + error.message() + ")" : "is not a folder",
                    "name a folder with train/CLASS/*.jpg or .png with --data-dir");
  fs::path found = split_folder(folder, split);
  if (!found.empty()) return found;
  if (split == Split::train) throw DataError(folder, "holds no folder train", advice_without_train(folder));
  throw DataError(folder, "holds neither a folder test nor val",
                  "put test images into test/CLASS, or hold a part of the training set out with --val-split");
}

/// "2 of 300 images cannot be read:", then a line for each, with the reason.
std::string describe(const PackedFacts& facts) {
  std::string text = std::to_string(facts.broken.size()) + " of " + std::to_string(facts.labels.size()) +
                     (facts.labels.size() == 1 ? " image" : " images") + " cannot be read:";
  for (const BrokenImage& image : facts.broken) text += "\n  " + printable(image.path) + ": " + image.reason;
  return text;
}

/// Classes that are one for a reader, such as those of an archive of macOS beside others.
void say_twins(const FolderSpec& spec, std::span<const std::string> classes) {
  constexpr std::size_t kMaxCompared = 1000;
  for (std::size_t i = 0; i < std::min(classes.size(), kMaxCompared); ++i)
    if (const std::string hint = unicode_hint(classes[i], classes.first(i)); !hint.empty())
      spec.say(spec.folder.string() + ": " + classes[i] + " is a class of its own" + hint +
               "; if they are one class, put their images into one folder");
}

void check_classes(const fs::path& folder, const PackedImages& images) {
  const std::vector<std::int64_t> counts = samples_of_class(images);
  const auto empty = std::ranges::find(counts, 0);
  if (empty != counts.end())
    throw DataError(folder / images.facts().classes[static_cast<std::size_t>(empty - counts.begin())],
                    "holds no image that can be read", "put images of the class there, or remove the folder");
}

}  // namespace

std::vector<std::string> folder_class_names(const fs::path& folder) {
  return class_folders_in(existing_split_folder(folder, Split::train));
}

bool has_test_folder(const fs::path& folder) { return !split_folder(folder, Split::test).empty(); }

std::unique_ptr<Dataset> open_folder(const FolderSpec& spec, Split split) {
  check(spec.settings.size > 0 && spec.settings.size <= spec.settings.resize,
        "images of " + std::to_string(spec.settings.size) + " pixels cannot be cut out of a shorter side of " +
            std::to_string(spec.settings.resize));
  const std::vector<std::string> classes = folder_class_names(spec.folder);
  const fs::path folder = existing_split_folder(spec.folder, split);
  if (split == Split::train) say_twins(spec, classes);
  if (std::error_code error; folder.filename() == "test" && fs::exists(spec.folder / "val", error))
    spec.say(spec.folder.string() + ": test is the test set, and val is not used");
  const ImageListing listing = list_images(folder, split, classes);
  if (listing.others > 0) spec.say(folder.string() + ": " + describe_others(listing) + " in the folder of a class");
  std::unique_ptr<PackedImages> images = ImageCache(spec.cache, spec.progress).open(listing, spec.settings);
  if (const std::string remark = writers_of(spec.cache); !remark.empty()) spec.say(remark);
  if (!images->facts().broken.empty()) {
    const std::string text = describe(images->facts());
    if (spec.on_broken == OnBroken::fail)
      throw DataError(folder, shortened(text), "replace or remove them, or leave them out with --broken skip");
    spec.say(folder.string() + ": left out: " + text);
  }
  if (images->size() == 0) throw DataError(folder, "holds no image that can be read", "put images there");
  if (split == Split::train) check_classes(folder, *images);
  return images;
}

std::string shortened(const std::string& text) {
  constexpr int kMostImages = 10;
  std::size_t end = text.find('\n');
  for (int images = 0; images < kMostImages && end != text.npos; ++images) end = text.find('\n', end + 1);
  return end == text.npos ? text : text.substr(0, end) + "\n  ...";
}

}  // namespace gradring::data
