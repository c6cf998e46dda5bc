// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <iterator>

#include "tests/rules/pattern.h"
#include "tests/rules/rules.h"

namespace gradring::rules {
namespace {

/// Columns of UTF-8 text, a code point each.
std::size_t columns(const std::string& line) {
  return static_cast<std::size_t>(
      std::ranges::count_if(line, [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }));
}

}  // namespace

Violations markdown_widths(const SourceTree& tree) {
  constexpr std::size_t limit = 100;
  Violations found;
  for (const SourceFile& file : tree.files) {
    if (!file.has_extension({".md"})) continue;
    bool code_block = false;
    for (std::size_t i = 0; i < file.text.size(); ++i) {
      const std::string& line = file.text[i];
      if (line.starts_with("```")) code_block = !code_block;
      // A table's row and a word cannot be broken.
      if (code_block || line.starts_with("|") ||
          line.find(' ', line.find_first_not_of(" -*0123456789.")) == std::string::npos)
        continue;
      if (columns(line) > limit)
        found.push_back({file.path, static_cast<int>(i) + 1, std::to_string(columns(line)) + " columns"});
    }
  }
  return found;
}

Violations documented_paths(const SourceTree& tree) {
  // A file of ours by its full path from the root; not a pattern, and not the end of a longer path.
  static const Pattern path(
      R"((^|[^A-Za-z0-9_./*{}-])((comm|data|docs|kernels|nn|scripts|tests|train)/[A-Za-z0-9_./-]+\.(h|cpp|cuh?|md|sh|cmake|py))\b)");
  static const Pattern link(R"(\]\(([A-Za-z0-9_./-]+)(#[^)]*)?\))");
  Violations found;
  for (const SourceFile& file : tree.files) {
    if (file.in("tests/rules")) continue;  // plants such names
    const std::string folder = file.path.substr(0, file.path.rfind('/') + 1);
    for (std::size_t i = 0; i < file.text.size(); ++i) {
      const std::string& line = file.text[i];
      for (const auto& match : path.all_in(line))
        if (!tree.paths.contains(match[2]) && !tree.paths.contains(folder + match[2]))
          found.push_back({file.path, static_cast<int>(i) + 1, "no such file: " + match[2]});
      if (!file.has_extension({".md"})) continue;
      for (const auto& match : link.all_in(line))
        if (!std::filesystem::exists(tree.root / folder / match[1]))
          found.push_back({file.path, static_cast<int>(i) + 1, "a link to nowhere: " + match[1]});
    }
  }
  return found;
}

namespace {

/// Presets of ctest that do not inherit what makes a run without tests an error.
Violations lenient_presets(const SourceFile& file) {
  Violations found;
  bool of_tests = false, is_error = false;
  for (std::size_t i = 0; i < file.text.size(); ++i) {
    const std::string& line = file.text[i];
    of_tests = of_tests || line.find("\"testPresets\"") != std::string::npos;
    if (!of_tests) continue;
    is_error = is_error || line.find("\"noTestsAction\": \"error\"") != std::string::npos;
    if (line.find("\"configurePreset\"") != std::string::npos &&
        (!is_error || line.find("\"inherits\"") == std::string::npos))
      found.push_back({file.path, static_cast<int>(i) + 1, "inherit the preset with noTestsAction"});
  }
  return found;
}

}  // namespace

Violations ctest_commands(const SourceTree& tree) {
  static const Pattern command(R"(\bctest +-[^`]*)");
  Violations found;
  for (const SourceFile& file : tree.files) {
    if (file.path == "CMakePresets.json") std::ranges::move(lenient_presets(file), std::back_inserter(found));
    if (!file.has_extension({".md"}) || file.in("docs/results")) continue;  // results say what was run
    for (std::size_t i = 0; i < file.text.size(); ++i)
      for (const auto& match : command.all_in(file.text[i]))
        if (match[0].find("--preset") == std::string::npos && match[0].find("--no-tests=error") == std::string::npos)
          found.push_back({file.path, static_cast<int>(i) + 1, "succeeds without tests: use --preset"});
  }
  return found;
}

}  // namespace gradring::rules
