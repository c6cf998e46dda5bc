// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/pt_records.h"

#include <algorithm>
#include <map>

#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/tensor_record.h"
#include "train/records/checkpoint/zip_archive.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using Kind = PickleValue::Kind;

constexpr const char* kSaveAgain = "save a state_dict: torch.save(model.state_dict(), ...)";

std::string text_in(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ZipRecords final : public PtRecords {
 public:
  ZipRecords(const InputFile& file, const fs::path& path) : archive_(file, path) {
    find_prefix(path);
    pickle_ = read_pickle(*small_record(pt::kPickle, path), path);
    const auto order = small_record(pt::kByteOrder, path);
    if (!order) return;
    const std::string& name = *order;
    is_big_endian_ = name == "big";
    if (!is_big_endian_ && name != "little")
      throw CheckpointError(path, "has the byte order " + in_quotes(name), kSaveAgain);
  }

  std::optional<std::vector<std::byte>> storage(std::string_view key) const override {
    const ZipEntry* const entry = archive_.find(prefix_ + "data/" + std::string(key));
    if (!entry) return std::nullopt;
    return archive_.read(*entry);
  }

 private:
  /// A record that is not a storage; nothing if it is missing.
  std::optional<std::string> small_record(std::string_view name, const fs::path& path) const {
    const ZipEntry* const entry = archive_.find(prefix_ + std::string(name));
    if (!entry) return std::nullopt;
    if (entry->bytes > kLargestPickle)
      throw CheckpointError(path,
                            "has a record " + in_quotes(name) + " of " + std::to_string(entry->bytes) +
                                " bytes, at most 4 MiB are supported",
                            kSaveAgain);
    return text_in(archive_.read(*entry));
  }

  /// All records are in one folder, which torch.save names after the file.
  void find_prefix(const fs::path& path) {
    const auto in_folder = [](const ZipEntry& entry) {
      const auto slash = entry.name.find('/');
      return slash == entry.name.npos ? std::string_view() : std::string_view(entry.name).substr(slash + 1);
    };
    const auto& entries = archive_.entries();
    const auto pickle = std::ranges::find(entries, pt::kPickle, in_folder);
    if (std::ranges::find(entries, "constants.pkl", in_folder) != entries.end())
      throw CheckpointError(path, "is a TorchScript archive",
                            "save its weights: torch.save(torch.jit.load(\"" + path.filename().string() +
                                "\").state_dict(), \"new.pt\")");
    if (pickle == entries.end())
      throw CheckpointError(path, "is a zip archive without torch.save's data.pkl", kSaveAgain);
    prefix_ = pickle->name.substr(0, pickle->name.find('/') + 1);
  }

  ZipReader archive_;
  std::string prefix_;
};

class LegacyRecords final : public PtRecords {
 public:
  LegacyRecords(const InputFile& file, const fs::path& path) : file_(file), path_(path) {
    constexpr std::size_t kMostPickles = 8u << 20;
    const auto known = std::min<std::uint64_t>(file.size(), kMostPickles);
    const std::string text = read_text(file, path, 0, known);
    std::string_view rest = text;
    for (int skipped = 0; skipped < 3; ++skipped) read_first_pickle(rest, path);  // magic number, version, byte order
    pickle_ = read_first_pickle(rest, path);
    const Pickle keys = read_first_pickle(rest, path);
    find_storages(keys, known - rest.size());
  }

  std::optional<std::vector<std::byte>> storage(std::string_view key) const override {
    const auto found = ranges_.find(key);
    if (found == ranges_.end()) return std::nullopt;
    return read_bytes(file_, path_, found->second.begin, found->second.bytes);
  }

 private:
  struct Range {
    std::uint64_t begin = 0, bytes = 0;
  };

  [[noreturn]] void refuse(const std::string& found) const { throw CheckpointError(path_, found, kSaveAgain); }

  void find_storages(const Pickle& keys, std::uint64_t at) {
    std::map<std::string_view, std::uint64_t> element_bytes;
    for (const PickleValue& value : pickle_.values)
      if (const auto storage = storage_in(pickle_, value))
        element_bytes[storage->key] = storage->element_bytes().value_or(0);
    for (const PickleId id : keys.at(keys.root).items) {
      const PickleValue& key = keys.at(id);
      const auto known = key.kind == Kind::text ? element_bytes.find(key.text) : element_bytes.end();
      if (known == element_bytes.end() || known->second == 0) refuse("has a storage of an unknown type");
      constexpr std::uint64_t kCountBytes = 8;
      if (at > file_.size() || file_.size() - at < kCountBytes) refuse("is truncated");
      const auto elements = get_little_endian<std::uint64_t>(read_text(file_, path_, at, kCountBytes), 0);
      at += kCountBytes;
      if (elements > (file_.size() - at) / known->second) refuse("is truncated");
      const Range range{.begin = at, .bytes = elements * known->second};
      ranges_[key.text] = range;
      at += range.bytes;
    }
    if (at != file_.size()) refuse("has bytes after its last storage");
  }

  const InputFile& file_;
  fs::path path_;
  std::map<std::string, Range, std::less<>> ranges_;
};

}  // namespace

std::optional<std::uint64_t> PtStorage::element_bytes() const {
  if (is_untyped()) return 1;
  const auto known = torch_type(type);
  if (!known) return std::nullopt;
  return names_of(*known).bits / 8;
}

bool PtStorage::is_untyped() const { return type == "torch.storage.UntypedStorage"; }

std::optional<PtStorage> storage_in(const Pickle& pickle, const PickleValue& value) {
  if (value.kind != Kind::persistent) return std::nullopt;
  const PickleValue& id = pickle.at(value.items[0]);
  if (id.kind != Kind::tuple || id.items.size() < 5) return std::nullopt;
  const PickleValue &tag = pickle.at(id.items[0]), &type = pickle.at(id.items[1]), &key = pickle.at(id.items[2]),
                    &elements = pickle.at(id.items[4]);
  if (tag.kind != Kind::text || tag.text != "storage" || type.kind != Kind::global || key.kind != Kind::text ||
      elements.kind != Kind::integer || elements.number < 0)
    return std::nullopt;
  // The legacy format had views of storages, until PyTorch 0.4.
  if (id.items.size() > 5 && pickle.at(id.items[5]).kind != Kind::none) return std::nullopt;
  return PtStorage{.type = type.text, .key = key.text, .elements = static_cast<std::uint64_t>(elements.number)};
}

bool is_legacy_pt(std::string_view start) {
  constexpr std::string_view kMagic("\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 12);
  return start.starts_with('\x80') && start.find(kMagic) != start.npos;
}

std::unique_ptr<PtRecords> open_pt_records(const InputFile& file, const fs::path& path) {
  constexpr std::uint64_t kStartBytes = 32;
  if (is_legacy_pt(read_text(file, path, 0, std::min(file.size(), kStartBytes))))
    return std::make_unique<LegacyRecords>(file, path);
  return std::make_unique<ZipRecords>(file, path);
}

}  // namespace gradring::train
