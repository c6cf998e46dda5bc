// SPDX-License-Identifier: Apache-2.0
#include "tests/train/support/faulty_files.h"

#include <cerrno>

#include "train/records/checkpoint/error.h"

namespace gradring::tests {

namespace fs = std::filesystem;

namespace {

class FaultyInput final : public train::InputFile {
 public:
  FaultyInput(std::unique_ptr<InputFile> inner, FaultyFiles& files, fs::path path)
      : inner_(std::move(inner)), files_(files), path_(std::move(path)) {}
  std::uint64_t size() const override { return inner_->size(); }
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> out) const override {
    files_.count("read", path_);
    return inner_->read_at(offset, out);
  }

 private:
  std::unique_ptr<InputFile> inner_;
  FaultyFiles& files_;
  fs::path path_;
};

class FaultyOutput final : public train::OutputFile {
 public:
  FaultyOutput(std::unique_ptr<OutputFile> inner, FaultyFiles& files, fs::path path)
      : inner_(std::move(inner)), files_(files), path_(std::move(path)) {}
  std::size_t write(std::span<const std::byte> bytes) override {
    return inner_->write(bytes.first(files_.count_write(path_, bytes.size())));
  }
  void sync() override {
    files_.count("sync", path_, true);
    inner_->sync();
  }
  void close() override {
    files_.count("close", path_);
    inner_->close();
  }

 private:
  std::unique_ptr<OutputFile> inner_;
  FaultyFiles& files_;
  fs::path path_;
};

}  // namespace

void FaultyFiles::count(const char* operation, const fs::path& path, bool takes_space) {
  ++calls_;
  const bool now = calls_ == fault_.at_call;
  if (now && fault_.meanwhile) fault_.meanwhile();
  const bool since = fault_.at_call > 0 && calls_ >= fault_.at_call;
  if (fault_.kind == Fault::Kind::power_cut && since) throw PowerCut();
  if (fault_.kind == Fault::Kind::error && now) throw train::FileError(operation, path, fault_.code);
  if (fault_.kind == Fault::Kind::disk_full && since && takes_space) throw train::FileError(operation, path, ENOSPC);
}

std::size_t FaultyFiles::count_write(const fs::path& path, std::size_t bytes) {
  count("write", path, true);
  return fault_.kind == Fault::Kind::short_write && calls_ == fault_.at_call ? (bytes + 1) / 2 : bytes;
}

std::unique_ptr<train::OutputFile> FaultyFiles::create(const fs::path& path) {
  count("create", path, true);
  return std::make_unique<FaultyOutput>(inner_.create(path), *this, path);
}

std::unique_ptr<train::InputFile> FaultyFiles::open(const fs::path& path) {
  count("open", path);
  return std::make_unique<FaultyInput>(inner_.open(path), *this, path);
}

void FaultyFiles::rename(const fs::path& from, const fs::path& to) {
  count("rename", from);
  inner_.rename(from, to);
}

void FaultyFiles::make_folder(const fs::path& path) {
  count("create the folder", path, true);
  inner_.make_folder(path);
}

void FaultyFiles::sync_folder(const fs::path& path) {
  count("sync", path, true);
  inner_.sync_folder(path);
}

void FaultyFiles::make_link(const fs::path& target, const fs::path& path) {
  count("create the link", path, true);
  if (fault_.kind == Fault::Kind::no_links) throw train::FileError("create the link", path, EPERM);
  inner_.make_link(target, path);
}

fs::path FaultyFiles::read_link(const fs::path& path) {
  count("read the link", path);
  return inner_.read_link(path);
}

void FaultyFiles::remove_file(const fs::path& path) {
  count("remove", path);
  inner_.remove_file(path);
}

void FaultyFiles::remove_folder(const fs::path& path) {
  count("remove", path);
  inner_.remove_folder(path);
}

std::vector<std::string> FaultyFiles::list(const fs::path& path) {
  count("list", path);
  return inner_.list(path);
}

bool FaultyFiles::exists(const fs::path& path) {
  count("stat", path);
  return inner_.exists(path);
}

std::uint64_t FaultyFiles::free_bytes(const fs::path& path) {
  count("get the free space of", path);
  return inner_.free_bytes(path);
}

}  // namespace gradring::tests
