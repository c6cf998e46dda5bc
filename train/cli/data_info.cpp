// SPDX-License-Identifier: Apache-2.0
#include "train/cli/data_info.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "data/datasets/open_dataset.h"
#include "data/datasets/statistics.h"
#include "data/fetch/catalogue.h"
#include "train/cli/data_options.h"

namespace gradring::train {
namespace {

constexpr const char* kHead =
    "gradring data info: what there is to fetch, or what a data set holds\n\n"
    "  gradring data info                                every data set\n"
    "  gradring data info NAME [--data-dir D]            one, from its files\n\n"
    "Options; in brackets the default:\n";

std::uint64_t bytes_to_fetch(const data::CatalogueEntry& entry) {
  std::uint64_t bytes = entry.archive.bytes;
  if (bytes == 0)
    for (const data::CatalogueFile& file : entry.files) bytes += file.file.bytes;
  return bytes;
}

void print_catalogue() {
  for (const data::CatalogueEntry& entry : data::catalogue())
    fmt::print("{}\n  {}\n  by {}\n  {} to fetch: gradring data fetch {}\n  from {}\n\n", entry.name, entry.title,
               entry.authors, megabytes(bytes_to_fetch(entry)), entry.name, fmt::join(entry.mirrors, "\n       "));
  fmt::print("digits\n  handwritten-looking digits, made on the spot: nothing to fetch\n");
}

void print_split(const data::Dataset& dataset, data::Split split) {
  const data::DatasetStatistics found = data::statistics_of(dataset);
  fmt::print("{:<6} {} samples of {}, {} classes of {} to {} samples each\n", name_of(split), dataset.size(),
             dataset.shape().to_string(), dataset.classes(), std::ranges::min(found.samples_of_class),
             std::ranges::max(found.samples_of_class));
  fmt::print("       mean {:.4f}, standard deviation {:.4f} by channel, of pixels from 0 to 1\n",
             fmt::join(found.mean, " "), fmt::join(found.std, " "));
}

}  // namespace

void data_info(std::span<const std::string> args) {
  std::string data_dir;
  CommandLine line{.command = "gradring data info", .options = {}, .takes_words = true};
  line.options.push_back(data_dir_option(data_dir));
  const CommandWords words = read_command_line(line, args);
  if (words.help) {
    fmt::print("{}{}", kHead, help_of(line.options));
    return;
  }
  if (words.words.empty()) return print_catalogue();
  const std::string& name = only_name(words, line);
  for (const data::Split split : {data::Split::train, data::Split::test})
    print_split(*data::open_dataset(name, split, data_dir), split);
}

}  // namespace gradring::train
