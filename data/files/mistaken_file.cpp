// SPDX-License-Identifier: Apache-2.0
#include "data/files/mistaken_file.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace gradring::data {
namespace {

constexpr std::string_view kOwnFile = "download the file itself";

constexpr MistakenFile kMistaken[] = {
    {"version https://git-lfs", "is a Git LFS pointer to a file", "fetch the file itself: git lfs pull"},
    {"\x1f\x8b", "is compressed with gzip", "decompress it with gunzip"},
    {"<!doctype", "is a web page", kOwnFile},
    {"<html", "is a web page", kOwnFile},
    {"<?xml", "is an XML document, perhaps the error message of a server", kOwnFile},
};

}  // namespace

std::optional<MistakenFile> find_mistaken_file(std::string_view start) {
  start.remove_prefix(std::min(start.find_first_not_of(" \t\r\n"), start.size()));
  std::string lower(start);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const MistakenFile& file : kMistaken)
    if (lower.starts_with(file.start)) return file;
  return std::nullopt;
}

}  // namespace gradring::data
