// SPDX-License-Identifier: Apache-2.0
#include "train/cli/parse_train.h"

#include <algorithm>
#include <vector>

#include "kernels/runtime/nearest_name.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

constexpr const char* kSeeHelp = "; see gradring train --help";

/// One word of the command line, taken apart: --name, or --name=value.
struct Word {
  std::string name;
  std::optional<std::string> value;
};

Word split(const std::string& text) {
  if (!text.starts_with("--") || text == "--")
    throw UsageError("'" + text + "' is not understood: options begin with --" + kSeeHelp);
  const std::size_t end = std::min(text.find('='), text.size());
  Word word{.name = text.substr(2, end - 2), .value = std::nullopt};
  std::ranges::replace(word.name, '_', '-');
  if (end < text.size()) word.value = text.substr(end + 1);
  return word;
}

[[noreturn]] void refuse_unknown(const std::string& name) {
  std::vector<std::string_view> names = {"config", "print-config", "dry-run", "help"};
  for (const Option& option : train_options()) names.push_back(option.name);
  throw UsageError("there is no option --" + name + "." + did_you_mean(name, names));
}

/// Reads `args` from the front to the back.
class Reader {
 public:
  explicit Reader(std::span<const std::string> args) : args_(args) {}

  ParsedTrain read() {
    while (next_ < args_.size()) read_one();
    return std::move(parsed_);
  }

 private:
  void read_one() {
    if (args_[next_] == "-h") return read_switch(parsed_.help, {.name = "help", .value = std::nullopt});
    const Word word = split(args_[next_]);
    if (word.name == "help") return read_switch(parsed_.help, word);
    if (word.name == "print-config") return read_switch(parsed_.print_config, word);
    if (word.name == "dry-run") return read_switch(parsed_.dry_run, word);
    ++next_;
    if (word.name == "config") {
      parsed_.config_file = value_of(word);
      return;
    }
    const Option* option = find_option(word.name);
    if (!option) refuse_unknown(word.name);
    parsed_.options[word.name] = option->is_flag() ? word.value.value_or("true") : value_of(word);
  }

  void read_switch(bool& on, const Word& word) {
    if (word.value) throw UsageError("--" + word.name + " takes no value" + kSeeHelp);
    on = true;
    ++next_;
  }

  std::string value_of(const Word& word) {
    if (word.value) return *word.value;
    if (next_ == args_.size() || args_[next_].starts_with("--"))
      throw UsageError("--" + word.name + " needs a value" + kSeeHelp);
    return args_[next_++];
  }

  std::span<const std::string> args_;
  std::size_t next_ = 0;
  ParsedTrain parsed_;
};

}  // namespace

ParsedTrain parse_train(std::span<const std::string> args) { return Reader(args).read(); }

}  // namespace gradring::train
