// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/rules/source_tree.h"

namespace gradring::rules {

/// Where a rule of docs/architecture.md is broken.
struct Violation {
  std::string path;
  int line = 0;  ///< from 1; 0 when the whole file is meant
  std::string message;

  bool operator==(const Violation&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Violation& violation);

using Violations = std::vector<Violation>;

// Who may include whom.
Violations include_directions(const SourceTree& tree);  ///< packages include downwards only
Violations include_paths(const SourceTree& tree);       ///< by full path from the root, of a file that is there
Violations vendor_doors(const SourceTree& tree);        ///< each vendor's headers in one folder only
Violations folder_cycles(const SourceTree& tree);       ///< rooms, or direct folders, that include each other
Violations upward_includes(const SourceTree& tree);  ///< of a folder that encloses the including one, and includes it
Violations stated_rooms(const SourceTree& tree);     ///< train/CMakeLists.txt states what each room includes, no more
Violations bench_includes(const SourceTree& tree);   ///< only benchmarks include benchmarks

Violations short_headers(const SourceTree& tree);  ///< under 40 lines and of one includer: a part of that file

/// Of each header, the files of production code that include it, its own source aside.
std::map<std::string, std::set<std::string>> other_includers(const SourceTree& tree);

// What may stand in a file.
Violations conditional_compilation(const SourceTree& tree);  ///< only where two compilers read one text
Violations raw_shared_memory(const SourceTree& tree);        ///< SIMT_SHARED elsewhere, so that checks see its bounds
Violations device_code(const SourceTree& tree);              ///< in .cu and .cuh, and nothing else there
Violations processor_counts(const SourceTree& tree);         ///< usable_processors(), which knows of quotas
Violations unescaped_output(const SourceTree& tree);         ///< print_text, print_to_stderr: names come from files
Violations headers_once(const SourceTree& tree);             ///< #pragma once in every header
Violations licence_lines(const SourceTree& tree);            ///< one SPDX line at the top
Violations machine_paths(const SourceTree& tree);            ///< no path that holds on one machine only
Violations retired_words(const SourceTree& tree);            ///< words of tests/rules/retired_words.h

// How the tree is laid out.
Violations repeated_types(const SourceTree& tree);   ///< no type is defined in two files
Violations settled_folders(const SourceTree& tree);  ///< the root's, those of packages, and the files of kernels/base
Violations file_lengths(const SourceTree& tree);     ///< past 400 lines there is surely a second concept

// What documents say.
Violations markdown_widths(const SourceTree& tree);   ///< at most 100 columns, but for tables, links and code blocks
Violations ctest_commands(const SourceTree& tree);    ///< fail where no test matches: by a preset, or --no-tests=error
Violations documented_paths(const SourceTree& tree);  ///< a file that a document or comment names is there

}  // namespace gradring::rules
