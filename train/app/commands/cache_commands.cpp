// SPDX-License-Identifier: Apache-2.0
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "data/datasets/image_cache.h"
#include "data/files/byte_source.h"
#include "train/app/commands/commands.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/byte_text.h"
#include "train/view/runs/text_table.h"

namespace gradring::train {
namespace {

constexpr std::size_t kShownDigits = 12;

std::string cache_size_text(std::uint64_t bytes) { return file_size_text(static_cast<double>(bytes)); }

struct ListCacheOptions {};

CommandLine command_line(ListCacheOptions&) {
  return {.command = "gradring data cache ls",
          .purpose = "decoded images of image folders that are kept for later starts",
          .usage = {"gradring data cache ls"},
          .options = {},
          .notes =
              "They are in images below GRADRING_CACHE_DIR, or below gradring in XDG_CACHE_HOME (default "
              "~/.cache). A start makes again what is missing."};
}

std::vector<std::string> row_of(const data::CachedImages& images) {
  const data::PackedFacts& facts = images.facts;
  const auto used = std::chrono::system_clock::to_time_t(images.used);
  std::vector<std::string> row = {images.key.substr(0, kShownDigits), cache_size_text(images.bytes),
                                  fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(used))};
  if (!images.damage.empty()) return row.insert(row.end(), {"", "", "damaged"}), row;
  row.insert(row.end(), {std::to_string(facts.labels.size() - facts.broken.size()),
                         fmt::format("{0} x {0}", facts.size), facts.source});
  return row;
}

void run(const ListCacheOptions&) {
  const std::filesystem::path folder = data::default_image_cache();
  const std::vector<data::CachedImages> all = data::cached_images(folder);
  if (all.empty()) return print_text("no images in {}\n", folder.string());
  TextTable table{.columns = {{.head = "key"},
                              {.head = "size", .right_aligned = true},
                              {.head = "last used"},
                              {.head = "images", .right_aligned = true},
                              {.head = "pixels", .right_aligned = true},
                              {.head = "folder"}},
                  .gap = 2};
  std::uint64_t bytes = 0;
  for (const data::CachedImages& images : all) {
    table.rows.push_back(row_of(images));
    bytes += images.bytes;
  }
  print_shown(table.text());
  print_text("{} in {}\n", cache_size_text(bytes), folder.string());
}

struct RemoveCacheOptions {
  bool all = false;
};

CommandLine command_line(RemoveCacheOptions& options) {
  return {.command = "gradring data cache rm",
          .purpose = "removal of decoded images",
          .usage = {"gradring data cache rm KEY...", "gradring data cache rm --all"},
          .options = {switch_option("all", "all of them", options.all)},
          .takes_words = true,
          .notes =
              "KEY is one of gradring data cache ls, or its first characters. The images of the folder stay; runs "
              "that have the decoded ones open keep them until they end."};
}

/// The one whose key begins with `word`.
const data::CachedImages& find_cached(const std::vector<data::CachedImages>& all, const std::string& word) {
  const data::CachedImages* found = nullptr;
  for (const data::CachedImages& images : all) {
    if (word.empty() || !images.key.starts_with(word)) continue;
    if (found) throw UsageError(fmt::format("several keys begin with '{}': give more of it", word));
    found = &images;
  }
  if (!found) throw UsageError(fmt::format("no key begins with '{}': see gradring data cache ls", word));
  return *found;
}

void run(const RemoveCacheOptions& options, const Words& words) {
  if (options.all != words.empty())
    throw UsageError(options.all ? "--all removes every key: leave the keys out, or --all"
                                 : "no images to remove: use gradring data cache rm KEY..., or --all");
  const std::filesystem::path folder = data::default_image_cache();
  const std::vector<data::CachedImages> all = data::cached_images(folder);
  std::vector<const data::CachedImages*> removed;
  for (const std::string& word : words) removed.push_back(&find_cached(all, word));
  if (options.all)
    for (const data::CachedImages& images : all) removed.push_back(&images);
  for (const data::CachedImages* images : removed) {
    data::remove_cached(folder, images->key);
    print_text("removed {}: {}\n", images->key.substr(0, kShownDigits), cache_size_text(images->bytes));
  }
  if (options.all) data::remove_cached(folder, "");
}

}  // namespace

const Command kDataCacheLs = make_command<ListCacheOptions>("ls", "decoded images, and their size");
const Command kDataCacheRm = make_command<RemoveCacheOptions>("rm", "removal of decoded images");

}  // namespace gradring::train
