// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/fetch/catalogue.h"
#include "data/fetch/http.h"
#include "kernels/base/directory.h"

namespace gradring::data {

/// Receives progress, in the downloading thread.
class FetchListener {
 public:
  virtual ~FetchListener() = default;
  /// The file exists already and is valid.
  virtual void already_there(std::string_view file) = 0;
  /// A URL is requested for a file, from byte `begin`.
  virtual void asking(std::string_view file, std::string_view url, std::uint64_t begin) = 0;
  /// Progress of one file.
  virtual void arrived(std::uint64_t bytes, std::uint64_t of_bytes) = 0;
  /// A URL failed; the next one is tried, if any.
  virtual void failed(std::string_view url, std::string_view why) = 0;
  /// The file is complete and valid.
  virtual void done(std::string_view file) = 0;
};

/// A partial download: <name>.part next to its target. The destructor keeps the file, so that a later run resumes it.
///
/// Its folder stays open, so that it gets its name there and in no other folder that has its path later.
///
/// Errors    DiskError if it cannot be written; FetchError if another process has it open.
class PartFile {
 public:
  /// Opens or creates the part of `target`, and the folders above it.
  explicit PartFile(std::filesystem::path target);

  std::uint64_t size() const { return size_; }
  void append(std::span<const std::byte> bytes);
  /// Truncates it to 0 bytes.
  void clear();
  FileCheck check(const KnownFile& expected) const { return check_file(path_, expected); }
  /// Renames it to its target: atomic, and durable after a power loss. The last call.
  void publish();
  /// Deletes it. The last call.
  void remove();

 private:
  FileAt in_folder(const std::filesystem::path& path) const { return {folder_.fd().get(), path.filename(), path}; }

  std::filesystem::path target_;
  std::filesystem::path path_;
  Directory folder_;
  UniqueFd fd_;  // locked
  std::uint64_t size_ = 0;
};

struct DownloadSpec {
  KnownFile file;
  std::filesystem::path folder;          ///< target folder
  std::span<const std::string> mirrors;  ///< base URLs, tried in order: <mirror>/<name>
  HttpTimeouts timeouts = {};
};

/// Downloads a file from the first mirror that has it.
///
/// Data goes to <name>.part, which stays when a transfer breaks off: the next mirror, or the next call, resumes it. A
/// complete part is renamed to its target only if size and SHA-256 match, else removed. A resumed part that does not
/// match is downloaded once more from the start before its mirror is given up.
///
/// Errors    DataError if a mirror sent another file and none sent the right one; FetchError if no mirror could be
///           reached or completed the transfer. Both list each URL and its failure. DiskError at once.
void download(const DownloadSpec& spec, FetchListener& listener);

struct FetchSpec {
  std::filesystem::path data_dir;         ///< files go to data_dir/<dataset name>
  std::vector<std::string> mirrors = {};  ///< used instead of the public ones, if any
  HttpTimeouts timeouts = {};
};

/// Downloads the files of a dataset that are missing or invalid. An archive is unpacked, then removed unless it existed
/// before. Only known names are unpacked, from any folder of the archive; each file is hashed before it gets its name.
///
/// Errors    as require_http and download; DataError if the archive is corrupt, lacks a file or has another version of
///           it.
/// Cost      hashes the files that exist already.
void fetch(const CatalogueEntry& entry, const FetchSpec& spec, FetchListener& listener);

struct VerifiedFile {
  std::filesystem::path path;  ///< where it is, or should be
  FileCheck check;
};

/// Checks the files of a dataset, packed or unpacked, each in the first folder of dataset_folders() that has it.
///
/// Errors    DataError if one cannot be read.
/// Cost      reads and hashes all of them.
std::vector<VerifiedFile> verify(const CatalogueEntry& entry, const std::filesystem::path& data_dir);

}  // namespace gradring::data
