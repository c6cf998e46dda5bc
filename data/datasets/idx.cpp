// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/dataset_files.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "data/files/byte_source.h"
#include "data/files/mistaken_file.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

/// The types of IDX, by the third byte of such a file; null for another byte.
const char* idx_type(std::uint8_t code) {
  switch (code) {
    case 8: return "unsigned bytes";
    case 9: return "signed bytes";
    case 11: return "16-bit integers";
    case 12: return "32-bit integers";
    case 13: return "32-bit floats";
    case 14: return "64-bit floats";
    default: return nullptr;
  }
}

std::string hex(const std::array<std::uint8_t, 4>& bytes) {
  std::array<char, 12> text{};
  std::snprintf(text.data(), text.size(), "%02x %02x %02x %02x", bytes[0], bytes[1], bytes[2], bytes[3]);
  return text.data();
}

/// The names that mirrors use for one file, the fastest to read first.
std::vector<std::string> spellings(Split split, const std::string& content) {
  const std::string part = split == Split::train ? "train-" : "t10k-";
  const std::string kind = content == "images" ? "idx3-ubyte" : "idx1-ubyte";
  const std::string name = part + content + "-" + kind;
  std::vector<std::string> names = idx_spellings(name);
  for (std::string& packed : idx_spellings(name + ".gz")) names.push_back(std::move(packed));
  return names;
}

std::optional<fs::path> find(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (is_file(folder / name)) return folder / name;
  return std::nullopt;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

[[noreturn]] void throw_missing(const std::vector<fs::path>& folders, const std::vector<std::string>& names,
                                const std::string& fetch) {
  check_missing(folders, names);
  std::vector<std::string> searched;
  for (const fs::path& folder : folders) searched.push_back(folder.string());
  const auto existing = std::ranges::find_if(folders, [](const fs::path& folder) {
    std::error_code unreadable;
    return fs::is_directory(folder, unreadable);
  });
  const bool exists = existing != folders.end();
  throw DataError(exists ? *existing : folders.back(),
                  std::string(exists ? "" : "is not a folder, ") + "found none of the files " + joined(names) + " in " +
                      joined(searched),
                  "download them: " + fetch + "; or name the folder that has them");
}

/// Reads the header first; rejects one that promises more than a file of its size can hold.
class IdxFile {
 public:
  IdxFile(const fs::path& path, int rank) : path_(path), source_(open_plain_or_gzip(path)) {
    if (source_->most_bytes() == 0) throw DataError(path, "is empty", kDownloadAgain);
    check_magic(rank);
    for (int axis = 0; axis < rank; ++axis) {
      std::int64_t extent = 0;
      for (const std::uint8_t byte : read_word()) extent = extent << 8 | byte;
      extents_.push_back(extent);
    }
    count_ = count_values();
  }

  const std::vector<std::int64_t>& extents() const { return extents_; }

  /// Call it once.
  std::vector<std::uint8_t> read_values() {
    constexpr std::size_t kFirstStep = 16u << 20;
    const std::string promised = "the " + std::to_string(count_) + " bytes that its header promises";
    require_memory(path_, promised, count_);
    std::vector<std::uint8_t> values;
    const std::uint64_t header_bytes = 4 * (1 + extents_.size());
    if (source_->most_bytes() == header_bytes + count_) values.reserve(count_);  // a plain file, which holds them
    while (values.size() < count_) {
      const std::size_t filled = values.size();
      const std::size_t step = std::min(count_ - filled, std::max(kFirstStep, filled));
      if (filled + step > values.capacity()) {
        require_memory(path_, promised, filled + step);  // beside what is filled
        values.reserve(filled + step);
      }
      values.resize(filled + step);
      if (source_->read(std::span(values).subspan(filled)) != step)
        throw DataError(path_, "ends before " + promised, kDownloadAgain);
    }
    std::array<std::uint8_t, 1> more{};
    if (source_->read(more) > 0) throw DataError(path_, "continues after " + promised, kDownloadAgain);
    return values;
  }

 private:
  void check_magic(int rank) {
    const std::array<std::uint8_t, 4> expected = {0, 0, 8, static_cast<std::uint8_t>(rank)};
    const auto found = read_word();
    if (found == expected) return;
    std::array<std::uint8_t, kStartBytes> rest{};
    std::string start(found.begin(), found.end());
    start.append(rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(source_->read(rest)));
    if (const auto mistaken = find_mistaken_file(start)) throw DataError(path_, mistaken->what, mistaken->advice);
    const char* const type = found[0] == 0 && found[1] == 0 ? idx_type(found[2]) : nullptr;
    throw DataError(path_, "starts with " + hex(found) + ", expected " + hex(expected),
                    type ? "it is an IDX file of " + std::string(type) + " with " + std::to_string(found[3]) +
                               " dimensions, and only unsigned bytes with " + std::to_string(rank) + " are read as " +
                               (rank == 3 ? "images" : "labels") +
                               ": check what it holds, or save arrays (--dataset arrays)"
                         : "it is not an IDX file: check what was downloaded");
  }

  std::array<std::uint8_t, 4> read_word() {
    std::array<std::uint8_t, 4> word{};
    if (source_->read(word) != word.size()) throw DataError(path_, "ends inside its header", kDownloadAgain);
    return word;
  }

  /// The product of the extents.
  std::uint64_t count_values() const {
    std::uint64_t count = 1;
    for (const std::int64_t extent : extents_) {
      const auto factor = static_cast<std::uint64_t>(extent);
      const bool overflows = factor != 0 && count > std::numeric_limits<std::uint64_t>::max() / factor;
      count = overflows ? std::numeric_limits<std::uint64_t>::max() : count * factor;
    }
    if (count > source_->most_bytes())
      throw DataError(path_,
                      "has a header that promises at least " + std::to_string(count) +
                          " bytes, but a file of this size holds at most " + std::to_string(source_->most_bytes()),
                      kDownloadAgain);
    return count;
  }

  fs::path path_;
  std::unique_ptr<ByteSource> source_;
  std::vector<std::int64_t> extents_;
  std::uint64_t count_ = 0;  // of the values
};

}  // namespace

IdxArray read_idx(const fs::path& path, int rank) {
  IdxFile file(path, rank);
  return {.extents = file.extents(), .values = file.read_values()};
}

std::vector<std::int64_t> idx_extents(const fs::path& path, int rank) { return IdxFile(path, rank).extents(); }

std::unique_ptr<Dataset> open_idx(const IdxFiles& files) {
  IdxFile image_file(files.images, 3), label_file(files.labels, 1);
  const std::vector<std::int64_t>& extents = image_file.extents();
  if (extents[0] != label_file.extents()[0])
    throw DataError(files.labels,
                    "holds " + std::to_string(label_file.extents()[0]) + " labels, but " + files.images.string() +
                        " holds " + std::to_string(extents[0]) + " images",
                    "take both files from the same source");
  std::vector<std::uint8_t> labels = label_file.read_values();
  std::vector<std::uint8_t> images = image_file.read_values();
  if (images.empty()) throw DataError(files.images, "holds no images", kDownloadAgain);
  const auto outside = std::ranges::find_if(labels, [&](std::uint8_t label) { return label >= files.classes; });
  if (outside != labels.end())
    throw DataError(files.labels,
                    "has label " + std::to_string(*outside) + " in sample " + std::to_string(outside - labels.begin()) +
                        ", but " + files.name + " has the classes 0 to " + std::to_string(files.classes - 1),
                    "use the labels of " + files.name + ", or renumber these from 0");
  return std::make_unique<InMemoryDataset>(InMemoryDataset::Contents{.name = files.name,
                                                                     .shape = {extents[1], extents[2], 1},
                                                                     .classes = files.classes,
                                                                     .pixels = std::move(images),
                                                                     .labels = {labels.begin(), labels.end()},
                                                                     .class_names = files.class_names});
}

std::vector<std::string> idx_spellings(std::string_view name) {
  if (name.empty()) return {};
  std::vector<std::string> names = {std::string(name)};
  const std::size_t dash = name.find("-idx");
  if (dash != std::string_view::npos) names.push_back(std::string(name).replace(dash, 1, "."));
  return names;
}

IdxFiles find_idx_files(Split split, const std::vector<fs::path>& folders, const std::string& fetch) {
  const auto image_names = spellings(split, "images"), label_names = spellings(split, "labels");
  for (const fs::path& folder : folders) {
    const auto images = find(folder, image_names);
    if (!images) continue;
    const auto labels = find(folder, label_names);
    if (!labels) throw_missing({folder}, label_names, fetch);
    return {.name = {}, .images = *images, .labels = *labels};
  }
  throw_missing(folders, image_names, fetch);
}

}  // namespace gradring::data
