// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/dataset_files.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "data/datasets/known_datasets.h"
#include "data/files/byte_source.h"
#include "data/files/mistaken_file.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSide = 32, kPlane = kSide * kSide, kChannels = 3, kPixels = kChannels * kPlane;

/// Of the two datasets' files.
struct Format {
  std::string_view name, title;
  std::size_t label_bytes;  ///< of a record, before its pixels; the last one counts
  int classes;
  std::vector<std::string> train_files, test_files;
  const char* python_folder;

  std::size_t record_bytes() const { return label_bytes + kPixels; }
};

const Format& format_of(Cifar which) {
  static const Format ten = {
      "cifar10",
      "CIFAR-10",
      1,
      10,
      {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
      {"test_batch.bin"},
      "cifar-10-batches-py"};
  static const Format hundred = {"cifar100", "CIFAR-100", 2, 100, {"train.bin"}, {"test.bin"}, "cifar-100-python"};
  return which == Cifar::ten ? ten : hundred;
}

std::size_t count_records(const Format& format, const fs::path& path, ByteSource& source) {
  const std::uint64_t bytes = source.most_bytes();
  if (bytes == 0) throw DataError(path, "is empty", kDownloadAgain);
  if (bytes % format.record_bytes() == 0) return bytes / format.record_bytes();
  std::array<std::uint8_t, kStartBytes> start{};
  const std::size_t count = source.read(start);
  if (const auto mistaken = find_mistaken_file(std::string(start.begin(), start.begin() + count)))
    throw DataError(path, mistaken->what, mistaken->advice);
  throw DataError(path,
                  "has " + std::to_string(bytes) + " bytes, expected a multiple of " +
                      std::to_string(format.record_bytes()) +
                      " (a record): it is truncated, or not the binary version of " + std::string(format.title),
                  kDownloadAgain);
}

/// Three planes to pixels of three bytes.
void interleave(std::span<const std::uint8_t, kPixels> planes, std::uint8_t* pixels) {
  for (std::size_t i = 0; i < kPlane; ++i)
    for (std::size_t channel = 0; channel < kChannels; ++channel)
      pixels[i * kChannels + channel] = planes[channel * kPlane + i];
}

[[noreturn]] void throw_missing(const Format& format, const std::vector<fs::path>& folders, const std::string& name,
                                const std::string& fetch) {
  const std::string title(format.title);
  check_missing(folders, std::span(&name, 1));
  const std::string pickled = name.substr(0, name.find('.'));  // "data_batch_1", the file of the Python version
  for (const fs::path& parent : folders)
    for (const fs::path& folder : {parent, parent / format.python_folder})
      if (is_file(folder / pickled))
        throw DataError(folder, "holds the Python version of " + title + ", which is not supported",
                        "download the binary version: " + fetch);
  std::string searched;
  for (const fs::path& folder : folders) searched += (searched.empty() ? "" : ", ") + folder.string();
  throw DataError(folders.back(), "found no " + name + " in " + searched,
                  "download it: " + fetch + "; or name the folder that has " + title + "'s binary version");
}

void check_equal_sizes(const std::vector<fs::path>& files, const std::vector<std::size_t>& counts) {
  const auto least = std::ranges::min_element(counts), most = std::ranges::max_element(counts);
  if (*most == *least) return;
  const auto file = [&](auto position) { return files[static_cast<std::size_t>(position - counts.begin())]; };
  throw DataError(file(least),
                  "holds " + std::to_string(*least) + " records, but " + file(most).filename().string() + " holds " +
                      std::to_string(*most) + ": it is truncated",
                  kDownloadAgain);
}

void append_records(const Format& format, const fs::path& path, std::vector<std::uint8_t>& pixels,
                    std::vector<std::int32_t>& labels) {
  const auto source = open_plain(path);
  const std::size_t count = count_records(format, path, *source);
  std::size_t filled = pixels.size();
  pixels.resize(filled + count * kPixels);
  std::vector<std::uint8_t> record(format.record_bytes());
  for (std::size_t index = 0; index < count; ++index, filled += kPixels) {
    if (source->read(record) != record.size())
      throw DataError(path, "became shorter while it was read", kDownloadAgain);
    const int label = record[format.label_bytes - 1];
    if (label >= format.classes)
      throw DataError(
          path,
          "has label " + std::to_string(label) + " in record " + std::to_string(index) + ", expected 0 to " +
              std::to_string(format.classes - 1),
          "check that it is the binary version of " + std::string(format.title) + ", not of another dataset");
    labels.push_back(label);
    interleave(std::span(record).last<kPixels>(), pixels.data() + filled);
  }
}

}  // namespace

std::vector<fs::path> find_cifar_files(Cifar which, Split split, const std::vector<fs::path>& folders,
                                       const std::string& fetch) {
  const Format& format = format_of(which);
  const std::vector<std::string>& names = split == Split::train ? format.train_files : format.test_files;
  for (const fs::path& folder : folders) {
    if (!is_file(folder / names.front())) continue;
    std::vector<fs::path> files;
    for (const std::string& name : names) {
      if (!is_file(folder / name)) throw_missing(format, {folder}, name, fetch);
      files.push_back(folder / name);
    }
    return files;
  }
  throw_missing(format, folders, names.front(), fetch);
}

std::unique_ptr<Dataset> open_cifar(Cifar which, const std::vector<fs::path>& files) {
  const Format& format = format_of(which);
  std::vector<std::size_t> counts;
  for (const fs::path& file : files) counts.push_back(count_records(format, file, *open_plain(file)));
  check_equal_sizes(files, counts);
  const std::size_t records = files.size() * counts.front();
  require_memory(files.front().parent_path(), "its " + std::to_string(records) + " records",
                 records * format.record_bytes());
  InMemoryDataset::Contents contents{.name = std::string(format.name),
                                     .shape = {kSide, kSide, kChannels},
                                     .classes = format.classes,
                                     .class_names = known_dataset(format.name).class_names};
  contents.pixels.reserve(records * kPixels);
  contents.labels.reserve(records);
  for (const fs::path& file : files) append_records(format, file, contents.pixels, contents.labels);
  return std::make_unique<InMemoryDataset>(std::move(contents));
}

}  // namespace gradring::data
