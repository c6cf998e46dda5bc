// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "data/datasets/open_folder.h"
#include "tests/data/support/written_png.h"

namespace gradring::tests {

/// A folder of images, a cache of its own, and what opening says.
class ImageFolder {
 public:
  /// A PNG of one colour.
  static Bytes png(std::uint32_t width, std::uint32_t height, std::uint8_t red) {
    WrittenPng png{.width = width, .height = height, .colour = WrittenPng::rgb, .rows = {}};
    for (std::uint32_t i = 0; i < width * height; ++i) png.rows.insert(png.rows.end(), {red, 0, 255});
    return png.bytes();
  }

  /// `path` from the folder: "train/cat/1.png".
  std::filesystem::path add(const std::string& path, const Bytes& bytes) const {
    return folder_.write("images/" + path, bytes);
  }
  void add(const std::string& path, std::uint8_t red) const { add(path, png(8, 6, red)); }
  /// Two classes of two training images, and a test image of the second.
  void add_cats_and_dogs() const {
    for (const char* path : {"train/cat/1.png", "train/cat/2.png"}) add(path, 10);
    for (const char* path : {"train/dog/1.png", "train/dog/2.png", "test/dog/3.png"}) add(path, 200);
  }

  std::filesystem::path path() const { return folder_.path() / "images"; }
  std::filesystem::path cache() const { return folder_.path() / "cache"; }
  data::FolderSpec spec() {
    return {.folder = path(),
            .settings = {.size = 4, .resize = 4},
            .cache = cache(),
            .say = [this](const std::string& text) { said_ += text + "\n"; },
            .progress = [this](const std::string& text) { said_ += text + "\n"; }};
  }
  std::unique_ptr<data::Dataset> open(data::Split split = data::Split::train) {
    return data::open_folder(spec(), split);
  }

  /// What was said since it was last asked.
  std::string said() { return std::exchange(said_, {}); }

 private:
  TempFolder folder_;
  std::string said_;
};

}  // namespace gradring::tests
