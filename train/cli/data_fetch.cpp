// SPDX-License-Identifier: Apache-2.0
#include "train/cli/data_fetch.h"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "data/fetch/fetch.h"
#include "kernels/runtime/write_all.h"
#include "train/cli/data_options.h"
#include "train/cli/fetch_progress.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

struct Options {
  std::string data_dir;
  std::vector<std::string> mirrors;
};

CommandLine command_line(Options& options) {
  CommandLine line{.command = "gradring data fetch", .options = {}, .takes_words = true};
  line.options.push_back(data_dir_option(options.data_dir));
  line.options.push_back(
      {.name = "mirror",
       .value = "URL",
       .help = "a folder on a server that has the files, instead of the public ones; may be repeated",
       .read = [&options](std::string_view text) {
         if (!text.starts_with("https://") && !text.starts_with("http://"))
           throw UsageError(fmt::format("--mirror is '{}': it must begin with https:// or http://", text));
         options.mirrors.emplace_back(text);
       }});
  return line;
}

constexpr const char* kHead =
    "gradring data fetch: get a data set\n\n"
    "  gradring data fetch NAME [options]                mnist, fashion-mnist or cifar10\n\n"
    "Its files go to D/NAME. What is there and right stays; what broke off is taken up again (NAME.part). Every "
    "file's\n"
    "size and SHA-256 are compared before it gets its name, and a wrong one is removed: a mirror need not be "
    "trusted.\n\n"
    "Options; in brackets the default:\n";
constexpr const char* kFoot =
    "\nExit codes: 0 ok; 2 usage; 3 the network or the disk; 4 what came is not the data set.\n";

}  // namespace

void data_fetch(std::span<const std::string> args) {
  Options options;
  const CommandLine line = command_line(options);
  const CommandWords words = read_command_line(line, args);
  if (words.help) {
    fmt::print("{}{}{}", kHead, help_of(line.options), kFoot);
    return;
  }
  const data::CatalogueEntry& entry = data::find_entry(only_name(words, line));
  Console out;
  out.on_failure([](const std::string& message) {
    print_to_stderr(fmt::format("gradring data fetch: {}; the fetch goes on\n", message));
  });
  const auto progress = make_fetch_progress(out);
  data::fetch(entry, {.data_dir = options.data_dir, .mirrors = options.mirrors}, *progress);
  out.write(
      fmt::format("{0} lies in {1}. Try: gradring train --dataset {0} --data-dir {1}\n", entry.name, options.data_dir));
  out.finish();
}

}  // namespace gradring::train
