// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <random>

#include "train/records/checkpoint/file_system.h"

namespace gradring::tests {

/// A disk in memory that knows what would survive a power cut: of a file, the bytes of its last sync; of a folder, its
/// entries as they were at its last sync or after any later operation, in order, since file systems keep a journal.
class MemoryDisk final : public train::FileSystem {
 public:
  MemoryDisk();
  ~MemoryDisk() override;

  /// The power goes and comes back. A folder has lost none, some or all of the operations since its last sync, a file
  /// none, some or all of the bytes; `random` decides.
  void lose_power(std::mt19937& random);
  /// The bytes of a file, to be looked at or damaged.
  std::vector<std::byte>& bytes_of(const std::filesystem::path& path);

  std::unique_ptr<train::OutputFile> create(const std::filesystem::path& path) override;
  std::unique_ptr<train::InputFile> open(const std::filesystem::path& path) override;
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  void make_folder(const std::filesystem::path& path) override;
  void sync_folder(const std::filesystem::path& path) override;
  void make_link(const std::filesystem::path& target, const std::filesystem::path& path) override;
  std::filesystem::path read_link(const std::filesystem::path& path) override;
  void remove_file(const std::filesystem::path& path) override;
  void remove_folder(const std::filesystem::path& path) override;
  std::vector<std::string> list(const std::filesystem::path& path) override;
  bool exists(const std::filesystem::path& path) override;
  std::uint64_t free_bytes(const std::filesystem::path& path) override;

 private:
  struct Node;
  using Entries = std::map<std::string, std::shared_ptr<Node>>;

  std::shared_ptr<Node> find(const std::filesystem::path& path) const;
  std::shared_ptr<Node> get(const char* operation, const std::filesystem::path& path) const;
  Node& folder_of(const char* operation, const std::filesystem::path& path) const;
  void add(const char* operation, const std::filesystem::path& path, std::shared_ptr<Node> node);
  static void lose(Node& node, std::mt19937& random);

  std::shared_ptr<Node> root_;
};

}  // namespace gradring::tests
