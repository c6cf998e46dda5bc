// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ostream>
#include <span>

#include "tests/rules/pattern.h"
#include "tests/rules/retired_words.h"
#include "tests/rules/rules.h"

namespace gradring::rules {
namespace {

/// A violation for each line of code that matches, in the files that `covers` picks.
template <class Covers>
Violations lines_matching(const SourceTree& tree, const char* pattern, const std::string& message, Covers covers) {
  Violations found;
  const Pattern wanted(pattern);
  for (const SourceFile& file : tree.files) {
    if (!covers(file)) continue;
    for (std::size_t i = 0; i < file.code.size(); ++i)
      if (wanted.found_in(file.code[i])) found.push_back({file.path, static_cast<int>(i) + 1, message});
  }
  return found;
}

bool in_any(const SourceFile& file, std::initializer_list<std::string_view> folders) {
  return std::ranges::any_of(folders, [&](std::string_view folder) { return file.in(folder); });
}

bool has_line(const std::vector<std::string>& lines, const char* pattern) {
  const Pattern wanted(pattern);
  return std::ranges::any_of(lines, [&](const std::string& line) { return wanted.found_in(line); });
}

struct Retired {
  Pattern pattern;
  std::string message;
};

std::vector<Retired> retired(std::span<const RetiredWord> words) {
  std::vector<Retired> table;
  for (const RetiredWord& word : words)
    table.push_back(
        {.pattern = Pattern(word.pattern, true), .message = std::string("retired word; use ") + word.replacement});
  return table;
}

void add_lines_with(const Retired& word, const SourceFile& file, const std::vector<std::string>& lines,
                    Violations& found) {
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (word.pattern.found_in(lines[i])) found.push_back({file.path, static_cast<int>(i) + 1, word.message});
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Violation& violation) {
  return out << "\n  " << violation.path << ":" << violation.line << ": " << violation.message;
}

Violations conditional_compilation(const SourceTree& tree) {
  return lines_matching(tree, R"(^\s*#\s*(if|ifdef|ifndef)\b)",
                        "no #if in logic: make it a second source file, or a wrapper in kernels/lib",
                        [](const SourceFile& file) {
                          return !in_any(file, {"kernels/simt", "kernels/lib"});
                        });
}

Violations raw_shared_memory(const SourceTree& tree) {
  return lines_matching(
      tree, R"(\b__shared__\b)", "SIMT_SHARED, so that sanitizers see the bounds", [](const SourceFile& file) {
        // The last three: programs that know nothing of gradring.
        return !in_any(file, {"kernels/simt", "tests/kernels/simt", "tests/kernels/simulated_gpu/cudart/drop_in",
                              "docs/cuda", "scripts/foreign_cuda"});
      });
}

Violations unescaped_output(const SourceTree& tree) {
  return lines_matching(
      tree, R"(\bfmt::print\b|\bstd::(cout|cerr|clog|puts|printf)\b)",
      "print_text or print_to_stderr, which escape what a terminal obeys",
      [](const SourceFile& file) { return file.in("train") && file.path != "train/options/print_text.cpp"; });
}

Violations device_code(const SourceTree& tree) {
  Violations found =
      lines_matching(tree, R"(\b__global__\b)", "a kernel belongs into a .cu file", [](const SourceFile& file) {
        return file.has_extension({".h", ".cpp"}) && !in_any(file, {"kernels/simt", "tests/kernels/simt"});
      });
  for (const SourceFile& file : tree.files)
    if (file.has_extension({".cu", ".cuh"}) && !file.in("scripts/foreign_cuda") &&
        !has_line(file.code, R"(\b__(global|device)__\b)"))
      found.push_back({file.path, 0, "no device code: name it .cpp or .h"});
  return found;
}

Violations processor_counts(const SourceTree& tree) {
  return lines_matching(
      tree, R"(\b(hardware_concurrency|get_nprocs|omp_get_num_procs|_SC_NPROCESSORS_\w+)\b)",
      "usable_processors(), which knows of CPU affinity and control groups",
      [](const SourceFile& file) { return file.path != "kernels/base/processors.cpp" && !file.in("tests/rules"); });
}

Violations headers_once(const SourceTree& tree) {
  Violations found;
  for (const SourceFile& file : tree.files)
    if (file.has_extension({".h", ".cuh"}) && !has_line(file.code, R"(^#pragma once$)"))
      found.push_back({file.path, 0, "no #pragma once"});
  return found;
}

Violations licence_lines(const SourceTree& tree) {
  const std::string licence = " SPDX-License-Identifier: Apache-2.0";
  Violations found;
  for (const SourceFile& file : tree.files) {
    if (file.has_extension({".md", ".json", ".txt"}) && !file.has_extension({"CMakeLists.txt"})) continue;
    const std::string expected = (file.is_cpp() ? "//" : "#") + licence;
    const std::size_t first = !file.text.empty() && file.text[0].starts_with("#!") ? 1 : 0;
    if (file.text.size() <= first || file.text[first] != expected)
      found.push_back({file.path, static_cast<int>(first) + 1, "the first line is to be: " + expected});
  }
  return found;
}

Violations machine_paths(const SourceTree& tree) {
  Violations found;
  const Pattern path(R"((^|[^A-Za-z0-9_./}])/(work|home|root|Users|mnt)/)");
  for (const SourceFile& file : tree.files) {
    if (file.in("tests/rules")) continue;  // plants such paths
    for (std::size_t i = 0; i < file.text.size(); ++i)
      if (path.found_in(file.text[i]))
        found.push_back({file.path, static_cast<int>(i) + 1, "a path that holds on one machine only"});
  }
  return found;
}

Violations retired_words(const SourceTree& tree) {
  const std::vector<Retired> words = retired(kRetiredWords), names = retired(kRetiredNames);
  Violations found;
  for (const SourceFile& file : tree.files) {
    if (file.in("tests/rules")) continue;  // lists them
    for (const Retired& word : words) {
      if (word.pattern.found_in(file.path)) found.push_back({file.path, 0, word.message});
      add_lines_with(word, file, file.text, found);
    }
    if (!is_production(file)) continue;
    for (const Retired& name : names) add_lines_with(name, file, file.code, found);
  }
  return found;
}

}  // namespace gradring::rules
