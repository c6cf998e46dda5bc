// SPDX-License-Identifier: Apache-2.0
// Types that are defined twice under one name, which no compiler and no linker reports.
#include <map>
#include <string>
#include <vector>

#include "tests/rules/pattern.h"
#include "tests/rules/rules.h"

namespace gradring::rules {
namespace {

struct Definition {
  std::string name;  ///< "gradring::train::Option"
  int line = 0;
};

/// Finds the types that one file defines for the whole program: outside of functions, types and unnamed namespaces.
class TypeScanner {
 public:
  std::vector<Definition> scan(const SourceFile& file) {
    bool directive = false;  // a preprocessor line, or its continuation
    for (std::size_t i = 0; i < file.code.size(); ++i) {
      const std::string& line = file.code[i];
      directive = directive || line.starts_with('#');
      if (!directive)
        for (const char each : line + ' ') take(each, static_cast<int>(i) + 1);
      directive = directive && line.ends_with('\\');
    }
    return found_;
  }

 private:
  struct Scope {
    std::string name;      ///< of a namespace
    bool visible = false;  ///< a namespace with a name
  };

  void take(char each, int line) {
    if (each == '{') {
      open(line);
    } else if (each == '}' && !scopes_.empty()) {
      scopes_.pop_back();
    } else if (each != ';') {
      head_ += each;
      return;
    }
    head_.clear();
  }

  /// What precedes a brace tells what it opens.
  void open(int line) {
    static const Pattern space(R"re(^\s*(inline\s+)?namespace\s+([A-Za-z_:]+)\s*$)re");
    static const Pattern type(
        R"re((^|\s)(struct|class|union|enum)(\s+class)?\s+([A-Za-z_]\w*)(\s+final)?\s*(:[^:(][^(]*)?$)re");
    if (const auto match = space.all_in(head_); !match.empty()) {
      scopes_.push_back({match.front()[2], true});
      return;
    }
    if (const auto match = type.all_in(head_); !match.empty() && everyone_sees_it())
      found_.push_back({path() + match.front()[4], line});
    scopes_.push_back({});
  }

  bool everyone_sees_it() const {
    for (const Scope& scope : scopes_)
      if (!scope.visible) return false;
    return true;
  }

  std::string path() const {
    std::string text;
    for (const Scope& scope : scopes_) text += scope.name + "::";
    return text;
  }

  std::vector<Scope> scopes_;
  std::string head_;  ///< text since the last brace or semicolon
  std::vector<Definition> found_;
};

}  // namespace

Violations repeated_types(const SourceTree& tree) {
  std::map<std::string, std::string> first;  // file of each type
  Violations found;
  for (const SourceFile& file : tree.files) {
    if (!file.is_cpp() || file.package() == "tests") continue;
    for (const Definition& each : TypeScanner().scan(file)) {
      const auto [seen, is_new] = first.emplace(each.name, file.path);
      if (!is_new && seen->second != file.path)
        found.push_back({file.path, each.line, each.name + " is also defined in " + seen->second});
    }
  }
  return found;
}

}  // namespace gradring::rules
