// SPDX-License-Identifier: Apache-2.0
// Prints how large a checkout is and how well it keeps to the rules that have a number: scripts/measure_tree.sh.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/rules/folder_graph.h"
#include "tests/rules/pattern.h"
#include "tests/rules/rules.h"

namespace gradring::rules {
namespace {

bool is_blank(const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; }

struct Sizes {
  std::vector<std::size_t> lines;  ///< of each file, ascending
  std::size_t code = 0;            ///< lines with more than comments and blanks

  std::size_t total() const {
    std::size_t sum = 0;
    for (const std::size_t count : lines) sum += count;
    return sum;
  }
};

template <class Covers>
Sizes sizes_of(const SourceTree& tree, Covers covers) {
  Sizes sizes;
  for (const SourceFile& file : tree.files) {
    if (!covers(file)) continue;
    sizes.lines.push_back(file.text.size());
    sizes.code += static_cast<std::size_t>(std::ranges::count_if(file.code, std::not_fn(is_blank)));
  }
  std::ranges::sort(sizes.lines);
  return sizes;
}

void print_tree(const SourceTree& tree) {
  const Sizes production = sizes_of(tree, is_production);
  if (production.lines.empty()) return;
  const Sizes tests = sizes_of(tree, [](const SourceFile& file) { return file.is_cpp() && file.package() == "tests"; });
  const auto row = [](const char* name, auto value) {
    std::printf("%-36s %7zu\n", name, static_cast<std::size_t>(value));
  };
  row("production files", production.lines.size());
  row("  median lines", production.lines[production.lines.size() / 2]);
  row("  longest, lines", production.lines.back());
  row("  lines", production.total());
  row("  lines of code", production.code);
  row("  headers", std::ranges::count_if(tree.files, [](const SourceFile& file) {
        return is_production(file) && file.has_extension({".h", ".cuh"});
      }));
  row("  headers with one other includer",
      std::ranges::count_if(other_includers(tree), [](const auto& header) { return header.second.size() == 1; }));
  row("    under 40 lines", short_headers(tree).size());
  row("test files", tests.lines.size());
  row("  lines", tests.total());
  const FolderGraph direct = folder_graph(tree, direct_folder_of);
  for (const std::string package : {"kernels", "nn", "comm", "data", "train"}) {
    std::set<std::string> folders;
    for (const SourceFile& file : tree.files)
      if (is_production(file) && file.package() == package) folders.insert(direct_folder_of(file.path));
    folders.erase(package);
    row((package + ": direct folders").c_str(), folders.size());
    row("  include depth", longest_chain(direct, package).size());
  }
  row("folder cycles", folder_cycles(tree).size());
  row("upward includes", upward_includes(tree).size());
  row("lines with retired words", retired_words(tree).size());
  row("Markdown lines over 100 columns", markdown_widths(tree).size());
  row("names of files that are missing", documented_paths(tree).size());
}

void print(const Violations& violations) {
  for (const Violation& violation : violations)
    std::printf("%s:%d: %s\n", violation.path.c_str(), violation.line, violation.message.c_str());
}

}  // namespace
}  // namespace gradring::rules

int main(int count, char** arguments) {
  using namespace gradring::rules;
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.empty() || words[0].starts_with("-")) {
    std::puts("usage: measure_tree FOLDER [cycles] [upward] [words] [widths] [paths] [headers]");
    return 2;
  }
  const SourceTree tree = read_tree(words[0]);
  print_tree(tree);
  for (const std::string& word : words) {
    if (word == "cycles") print(folder_cycles(tree));
    if (word == "upward") print(upward_includes(tree));
    if (word == "words") print(retired_words(tree));
    if (word == "widths") print(markdown_widths(tree));
    if (word == "headers") print(short_headers(tree));
    if (word == "paths") print(documented_paths(tree));
  }
}
