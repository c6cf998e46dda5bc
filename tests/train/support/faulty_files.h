// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <utility>

#include "train/records/checkpoint/file_system.h"

namespace gradring::tests {

/// What goes wrong, and at which call (from 1 on; 0: never).
struct Fault {
  enum class Kind {
    none,
    error,        ///< the call fails with `code`
    disk_full,    ///< it and every later call that would take space fail with ENOSPC
    short_write,  ///< a write takes half of what it is given
    power_cut,    ///< it and every later call do nothing, and throw PowerCut
    no_links,     ///< no link can be made, at any call: what a file system without them answers
  };
  Kind kind = Kind::none;
  int at_call = 0;
  int code = 0;
  std::function<void()> meanwhile = {};  ///< what another process does just before the call
};

/// The process is gone, as far as the disk can tell.
struct PowerCut : std::exception {
  const char* what() const noexcept override { return "the power is cut"; }
};

/// Passes every call on to another file system, but for a fault.
class FaultyFiles final : public train::FileSystem {
 public:
  FaultyFiles(train::FileSystem& inner, Fault fault) : inner_(inner), fault_(std::move(fault)) {}

  /// How many there were; each method of files and file systems is one.
  int calls() const { return calls_; }

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

  /// Counts one call; throws what is to go wrong with it.
  void count(const char* operation, const std::filesystem::path& path, bool takes_space = false);
  /// Counts a write of `bytes`; returns how many of them are to be written.
  std::size_t count_write(const std::filesystem::path& path, std::size_t bytes);

 private:
  train::FileSystem& inner_;
  Fault fault_;
  int calls_ = 0;
};

}  // namespace gradring::tests
