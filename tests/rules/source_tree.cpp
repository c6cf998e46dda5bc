// SPDX-License-Identifier: Apache-2.0
#include "tests/rules/source_tree.h"

#include <algorithm>
#include <fstream>

#include "tests/rules/pattern.h"

namespace gradring::rules {
namespace {

namespace fs = std::filesystem;

bool is_left_out(const fs::path& top) {
  const std::string name = top.filename().string();
  return name == "build" || name == "dist" || name == "runs" ||
         (name.starts_with('.') && name != ".ci" && name != ".clang-tidy");
}

bool is_text(const fs::path& path) {
  static const std::set<std::string> extensions = {".h",  ".cpp",   ".cu",  ".cuh",  ".md",
                                                   ".sh", ".cmake", ".txt", ".json", ".py"};
  return extensions.contains(path.extension().string()) || path.filename() == "run" || path.filename() == ".clang-tidy";
}

SourceFile read_file(const fs::path& root, const fs::path& path) {
  SourceFile file;
  file.path = path.lexically_relative(root).generic_string();
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) file.text.push_back(line);
  if (file.is_cpp()) file.code = without_comments(file.text);
  return file;
}

/// Blanks one file's comments and literals, line by line; remembers an open block comment or raw string in between.
class Blanker {
 public:
  std::string blank(const std::string& line) {
    std::string out;
    std::size_t at = 0;
    while (at < line.size()) {
      if (!until_.empty())
        at = skip(line, at, out);
      else if (line.compare(at, 2, "//") == 0)
        break;
      else if (line.compare(at, 2, "/*") == 0)
        at = open_comment(at, out);
      else if (line.compare(at, 2, "R\"") == 0)
        at = open_raw_string(line, at, out);
      else if (line[at] == '"' || is_character_quote(line, at))
        at = skip_literal(line, at, out);
      else
        out += line[at++];
    }
    return out;
  }

 private:
  std::size_t open_comment(std::size_t at, std::string& out) {
    until_ = "*/";
    out.append(2, ' ');
    return at + 2;
  }

  std::size_t skip(const std::string& line, std::size_t at, std::string& out) {
    const std::size_t end = line.find(until_, at);
    const std::size_t next = end == std::string::npos ? line.size() : end + until_.size();
    if (end != std::string::npos) until_.clear();
    out.append(next - at, ' ');
    return next;
  }

  std::size_t open_raw_string(const std::string& line, std::size_t at, std::string& out) {
    const std::size_t parenthesis = line.find('(', at);
    if (parenthesis == std::string::npos) return line.size();
    until_ = ")" + line.substr(at + 2, parenthesis - at - 2) + "\"";
    out.append(parenthesis + 1 - at, ' ');
    return parenthesis + 1;
  }

  /// 1'000 separates digits; after anything else a single quote opens a character.
  static bool is_character_quote(const std::string& line, std::size_t at) {
    return line[at] == '\'' && (at == 0 || std::isalnum(static_cast<unsigned char>(line[at - 1])) == 0);
  }

  static std::size_t skip_literal(const std::string& line, std::size_t at, std::string& out) {
    const char quote = line[at];
    std::size_t end = at + 1;
    while (end < line.size() && line[end] != quote) end += line[end] == '\\' ? 2 : 1;
    end = std::min(end + 1, line.size());
    out += quote + std::string(end - at > 2 ? end - at - 2 : 0, ' ') + quote;
    return end;
  }

  std::string until_;  ///< what ends the comment or raw string that is open, empty when none is
};

}  // namespace

std::string_view SourceFile::package() const {
  const std::size_t slash = path.find('/');
  return slash == std::string::npos ? std::string_view() : std::string_view(path).substr(0, slash);
}

bool SourceFile::in(std::string_view folder) const { return path.starts_with(std::string(folder) + "/"); }

bool SourceFile::has_extension(std::initializer_list<std::string_view> extensions) const {
  return std::ranges::any_of(extensions, [&](std::string_view extension) { return path.ends_with(extension); });
}

std::vector<std::string> without_comments(const std::vector<std::string>& lines) {
  std::vector<std::string> code;
  Blanker blanker;
  for (const std::string& line : lines) code.push_back(line.starts_with("#include") ? line : blanker.blank(line));
  return code;
}

SourceTree read_tree(const fs::path& root) {
  SourceTree tree;
  tree.root = root;
  for (const fs::directory_entry& top : fs::directory_iterator(root)) {
    if (is_left_out(top.path())) continue;
    if (!top.is_directory()) {
      if (is_text(top.path())) tree.files.push_back(read_file(root, top.path()));
      continue;
    }
    if (top.path().filename() != ".ci") tree.top_level_folders.push_back(top.path().filename().string());
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top.path()))
      if (entry.is_regular_file() && is_text(entry.path())) tree.files.push_back(read_file(root, entry.path()));
  }
  std::ranges::sort(tree.files, {}, &SourceFile::path);
  for (const SourceFile& file : tree.files) tree.paths.insert(file.path);
  return tree;
}

namespace {

std::vector<Include> includes_of(const SourceFile& file) {
  static const Pattern pattern(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<Include> found;
  for (std::size_t i = 0; i < file.code.size(); ++i)
    for (const auto& match : pattern.all_in(file.code[i]))
      found.push_back({.target = match[2], .quoted = match[1] == "\"", .line = static_cast<int>(i) + 1});
  return found;
}

}  // namespace

void each_include(const SourceTree& tree, const std::function<void(const SourceFile&, const Include&)>& visit) {
  for (const SourceFile& file : tree.files)
    for (const Include& include : includes_of(file)) visit(file, include);
}

std::string room_of(const std::string& path) {
  static const std::set<std::string> groups = {"kernels/ops", "train/app", "train/core", "train/records", "train/view"};
  const fs::path folder = fs::path(path).parent_path();
  fs::path room;
  int parts = 0;
  for (const fs::path& part : folder)
    if (parts < 2 || (parts == 2 && groups.contains(room.generic_string()))) room /= part, ++parts;
  return room.generic_string();
}

bool is_production(const SourceFile& file) {
  static const std::set<std::string_view> packages = {"comm", "data", "kernels", "nn", "train"};
  return file.is_cpp() && packages.contains(file.package());
}

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().generic_string(); }

std::string direct_folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  fs::path direct;
  int parts = 0;
  for (const fs::path& part : folder)
    if (parts++ < 2) direct /= part;
  return direct.generic_string();
}

}  // namespace gradring::rules
