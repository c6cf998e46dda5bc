// SPDX-License-Identifier: Apache-2.0
#include "data/fetch/fetch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "data/datasets/dataset_files.h"
#include "data/datasets/open_dataset.h"
#include "data/fetch/http.h"
#include "data/fetch/tar_reader.h"
#include "data/files/byte_source.h"
#include "kernels/base/error.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw DiskError(path, std::string("cannot be ") + what + " (" + std::generic_category().message(errno) + ")");
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw DiskError(folder, "cannot be created (" + error.message() + ")");
}

constexpr long kRangeNotSatisfiable = 416;
/// Limit of resumptions per URL, each after a transfer that made progress.
constexpr int kMaxResumptions = 4;

/// The received data is not the file.
class WrongContent final : public Error {
 public:
  using Error::Error;
};

class Download final : public HttpBody {
 public:
  Download(const DownloadSpec& spec, FetchListener& listener)
      : spec_(spec), listener_(listener), part_(spec.folder / spec.file.name) {}

  void run() {
    for (const std::string& mirror : spec_.mirrors) {
      const std::string url = mirror + (mirror.ends_with('/') ? "" : "/") + std::string(spec_.file.name);
      if (try_url(url)) return part_.publish();
    }
    give_up();
  }

  /// The response body begins at this byte of the file.
  void begin(std::uint64_t offset) override {
    if (offset == part_.size()) return;
    check<FetchError>(offset == 0, "the server sent another range than requested");
    part_.clear();  // the server does not support ranges
  }

  void write(std::span<const std::byte> bytes) override {
    if (part_.size() + bytes.size() > spec_.file.bytes)
      throw WrongContent("the file is longer than " + std::to_string(spec_.file.bytes) + " bytes");
    part_.append(bytes);
    listener_.arrived(part_.size(), spec_.file.bytes);
  }

 private:
  /// Returns whether the part is now complete.
  bool try_url(const std::string& url) {
    try {
      const bool resumed = part_.size() > 0;
      try {
        get_and_check(url);
      } catch (const WrongContent&) {
        if (!resumed) throw;
        part_.clear();
        get_and_check(url);
      }
      return true;
    } catch (const DiskError&) {
      throw;
    } catch (const WrongContent& error) {
      part_.clear();
      wrong_content_ = true;
      note(url, error.what());
    } catch (const FetchError& error) {
      note(url, error.what());
    }
    return false;
  }

  void get_and_check(const std::string& url) {
    if (part_.size() > spec_.file.bytes) part_.clear();
    if (part_.size() < spec_.file.bytes) get(url);
    const FileCheck found = part_.check(spec_.file);
    if (found.state != FileState::good) throw WrongContent("the file " + found.found);
  }

  void get(const std::string& url) {
    for (int resumptions = 0;; ++resumptions) {
      const std::uint64_t arrived = part_.size();
      listener_.asking(spec_.file.name, url, arrived);
      try {
        return http_get({.url = url, .begin = arrived, .timeouts = spec_.timeouts}, *this);
      } catch (const DiskError&) {
        throw;
      } catch (const HttpStatusError& error) {
        if (error.status() != kRangeNotSatisfiable || arrived == 0 || resumptions == kMaxResumptions) throw;
        part_.clear();  // the server's file is shorter than the part
      } catch (const FetchError&) {
        if (part_.size() <= arrived || resumptions == kMaxResumptions) throw;
      }
    }
  }

  void note(const std::string& url, const std::string& why) {
    listener_.failed(url, why);
    failures_ += "\n  " + url + ": " + why;
  }

  [[noreturn]] void give_up() {
    const bool keeps_part = part_.size() > 0;
    if (!keeps_part) part_.remove();
    const std::filesystem::path target = spec_.folder / spec_.file.name;
    const std::string tried = "download failed:" + failures_;
    if (wrong_content_)
      throw DataError(target, tried + "\nno mirror sent the right file",
                      "name another mirror with --mirror, or put the file there yourself");
    throw FetchError(target.string() + ": " + tried +
                     "\ncheck the network and https_proxy, or name another mirror with --mirror" +
                     (keeps_part ? "; the next attempt resumes the part that arrived" : ""));
  }

  const DownloadSpec& spec_;
  FetchListener& listener_;
  PartFile part_;
  std::string failures_;
  bool wrong_content_ = false;
};

/// Throws if an unpacked file is invalid: readers prefer it to the packed one that would be downloaded.
///
/// Returns   the name of the valid form that exists, packed or not; empty if there is none.
std::string valid_form(const CatalogueFile& file, const fs::path& folder) {
  for (const std::string& name : idx_spellings(file.unpacked.name)) {
    const FileCheck found = check_file(folder / name, file.unpacked);
    if (found.state == FileState::wrong) throw DataError(folder / name, found.found, "delete the file and fetch again");
    if (found.state == FileState::good) return name;
  }
  for (const std::string& name : idx_spellings(file.file.name))
    if (check_file(folder / name, file.file).state == FileState::good) return name;
  return {};
}

std::vector<CatalogueFile> missing_files(const CatalogueEntry& entry, const fs::path& folder, FetchListener& listener) {
  std::vector<CatalogueFile> missing;
  for (const CatalogueFile& file : entry.files) {
    const std::string existing = valid_form(file, folder);
    if (existing.empty())
      missing.push_back(file);
    else
      listener.already_there(existing);
  }
  return missing;
}

void unpack_one(TarReader& reader, const KnownFile& file, const fs::path& archive, const fs::path& folder) {
  PartFile part(folder / file.name);
  part.clear();
  std::vector<std::uint8_t> buffer(1 << 18);
  while (const std::size_t count = reader.read(buffer)) part.append(std::as_bytes(std::span(buffer).first(count)));
  const FileCheck found = part.check(file);
  if (found.state == FileState::good) return part.publish();
  part.remove();
  throw DataError(archive, std::string(file.name) + " in it " + found.found, kDownloadAgain);
}

void unpack(const fs::path& archive, std::span<const CatalogueFile> files, const fs::path& folder,
            FetchListener& listener) {
  std::vector<std::string_view> missing;
  for (const CatalogueFile& entry : files) missing.push_back(entry.file.name);
  TarReader reader(archive);
  while (const auto member = reader.next()) {
    const fs::path name = fs::path(member->name).filename();
    const auto entry = std::ranges::find_if(files, [&](const auto& candidate) { return candidate.file.name == name; });
    if (!member->is_file || entry == files.end()) continue;
    unpack_one(reader, entry->file, archive, folder);
    listener.done(entry->file.name);
    std::erase(missing, entry->file.name);
  }
  if (!missing.empty()) throw DataError(archive, "holds no " + std::string(missing.front()), kDownloadAgain);
}

/// The first existing form of a file, in the first folder that has one; unpacked first, as readers prefer it.
VerifiedFile verify_one(const CatalogueFile& file, const std::vector<fs::path>& folders) {
  for (const fs::path& folder : folders)
    for (const KnownFile& form : {file.unpacked, file.file})
      for (const std::string& name : idx_spellings(form.name)) {
        const FileCheck check = check_file(folder / name, form);
        if (check.state != FileState::missing) return {.path = folder / name, .check = check};
      }
  const fs::path path = folders.front() / file.file.name;
  return {.path = path, .check = check_file(path, file.file)};
}

}  // namespace

PartFile::PartFile(fs::path target) : target_(std::move(target)), path_(fs::path(target_) += ".part") {
  make_folder(fs::absolute(target_).parent_path());
  folder_ = Directory(fs::absolute(target_).parent_path());
  if (folder_) fd_ = open_file(in_folder(path_), O_RDWR | O_CREAT | O_APPEND);
  if (!fd_) fail(path_, "written");
  if (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw FetchError(path_.string() + " is being downloaded by another process: wait until it ends");
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) fail(path_, "read");
  if (!is_at(in_folder(path_), fd_))  // the previous holder of the lock has published or removed it
    throw FetchError(path_.string() + " was just downloaded by another process: try again");
  size_ = static_cast<std::uint64_t>(status.st_size);
}

void PartFile::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, "written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    size_ += static_cast<std::uint64_t>(written);
  }
}

void PartFile::clear() {
  if (::ftruncate(fd_.get(), 0) != 0) fail(path_, "emptied");
  size_ = 0;
}

void PartFile::publish() {
  if (::fsync(fd_.get()) != 0) fail(path_, "written");
  const FileAt part = in_folder(path_), target = in_folder(target_);
  if (::renameat(part.directory(), part.name(), target.directory(), target.name()) != 0) fail(target_, "put in place");
  ::fsync(folder_.fd().get());  // where the file system cannot, at worst the name is lost in a power loss
}

void PartFile::remove() {
  if (::unlinkat(folder_.fd().get(), path_.filename().c_str(), 0) != 0) fail(path_, "removed");
}

void download(const DownloadSpec& spec, FetchListener& listener) {
  check(!spec.mirrors.empty(), "no mirror is given for " + std::string(spec.file.name));
  Download(spec, listener).run();
  listener.done(spec.file.name);
}

void fetch(const CatalogueEntry& entry, const FetchSpec& spec, FetchListener& listener) {
  const fs::path folder = spec.data_dir / entry.name;
  const auto missing = missing_files(entry, folder, listener);
  if (missing.empty()) return;
  const std::vector<std::string> mirrors =
      spec.mirrors.empty() ? std::vector<std::string>(entry.mirrors.begin(), entry.mirrors.end()) : spec.mirrors;
  const auto get = [&](const KnownFile& file) {
    require_http();
    download({.file = file, .folder = folder, .mirrors = mirrors, .timeouts = spec.timeouts}, listener);
  };
  if (entry.archive.name.empty()) {
    for (const CatalogueFile& file : missing) get(file.file);
    return;
  }
  const fs::path archive = folder / entry.archive.name;
  const bool existed = check_file(archive, entry.archive).state == FileState::good;
  if (!existed) get(entry.archive);
  unpack(archive, missing, folder, listener);
  std::error_code ignored;  // a leftover archive only takes space
  if (!existed) fs::remove(archive, ignored);
}

std::vector<VerifiedFile> verify(const CatalogueEntry& entry, const fs::path& data_dir) {
  const auto folders = dataset_folders(entry.name, data_dir);
  std::vector<VerifiedFile> files;
  for (const CatalogueFile& file : entry.files) files.push_back(verify_one(file, folders));
  return files;
}

}  // namespace gradring::data
