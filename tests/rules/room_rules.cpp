// SPDX-License-Identifier: Apache-2.0
// The rooms of train, as train/CMakeLists.txt declares them, and what their files include.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/rules/pattern.h"
#include "tests/rules/rules.h"

namespace gradring::rules {
namespace {

constexpr const char* kDeclarations = "train/CMakeLists.txt";

/// Dependency ("ddp", "gradring_nn") and the line that states it.
using Stated = std::map<std::string, int, std::less<>>;

/// Of every `gradring_room(name ROOMS ... LIBRARIES ... SOURCES ...)`, by name.
std::map<std::string, Stated, std::less<>> declared_rooms(const SourceFile& cmake) {
  static const Pattern opening(R"re(^gradring_room\(([a-z_]+/)?([a-z_]+))re");
  std::map<std::string, Stated, std::less<>> rooms;
  Stated* stated = nullptr;  // of the room whose declaration is read
  for (std::size_t i = 0; i < cmake.text.size(); ++i) {
    std::string code = cmake.text[i].substr(0, cmake.text[i].find('#'));
    if (const auto name = opening.all_in(code); !name.empty()) {
      stated = &rooms[name.front()[2]];
      code = code.substr(name.front()[0].size());
    }
    const bool last = code.find(')') != std::string::npos;
    std::ranges::replace(code, ')', ' ');
    std::istringstream words(code);
    for (std::string word; stated && words >> word;) {
      if (word == "SOURCES")
        stated = nullptr;
      else if (word != "ROOMS" && word != "LIBRARIES")
        stated->emplace(word, static_cast<int>(i) + 1);
    }
    if (last) stated = nullptr;
  }
  return rooms;
}

/// "ddp" of "train/core/ddp/deep/buckets.h".
std::string room_name(const std::string& path) {
  const std::string room = room_of(path);
  return room.substr(room.rfind('/') + 1);
}

/// What a room must state to include a file: one of these names, or nothing if the set is empty.
std::set<std::string> dependency_for(const std::string& target) {
  const std::string package = target.substr(0, target.find('/'));
  if (package == "train") return {room_name(target)};
  if (target.starts_with("kernels/bench/")) return {"gradring_bench", "gradring_kernels_bench"};
  if (target.starts_with(package + "/bench/")) return {"gradring_" + package + "_bench"};
  if (package == "nn" || package == "comm" || package == "data") return {"gradring_" + package};
  return {};  // kernels, which all rooms build upon
}

/// Whether the files of a room must include something of a dependency that it states.
bool must_be_included(const std::string& name) {
  static const Pattern library(
      "[:$]|^gradring_(commit|counters_table|gpu_cards|kernels|nn_bench|run_options)$");  // of others, or not a folder
  return !library.found_in(name);
}

}  // namespace

Violations stated_rooms(const SourceTree& tree) {
  Violations found;
  const auto cmake =
      std::ranges::find_if(tree.files, [](const SourceFile& file) { return file.path == kDeclarations; });
  if (cmake == tree.files.end()) return found;
  const auto rooms = declared_rooms(*cmake);
  std::map<std::string, std::set<std::string>, std::less<>> included;
  each_include(tree, [&](const SourceFile& file, const Include& include) {
    if (file.package() != "train" || !tree.paths.contains(include.target)) return;
    const std::string room = room_name(file.path);
    const std::set<std::string> names = dependency_for(include.target);
    if (names.empty() || names.contains(room)) return;
    included[room].insert(names.begin(), names.end());
    const auto declared = rooms.find(room);
    if (declared == rooms.end())
      found.push_back({file.path, include.line, "no gradring_room(" + room + " ...) in " + kDeclarations});
    else if (std::ranges::none_of(names, [&](const std::string& name) { return declared->second.contains(name); }))
      found.push_back(
          {file.path, include.line,
           "room " + room + " does not state " + *names.begin() + ", of which it includes " + include.target});
  });
  for (const auto& [room, stated] : rooms)
    for (const auto& [name, line] : stated)
      if (must_be_included(name) && !included[room].contains(name))
        found.push_back({kDeclarations, line, "room " + room + " states " + name + ", but includes nothing of it"});
  return found;
}

Violations bench_includes(const SourceTree& tree) {
  // Also benchmarks: libraries as peers of our kernels, and the module that brings them; the program, which runs them.
  static const Pattern benchmark(
      R"re((^|/)bench/|_peers\.(h|cpp)$|^train/(app/program/|core/cuda_module/.*\.cpp$)|^tests/)re");
  Violations found;
  each_include(tree, [&](const SourceFile& file, const Include& include) {
    if (tree.paths.contains(include.target) && benchmark.found_in(include.target) && !benchmark.found_in(file.path))
      found.push_back(
          {file.path, include.line, include.target + " belongs to the benchmarks, which training does not link"});
  });
  return found;
}

}  // namespace gradring::rules
