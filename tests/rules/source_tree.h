// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gradring::rules {

/// One text file of the tree.
struct SourceFile {
  std::string path;               ///< from the root, with slashes
  std::vector<std::string> text;  ///< its lines
  std::vector<std::string> code;  ///< the same lines, comments and the contents of literals blanked; C++ files only

  std::string_view package() const;  ///< the first folder of the path, empty for a file of the root
  bool in(std::string_view folder) const;
  bool has_extension(std::initializer_list<std::string_view> extensions) const;
  bool is_cpp() const { return has_extension({".h", ".cpp", ".cu", ".cuh"}); }
};

/// Whether it is C++ of a package other than tests.
bool is_production(const SourceFile& file);

/// The files that the rules are about: sources, scripts, CMake, Markdown; not what is built, run or hidden (but .ci).
struct SourceTree {
  std::filesystem::path root;
  std::vector<SourceFile> files;
  std::set<std::string> paths;                 ///< of files
  std::vector<std::string> top_level_folders;  ///< in the root, hidden ones left out
};

SourceTree read_tree(const std::filesystem::path& root);

struct Include {
  std::string target;
  bool quoted = false;
  int line = 0;  ///< from 1
};

/// Calls `visit` for each include of each C++ file.
void each_include(const SourceTree& tree, const std::function<void(const SourceFile&, const Include&)>& visit);

/// "train/core/ddp" of "train/core/ddp/deep/buckets.h", "train/launch" of "train/launch/nodes/leader.h": the library
/// that a file belongs to. "comm" for a file of the package itself.
std::string room_of(const std::string& path);

/// "train/core" of "train/core/ddp/buckets.h": the direct folder of a package, or the package.
std::string direct_folder_of(const std::string& path);

/// "train/core/ddp" of "train/core/ddp/buckets.h".
std::string folder_of(const std::string& path);

/// `lines` with comments and the contents of string and character literals replaced by spaces. The operand of #include
/// stays.
std::vector<std::string> without_comments(const std::vector<std::string>& lines);

}  // namespace gradring::rules
