// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::data {

/// More are taken for corrupt labels.
inline constexpr std::int64_t kMostClasses = 1 << 16;

/// The file in a dataset's folder that names the classes of labels 0, 1, ..., one a line.
inline constexpr const char* kClassNamesFile = "class_names.txt";

/// Checks names that a dataset's own files or folders give to its classes: at least 2 and at most kMostClasses, each a
/// line of UTF-8 that is not empty, none twice. Checkpoints hold them as JSON.
///
/// Errors    DataError with `from`.
void check_class_names(const std::filesystem::path& from, std::span<const std::string> names);

/// The names of the classes of a dataset whose labels are numbers from 0 to `largest`: the lines of kClassNamesFile in
/// `folder`, or "0", "1", ... without that file.
///
/// Errors    DataError with that file or with `labels` as check_class_names, or if there are fewer names than labels.
std::vector<std::string> class_names_in(const std::filesystem::path& folder, std::int64_t largest,
                                        const std::filesystem::path& labels);

/// A hint for a message, "; ...": whether one of `names` looks like `name` and has other bytes, since a letter with a mark
/// is one character in one of them (Unicode's NFC) and a letter and a mark in the other (NFD, as macOS writes names of
/// files). Empty if none does.
///
/// Numerics  compares all letters with marks as equal: a hint, and no proof.
std::string unicode_hint(std::string_view name, std::span<const std::string> names);

/// "cat, dog"; after the eighth name "...".
std::string list_of(std::span<const std::string> names);

}  // namespace gradring::data
