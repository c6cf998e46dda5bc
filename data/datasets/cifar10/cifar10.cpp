// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/cifar10/cifar10.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

#include "data/datasets/cifar10/cifar10_file.h"
#include "data/datasets/in_memory_dataset.h"
#include "data/error.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_of(Split split) {
  if (split == Split::test) return {"test_batch.bin"};
  return {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"};
}

bool has(const fs::path& folder, const std::string& name) {
  std::error_code unreadable;  // then it is not found
  return fs::is_regular_file(folder / name, unreadable);
}

[[noreturn]] void missing(const std::vector<fs::path>& folders, const std::string& name, const std::string& fetch) {
  const std::string pickled = name.substr(0, name.find('.'));  // "data_batch_1", the file of the Python version
  for (const fs::path& folder : folders)
    for (const fs::path& place : {folder, folder / "cifar-10-batches-py"})
      if (has(place, pickled))
        throw DataError(place, "holds the Python version of CIFAR-10, which is not read here",
                        "get the binary version: " + fetch);
  std::string places;
  for (const fs::path& folder : folders) places += (places.empty() ? "" : ", ") + folder.string();
  throw DataError(folders.back(), "found no " + name + " in " + places,
                  "get it: " + fetch + "; or name the folder that has CIFAR-10's binary version");
}

void check_equal_sizes(const std::vector<fs::path>& files, const std::vector<std::size_t>& counts) {
  const auto most = std::max_element(counts.begin(), counts.end());
  const auto least = std::min_element(counts.begin(), counts.end());
  if (*most == *least) return;
  const auto name = [&](auto position) { return files[static_cast<std::size_t>(position - counts.begin())]; };
  throw DataError(name(least),
                  "holds " + std::to_string(*least) + " records, but " + name(most).filename().string() + " holds " +
                      std::to_string(*most) + ": it is cut short",
                  "delete the file and get it again");
}

}  // namespace

std::vector<fs::path> find_cifar10_files(Split split, const std::vector<fs::path>& folders, const std::string& fetch) {
  const auto names = names_of(split);
  for (const fs::path& folder : folders) {
    if (!has(folder, names.front())) continue;
    std::vector<fs::path> files;
    for (const std::string& name : names) {
      if (!has(folder, name)) missing({folder}, name, fetch);
      files.push_back(folder / name);
    }
    return files;
  }
  missing(folders, names.front(), fetch);
}

std::unique_ptr<Dataset> open_cifar10(const std::vector<fs::path>& files) {
  std::vector<std::size_t> counts;
  std::ranges::transform(files, std::back_inserter(counts), count_cifar10);
  check_equal_sizes(files, counts);
  Cifar10Records records;
  records.pixels.reserve(files.size() * counts.front() * Cifar10Records::kPixels);
  records.labels.reserve(files.size() * counts.front());
  for (const fs::path& file : files) append_cifar10(file, records);
  constexpr std::int64_t kSide = Cifar10Records::kSide, kChannels = Cifar10Records::kChannels;
  return std::make_unique<InMemoryDataset>(InMemoryDataset::Contents{.name = "cifar10",
                                                                     .shape = {kSide, kSide, kChannels},
                                                                     .classes = Cifar10Records::kClasses,
                                                                     .pixels = std::move(records.pixels),
                                                                     .labels = std::move(records.labels)});
}

}  // namespace gradring::data
