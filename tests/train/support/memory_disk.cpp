// SPDX-License-Identifier: Apache-2.0
#include "tests/train/support/memory_disk.h"
#include <limits>

#include <cerrno>
#include <limits>

#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/file_system.h"

namespace gradring::tests {

namespace fs = std::filesystem;
using train::FileError;

struct MemoryDisk::Node {
  enum class Kind { file, folder, link };

  Kind kind = Kind::file;
  std::vector<std::byte> bytes, synced_bytes;
  Entries entries;
  std::vector<Entries> journal = {{}};  // of a folder: at the last sync, and after each operation since
  fs::path target;

  bool is_folder() const { return kind == Kind::folder; }
  void changed() { journal.push_back(entries); }
};

namespace {

using FileBytes = std::vector<std::byte>;

/// Shares the bytes with their node, so that they stay when the file is removed while it is open.
class OpenInput final : public train::InputFile {
 public:
  explicit OpenInput(std::shared_ptr<const FileBytes> bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_->size(); }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    return train::MemoryFile(*bytes_).read_at(offset, out);
  }

 private:
  std::shared_ptr<const FileBytes> bytes_;
};

class OpenOutput final : public train::OutputFile {
 public:
  OpenOutput(std::shared_ptr<FileBytes> bytes, std::shared_ptr<FileBytes> synced)
      : bytes_(std::move(bytes)), synced_(std::move(synced)) {}
  std::size_t write(std::span<const std::byte> bytes) override {
    bytes_->insert(bytes_->end(), bytes.begin(), bytes.end());
    return bytes.size();
  }
  void sync() override { *synced_ = *bytes_; }
  void close() override {}

 private:
  std::shared_ptr<FileBytes> bytes_, synced_;
};

}  // namespace

MemoryDisk::MemoryDisk() : root_(std::make_shared<Node>(Node{.kind = Node::Kind::folder})) {}
MemoryDisk::~MemoryDisk() = default;

void MemoryDisk::lose_power(std::mt19937& random) { lose(*root_, random); }

void MemoryDisk::lose(Node& node, std::mt19937& random) {
  if (node.is_folder()) {
    node.entries = node.journal[std::uniform_int_distribution<std::size_t>(0, node.journal.size() - 1)(random)];
    node.journal = {node.entries};
    for (auto& [name, entry] : node.entries) lose(*entry, random);
  } else if (node.bytes != node.synced_bytes) {
    const auto kept = std::uniform_int_distribution<std::size_t>(0, node.bytes.size())(random);
    node.bytes.resize(std::max(kept, node.synced_bytes.size()));
    node.synced_bytes = node.bytes;
  }
}

std::vector<std::byte>& MemoryDisk::bytes_of(const fs::path& path) { return get("open", path)->bytes; }

std::shared_ptr<MemoryDisk::Node> MemoryDisk::find(const fs::path& path) const {
  std::shared_ptr<Node> node = root_;
  for (const fs::path& part : path.relative_path()) {
    if (!node->is_folder() || !node->entries.contains(part.string())) return nullptr;
    node = node->entries.at(part.string());
  }
  return node;
}

std::shared_ptr<MemoryDisk::Node> MemoryDisk::get(const char* operation, const fs::path& path) const {
  auto node = find(path);
  if (!node) throw FileError(operation, path, ENOENT);
  return node;
}

MemoryDisk::Node& MemoryDisk::folder_of(const char* operation, const fs::path& path) const {
  const auto folder = find(path.parent_path());
  if (!folder) throw FileError(operation, path, ENOENT);
  if (!folder->is_folder()) throw FileError(operation, path, ENOTDIR);
  return *folder;
}

void MemoryDisk::add(const char* operation, const fs::path& path, std::shared_ptr<Node> node) {
  Node& folder = folder_of(operation, path);
  if (!folder.entries.emplace(path.filename().string(), std::move(node)).second)
    throw FileError(operation, path, EEXIST);
  folder.changed();
}

std::unique_ptr<train::OutputFile> MemoryDisk::create(const fs::path& path) {
  auto node = std::make_shared<Node>();
  add("create", path, node);
  return std::make_unique<OpenOutput>(std::shared_ptr<FileBytes>(node, &node->bytes),
                                      std::shared_ptr<FileBytes>(node, &node->synced_bytes));
}

std::unique_ptr<train::InputFile> MemoryDisk::open(const fs::path& path) {
  const auto node = get("open", path);
  if (node->kind != Node::Kind::file) throw FileError("read", path, EISDIR);
  return std::make_unique<OpenInput>(std::shared_ptr<const FileBytes>(node, &node->bytes));
}

void MemoryDisk::rename(const fs::path& from, const fs::path& to) {
  const auto node = get("rename", from);
  Node& source = folder_of("rename", from);
  Node& target = folder_of("rename", to);
  if (const auto there = find(to); there && there->is_folder()) throw FileError("rename", from, ENOTEMPTY);
  source.entries.erase(from.filename().string());
  target.entries[to.filename().string()] = node;
  if (&source != &target) source.changed();
  target.changed();
}

void MemoryDisk::make_folder(const fs::path& path) {
  add("create the folder", path, std::make_shared<Node>(Node{.kind = Node::Kind::folder}));
}

void MemoryDisk::sync_folder(const fs::path& path) {
  const auto node = get("fsync", path);
  node->journal = {node->entries};
}

void MemoryDisk::make_link(const fs::path& target, const fs::path& path) {
  add("create the link", path, std::make_shared<Node>(Node{.kind = Node::Kind::link, .target = target}));
}

fs::path MemoryDisk::read_link(const fs::path& path) {
  const auto node = get("read the link", path);
  if (node->kind != Node::Kind::link) throw FileError("read the link", path, EINVAL);
  return node->target;
}

void MemoryDisk::remove_file(const fs::path& path) {
  if (get("remove", path)->is_folder()) throw FileError("remove", path, EISDIR);
  Node& folder = folder_of("remove", path);
  folder.entries.erase(path.filename().string());
  folder.changed();
}

void MemoryDisk::remove_folder(const fs::path& path) {
  const auto node = get("remove", path);
  if (!node->is_folder()) throw FileError("remove", path, ENOTDIR);
  if (!node->entries.empty()) throw FileError("remove", path, ENOTEMPTY);
  Node& folder = folder_of("remove", path);
  folder.entries.erase(path.filename().string());
  folder.changed();
}

std::vector<std::string> MemoryDisk::list(const fs::path& path) {
  const auto node = get("list", path);
  if (!node->is_folder()) throw FileError("list", path, ENOTDIR);
  std::vector<std::string> names;
  for (const auto& [name, entry] : node->entries) names.push_back(name);
  return names;
}

bool MemoryDisk::exists(const fs::path& path) { return find(path) != nullptr; }

std::uint64_t MemoryDisk::free_bytes(const fs::path& /*path*/) { return std::numeric_limits<std::uint64_t>::max(); }

}  // namespace gradring::tests
