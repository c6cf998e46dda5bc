// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/own_data.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "data/datasets/class_names.h"
#include "data/datasets/npy_file.h"
#include "data/files/byte_source.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostChannels = 4, kMostExtent = 1 << 16;

std::string array_name(Split split, const char* what) { return std::string(name_of(split)) + "_" + what + ".npy"; }

fs::path find_array(const fs::path& folder, Split split, const char* what) {
  const std::string name = array_name(split, what);
  if (is_file(folder / name)) return folder / name;
  check_missing(std::array{folder}, std::array{name});
  if (const std::string archive = fs::path(name).replace_extension(".npz").string(); is_file(folder / archive))
    throw DataError(folder, "holds " + archive + ", an archive, and no " + name,
                    "save the array of it: numpy.save(\"" + name + "\", numpy.load(\"" + archive +
                        "\")[KEY]), where KEY is one of numpy.load(...).files");
  std::error_code unreadable;
  const bool is_folder = fs::is_directory(folder, unreadable);
  throw DataError(folder, is_folder ? "holds no " + name : "is not a folder",
                  is_folder && split == Split::test
                      ? kNoTestFilesAdvice
                      : "name the folder of train_images.npy, train_labels.npy, test_images.npy and test_labels.npy "
                        "with --data-dir; numpy.save writes such files");
}

/// Of one image: [height, width, channels].
kernels::Shape image_shape(const NpyFile& images) {
  const std::vector<std::int64_t>& shape = images.shape();
  const std::string text = shape_text(shape);
  const auto fail = [&](const std::string& found, const char* advice) {
    throw DataError(images.path(), "has the shape " + text + found, advice);
  };
  if (shape.size() != 3 && shape.size() != 4)
    fail(", expected (N, height, width) or (N, height, width, channels)", "reshape it, one image after the other");
  const std::int64_t channels = shape.size() == 4 ? shape[3] : 1;
  if (std::ranges::count(shape, 0) > 0) fail(", so it holds no images", "save images in it");
  if (channels > kMostChannels && shape[1] <= kMostChannels)
    fail(": it seems to have channels before height and width, as PyTorch", "move them: images.transpose(0, 2, 3, 1)");
  if (channels > kMostChannels)
    fail(", expected (N, height, width, channels) with 1 to 4 channels", "reshape it to grey, RGB or RGBA images");
  if (shape[1] > kMostExtent || shape[2] > kMostExtent)
    fail(", expected at most 65536 pixels in a direction", "make the images smaller");
  return {shape[1], shape[2], channels};
}

std::vector<std::int32_t> read_labels(const fs::path& path) {
  NpyFile file(path);
  const std::vector<std::int64_t>& shape = file.shape();
  const bool is_column = shape.size() == 2 && shape[1] == 1;  // as Keras has them
  if (shape.size() != 1 && !is_column)
    throw DataError(path, "has the shape " + shape_text(shape) + ", expected (N,)",
                    shape.size() == 2 ? "if these are one-hot labels, save labels.argmax(axis=1)"
                                      : "save one integer for each image");
  if (file.size() == 0) throw DataError(path, "holds no labels", "save one integer for each image");
  return file.read_labels();
}

/// Those of the training labels, also for the test set.
std::vector<std::string> names_of_classes(const fs::path& folder, const std::vector<std::int32_t>& train_labels) {
  return class_names_in(folder, *std::ranges::max_element(train_labels), find_array(folder, Split::train, "labels"));
}

void check_labels(const fs::path& path, const std::vector<std::int32_t>& labels, std::size_t classes) {
  const auto outside =
      std::ranges::find_if(labels, [&](std::int32_t label) { return std::cmp_greater_equal(label, classes); });
  if (outside == labels.end()) return;
  throw DataError(path,
                  "has the label " + std::to_string(*outside) + " in sample " +
                      std::to_string(outside - labels.begin()) + ", but the training labels end at " +
                      std::to_string(classes - 1),
                  "use the same numbers for the classes of both");
}

}  // namespace

DatasetFacts facts_of_arrays(const fs::path& folder) {
  const NpyFile images(find_array(folder, Split::train, "images"));
  const kernels::Shape shape = image_shape(images);
  return {.name = kArrays,
          .shape = shape,
          .class_names = names_of_classes(folder, read_labels(find_array(folder, Split::train, "labels")))};
}

bool has_test_arrays(const fs::path& folder) {
  return is_file(folder / array_name(Split::test, "images")) || is_file(folder / array_name(Split::test, "labels"));
}

std::unique_ptr<Dataset> open_arrays(const fs::path& folder, Split split) {
  NpyFile images(find_array(folder, split, "images"));
  const fs::path label_file = find_array(folder, split, "labels");
  const kernels::Shape shape = image_shape(images);
  std::vector<std::int32_t> labels = read_labels(label_file);
  if (std::ssize(labels) != images.shape()[0])
    throw DataError(label_file,
                    "holds " + std::to_string(labels.size()) + " labels, but " + images.path().filename().string() +
                        " holds " + std::to_string(images.shape()[0]) + " images",
                    "save one label for each image");
  std::vector<std::string> names = names_of_classes(
      folder, split == Split::train ? labels : read_labels(find_array(folder, Split::train, "labels")));
  check_labels(label_file, labels, names.size());
  const int classes = static_cast<int>(names.size());
  return std::make_unique<InMemoryDataset>(InMemoryDataset::Contents{.name = kArrays,
                                                                     .shape = shape,
                                                                     .classes = classes,
                                                                     .pixels = images.read_pixels(),
                                                                     .labels = std::move(labels),
                                                                     .class_names = std::move(names)});
}

}  // namespace gradring::data
