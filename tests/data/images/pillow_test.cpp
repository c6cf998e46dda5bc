// SPDX-License-Identifier: Apache-2.0
// Decoding and resizing against Pillow: stored values, and live where Python has it.
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "data/images/image.h"
#include "kernels/base/file.h"
#include "tests/support/run_program.h"
#include "tests/support/safetensors.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_python.h"

namespace gradring::data {
namespace {

/// What Pillow made of one input: "jpeg_cmyk_23x37" of a file, "resize.32x32.of_45x61" or "crop.28.of_64x31" of pixels.
struct Case {
  std::string name;
  std::filesystem::path file;  ///< empty: `before` is the input
  Image before;
  Image after;
};

std::int64_t number_at(std::string_view text, std::size_t at) {
  std::int64_t number = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), number);
  return number;
}

Image computed(const Case& each) {
  const std::string_view name = each.name;
  if (name.starts_with("resize."))
    return resized_as_pillow(each.before, number_at(name, 7), number_at(name, name.find('x') + 1));
  if (!name.starts_with("crop.")) return read_image(each.file);
  const std::int64_t size = number_at(name, 5);
  return resized_middle(each.before, size, size);
}

std::string last_suffix(const std::string& name) { return name.substr(name.rfind('.') + 1); }

/// Bytes that differ, and by how much at most.
void expect_equal(const Case& each) {
  SCOPED_TRACE(each.name);
  const Image image = computed(each);
  ASSERT_EQ(image.height, each.after.height);
  ASSERT_EQ(image.width, each.after.width);
  ASSERT_EQ(image.channels, 3);
  ASSERT_EQ(image.pixels.size(), each.after.pixels.size());
  std::size_t different = 0;
  int most = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    different += image.pixels[i] != each.after.pixels[i];
    most = std::max(most, std::abs(image.pixels[i] - each.after.pixels[i]));
  }
  EXPECT_EQ(different, 0u) << "of " << image.pixels.size() << " bytes, by up to " << most;
}

bool can_read(const std::string& name) {
  if (name.starts_with("jpeg")) return !jpeg_library().empty();
  return !name.starts_with("png") || !png_library().empty();
}

Image stored(const tests::StoredTensor& tensor) {
  return {.height = tensor.shape.at(0),
          .width = tensor.shape.at(1),
          .channels = tensor.shape.at(2),
          .pixels = tensor.as<std::uint8_t>()};
}

TEST(Pillow, StoredImagesAreEqual) {
  const tests::TempFolder folder;
  const tests::StoredTensors tensors = tests::read_golden("images");
  int count = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::string stem = name.substr(0, name.rfind('.'));
    const bool is_file = last_suffix(name) == "file";
    if ((!is_file && last_suffix(name) != "in") || !can_read(name)) continue;
    Case each{.name = stem, .file = {}, .before = {}, .after = stored(tensors.at(stem + (is_file ? ".rgb" : ".out")))};
    if (is_file)
      each.file = folder.write(stem, tensor.as<std::uint8_t>());
    else
      each.before = stored(tensor);
    expect_equal(each);
    ++count;
  }
  EXPECT_GE(count, 10);
}

/// A binary PPM: "P6\n61 45\n255\n", then the pixels.
Image read_ppm(const std::filesystem::path& path) {
  const std::string bytes = read_small_file(path, 1 << 24);
  const std::size_t size = bytes.find('\n') + 1, depth = bytes.find('\n', size) + 1,
                    start = bytes.find('\n', depth) + 1;
  Image image{.height = number_at(bytes, bytes.find(' ', size) + 1),
              .width = number_at(bytes, size),
              .channels = 3,
              .pixels = {}};
  image.pixels.assign(bytes.begin() + static_cast<std::ptrdiff_t>(start), bytes.end());
  return image;
}

TEST(Pillow, ImagesOfManySizesAreEqual) {
  const tests::TempFolder folder;
  const tests::ProgramEnd end =
      tests::run_program(tests::python_script({GRADRING_MAKE_IMAGES, folder.path().string()}, folder.path()));
  if (end.code == tests::kPackageMissing || end.code == 127) GTEST_SKIP() << end.out << "install pillow by pip";
  ASSERT_EQ(end.code, 0) << end.err;
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string path = entry.path().string();
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".file") && can_read(name)) {
      const std::string stem = path.substr(0, path.size() - 5);
      expect_equal({.name = name, .file = path, .before = {}, .after = read_ppm(stem + ".rgb.ppm")});
      ++count;
    } else if (name.ends_with(".in.ppm")) {
      const std::string stem = path.substr(0, path.size() - 7);
      expect_equal({.name = name, .file = {}, .before = read_ppm(path), .after = read_ppm(stem + ".out.ppm")});
      ++count;
    }
  }
  EXPECT_GE(count, 100);
}

}  // namespace
}  // namespace gradring::data
