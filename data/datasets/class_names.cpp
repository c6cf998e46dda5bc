// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/class_names.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "data/datasets/dataset.h"
#include "data/files/byte_source.h"
#include "kernels/base/file.h"
#include "kernels/base/printable.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestFile = 4u << 20;

/// The bytes after the first one of a character of UTF-8 that begins with `first`; -1 if none does.
int following_bytes(unsigned char first) {
  if (first < 0x80) return 0;
  if (first >= 0xc2 && first < 0xe0) return 1;
  if (first >= 0xe0 && first < 0xf0) return 2;
  if (first >= 0xf0 && first < 0xf5) return 3;
  return -1;
}

/// Whether two bytes begin no overlong form, surrogate or character beyond U+10FFFF.
bool is_pair(unsigned char first, unsigned char second) {
  if (first == 0xe0) return second >= 0xa0;
  if (first == 0xed) return second < 0xa0;
  if (first == 0xf0) return second >= 0x90;
  if (first == 0xf4) return second < 0x90;
  return true;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i++]);
    const int following = following_bytes(first);
    if (following < 0) return false;
    for (int k = 0; k < following; ++k, ++i) {
      const auto byte = static_cast<unsigned char>(i < text.size() ? text[i] : 0);
      if (byte < 0x80 || byte >= 0xc0 || (k == 0 && !is_pair(first, byte))) return false;
    }
  }
  return true;
}

/// Whether it is a line of text that can be shown.
bool is_line(std::string_view name) {
  return std::ranges::none_of(name, [](unsigned char c) { return c < 0x20 || c == 0x7f; }) && is_utf8(name);
}

/// Marks of a letter before them in NFD: combining marks of Latin, Greek and Cyrillic, of Hangul and of kana.
bool is_mark(char32_t code) {
  return (code >= 0x300 && code <= 0x36f) || (code >= 0x1160 && code <= 0x11ff) || code == 0x3099 || code == 0x309a;
}

struct Letters {
  std::string text;  ///< '?' for each character that is not ASCII, and for each letter with the marks after it
  bool has_marks = false;
};

Letters letters_of(std::string_view name) {
  Letters letters;
  while (!name.empty()) {
    const Character character = first_character(name);
    const char32_t code = character.code.value_or(0);
    if (is_mark(code) && !letters.text.empty()) {
      letters.text.back() = '?';
      letters.has_marks = true;
    } else {
      letters.text += code < 0x80 ? name[0] : '?';
    }
    name.remove_prefix(character.bytes);
  }
  return letters;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    begin = end + 1;
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::vector<std::string> read_names(const fs::path& path) {
  std::string text;
  try {
    text = read_small_file(path, kLargestFile);
  } catch (const ReadError& error) {
    throw DataError(path, error.what(), "write the name of a class into each line, or remove the file");
  }
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return lines_of(text);
}

}  // namespace

void check_class_names(const fs::path& from, std::span<const std::string> names) {
  const auto count = std::ssize(names);
  if (count < 2)
    throw DataError(from,
                    "has " + std::to_string(count) + " class" + (count == 1 ? "" : "es") + ", expected at least 2",
                    "a classifier needs samples of two classes or more");
  if (count > kMostClasses)
    throw DataError(from, "has " + std::to_string(count) + " classes, expected at most " + std::to_string(kMostClasses),
                    "check that these are labels of classes, numbered from 0");
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    const std::string number = std::to_string(&name - names.data());
    if (name.empty() || !is_line(name))
      throw DataError(from,
                      "the name of class " + number + (name.empty() ? " is empty" : " is not a line of text in UTF-8"),
                      "give each class a name");
    if (!seen.insert(name).second)
      throw DataError(from, "two classes have the name '" + name + "', the second is class " + number,
                      "give each class a name of its own");
  }
}

std::vector<std::string> class_names_in(const fs::path& folder, std::int64_t largest, const fs::path& labels) {
  if (largest >= kMostClasses)
    throw DataError(labels,
                    "has label " + std::to_string(largest) + ", expected labels below " + std::to_string(kMostClasses),
                    "number the classes 0, 1, ...");
  const fs::path path = folder / kClassNamesFile;
  if (!is_file(path)) {
    std::vector<std::string> numbers = numbered_classes(static_cast<int>(largest) + 1);
    check_class_names(labels, numbers);
    return numbers;
  }
  std::vector<std::string> names = read_names(path);
  check_class_names(path, names);
  if (std::ssize(names) <= largest)
    throw DataError(path,
                    "names " + std::to_string(names.size()) + " classes, but " + labels.string() + " has label " +
                        std::to_string(largest),
                    "write a name for each label from 0, one a line");
  return names;
}

std::string unicode_hint(std::string_view name, std::span<const std::string> names) {
  const Letters letters = letters_of(name);
  for (const std::string& each : names)
    if (const Letters other = letters_of(each); other.has_marks != letters.has_marks && other.text == letters.text)
      return "; " + each + " looks like it and has other bytes: one is in Unicode's NFC, the other in NFD";
  return "";
}

std::string list_of(std::span<const std::string> names) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (const std::string& name : names.first(std::min(names.size(), kMost))) text += (text.empty() ? "" : ", ") + name;
  return names.size() > kMost ? text + ", ..." : text;
}

}  // namespace gradring::data
