// SPDX-License-Identifier: Apache-2.0
#include "train/cli/data_verify.h"

#include <fmt/format.h>

#include "data/error.h"
#include "data/fetch/verify.h"
#include "train/cli/data_options.h"

namespace gradring::train {
namespace {

constexpr const char* kHead =
    "gradring data verify: compare a data set's files with what they should be\n\n"
    "  gradring data verify NAME [--data-dir D]          mnist, fashion-mnist or cifar10\n\n"
    "Options; in brackets the default:\n";

}  // namespace

void data_verify(std::span<const std::string> args) {
  std::string data_dir;
  CommandLine line{.command = "gradring data verify", .options = {}, .takes_words = true};
  line.options.push_back(data_dir_option(data_dir));
  const CommandWords words = read_command_line(line, args);
  if (words.help) {
    fmt::print("{}{}", kHead, help_of(line.options));
    return;
  }
  const data::CatalogueEntry& entry = data::find_entry(only_name(words, line));
  std::size_t faults = 0;
  for (const data::VerifiedFile& file : data::verify(entry, data_dir)) {
    const bool good = file.check.state == data::FileState::good;
    fmt::print("{:<4} {}{}\n", good ? "ok" : "BAD", file.path.string(), good ? "" : ": " + file.check.found);
    faults += !good;
  }
  if (faults > 0)
    throw data::DataError(
        data_dir, fmt::format("{} of {} files of {} are missing or wrong", faults, entry.files.size(), entry.name),
        fmt::format("get them: gradring data fetch {} --data-dir {}", entry.name, data_dir));
}

}  // namespace gradring::train
