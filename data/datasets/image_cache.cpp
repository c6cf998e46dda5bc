// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/image_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "data/files/byte_source.h"
#include "data/images/image.h"
#include "kernels/base/deadline.h"
#include "kernels/base/directory.h"
#include "kernels/base/file.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr std::size_t kIdDigits = 16;
constexpr std::size_t kMostListBytes = 4096;

[[noreturn]] void throw_cache_error(const fs::path& path, const char* what, const char* advice = "set ") {
  throw std::system_error(errno, std::generic_category(),
                          path.string() + ": " + what + "; " + advice + kCacheVariable + " to another folder");
}

constexpr const char* kRemoveIt = "remove it, or set ";

void rename_over(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_cache_error(to, "cannot be replaced", kRemoveIt);
}

void add(Sha256Sum& sum, std::string_view text) {
  sum.add(std::as_bytes(std::span(text)));
  sum.add(std::as_bytes(std::span("", 1)));
}

/// Of a folder and settings: names the list, the lock and the part.
std::string id_of(const ImageListing& listing, const ImageSettings& settings) {
  Sha256Sum sum;
  add(sum, fs::absolute(listing.folder).lexically_normal().string());
  add(sum, settings.text());
  return to_hex(sum.finish()).substr(0, kIdDigits);
}

/// Of the names, sizes and times of its files.
std::string stamp_of(const ImageListing& listing) {
  Sha256Sum sum;
  for (const std::string& name : listing.classes) add(sum, name);
  for (const ImageFile& file : listing.files) {
    add(sum, file.path);
    const std::int64_t facts[] = {static_cast<std::int64_t>(file.bytes), file.modified, file.changed, file.label};
    sum.add(std::as_bytes(std::span(facts)));
  }
  return to_hex(sum.finish());
}

/// Says every now and then how far it is, and tells others by the time of the lock that it goes on.
class Reporter {
 public:
  Reporter(std::int64_t total, const UniqueFd& lock, const ImageCache::Say& say, std::string what)
      : total_(total), lock_(lock), say_(say), what_(std::move(what)) {}

  void operator()(std::int64_t done) {
    const auto now = steady_clock::now();
    if (now - touched_ > std::chrono::seconds(1)) {
      touched_ = now;
      ::futimens(lock_.get(), nullptr);
    }
    if (now - said_ < std::chrono::seconds(10)) return;
    said_ = now;
    say_(what_ + ": " + std::to_string(done) + " of " + std::to_string(total_));
  }

  std::string seconds() const {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", std::chrono::duration<double>(steady_clock::now() - began_).count());
    return text;
  }

 private:
  const std::int64_t total_;
  const UniqueFd& lock_;
  const ImageCache::Say& say_;
  const std::string what_;
  const steady_clock::time_point began_ = steady_clock::now();
  steady_clock::time_point touched_ = began_, said_ = began_;
};

}  // namespace

/// Held by the process that makes a file.
class ImageCache::Lock {
 public:
  Lock(const fs::path& path, const Say& say) : path_(path) {
    Deadline deadline = Deadline::after(kPatience);
    timespec seen{};
    for (bool said = false; !try_lock();) {
      struct stat facts {};
      if (file_ && ::fstat(file_.get(), &facts) == 0 && facts.st_mtim.tv_sec != seen.tv_sec) {
        seen = facts.st_mtim;
        deadline = Deadline::after(kPatience);
      }
      if (deadline.passed())
        throw Error(path_.string() +
                    ": locked by another process that prepares the same images and has made no progress for " +
                    std::to_string(kPatience.count()) + " minutes; end that process, or continue it if it is stopped");
      if (!std::exchange(said, true)) say("waiting for another process, which prepares the same images");
      sleep_for(std::chrono::milliseconds(100));
    }
  }

  const UniqueFd& file() const { return file_; }

 private:
  /// Whether this is the file that has the path: another process may have removed it before it was locked.
  bool try_lock() {
    if (!file_ || !is_at(path_, file_)) file_ = open_file(path_, O_RDWR | O_CREAT | O_NOFOLLOW);
    if (!file_) throw_cache_error(path_, "cannot be opened", kRemoveIt);
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) == 0) return is_at(path_, file_);
    if (errno != EWOULDBLOCK && errno != EINTR) throw_cache_error(path_, "cannot be locked");
    return false;
  }

  const fs::path path_;
  UniqueFd file_;
};

std::unique_ptr<PackedImages> ImageCache::find(const ImageListing& listing, const ImageSettings& settings,
                                               const fs::path& list, const std::string& stamp) const {
  const auto text = read_regular_file(list, kMostListBytes);
  if (!text || text->size() <= stamp.size() || !text->starts_with(stamp)) return nullptr;
  const fs::path path = folder_ / (text->substr(stamp.size() + 1) + ".images");
  try {
    auto images = std::make_unique<PackedImages>(path);
    const PackedFacts& facts = images->facts();
    if (facts.settings != settings.text() || facts.decoders != decoder_versions() || facts.classes != listing.classes ||
        !std::ranges::equal(facts.labels, listing.files, {}, {}, &ImageFile::label))
      return nullptr;
    ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);  // last used
    return images;
  } catch (const DataError&) {  // missing or damaged
    return nullptr;
  }
}

std::unique_ptr<PackedImages> ImageCache::open(const ImageListing& listing, const ImageSettings& settings) {
  const std::string id = id_of(listing, settings), stamp = stamp_of(listing);
  const fs::path list = folder_ / (id + ".list");
  if (auto images = find(listing, settings, list, stamp)) return images;
  std::error_code ignored;
  fs::create_directories(folder_.parent_path(), ignored);
  if (::mkdir(folder_.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    throw_cache_error(folder_, "cannot be made, and decoded images are kept there");
  const Lock lock(folder_ / (id + ".lock"), say_);
  if (auto images = find(listing, settings, list, stamp)) return images;
  return make(listing, settings, lock, id, stamp);
}

std::unique_ptr<PackedImages> ImageCache::make(const ImageListing& listing, const ImageSettings& settings,
                                               const Lock& lock, const std::string& id, const std::string& stamp) {
  const int threads = decoding_threads();
  const auto total = std::ssize(listing.files);
  const std::string what = "preparing the images of " + listing.folder.string();
  Reporter hashing(total, lock.file(), say_, "reading the images of " + listing.folder.string());
  const std::vector<Sha256> hashes = hash_images(listing, threads, std::ref(hashing));
  const Sha256 content = content_key(listing, hashes, settings);
  const std::string key = packed_key(content, decoder_versions());
  const fs::path path = folder_ / (key + ".images"), part = folder_ / (id + ".part");
  std::unique_ptr<PackedImages> images;
  try {
    images = std::make_unique<PackedImages>(path);
  } catch (const DataError&) {
    Reporter packing(total, lock.file(), say_, what);
    say_(what + ": " + std::to_string(total) + " files, " + settings.text() + ", by " + std::to_string(threads) +
         (threads == 1 ? " thread" : " threads"));
    try {
      pack_images(listing, hashes, settings, content, threads, part, std::ref(packing));
      rename_over(part, path);
    } catch (...) {
      std::error_code ignored;
      fs::remove(part, ignored);
      throw;
    }
    images = std::make_unique<PackedImages>(path);
    say_("prepared them in " + packing.seconds() + ": " + path.string());
  }
  // A file that could not be read may be readable next time, without another size or time.
  const bool all_read = std::ranges::none_of(images->facts().broken, [](const BrokenImage& image) {
    return image.reason.starts_with("cannot be opened") || image.reason.starts_with("cannot be read (");
  });
  if (all_read) {
    errno = write_all(create_anew(part).get(), stamp + "\n" + key);
    if (errno != 0) throw_cache_error(part, "cannot be written");
    rename_over(part, folder_ / (id + ".list"));
  }
  return images;
}

std::string writers_of(const fs::path& folder) {
  struct stat facts {};
  if (::stat(folder.c_str(), &facts) != 0) return "";
  const bool is_ours = facts.st_uid == ::geteuid() || facts.st_uid == 0;
  if (is_ours && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0) return "";
  return folder.string() + ": other users may write to this cache, and so change what is trained; " +
         (is_ours ? "chmod 700 it, or set " : "set ") + kCacheVariable + " to a folder of your own";
}

fs::path default_image_cache() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value ? value : "");
  };
  if (const fs::path own = variable(kCacheVariable); !own.empty()) return own / "images";
  if (const fs::path cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache / "gradring/images";
  if (const fs::path home = variable("HOME"); !home.empty()) return home / ".cache/gradring/images";
  throw InvalidArgument(std::string("decoded images have no folder, since HOME is not set: name one with ") +
                        kCacheVariable);
}

std::vector<CachedImages> cached_images(const fs::path& folder) {
  std::vector<CachedImages> all;
  int error = 0;
  for (const std::string& name : names_in(folder, error)) {
    if (!name.ends_with(".images")) continue;
    CachedImages found{.key = name.substr(0, name.size() - 7), .path = folder / name};
    struct stat facts {};
    if (::stat(found.path.c_str(), &facts) != 0) continue;  // removed since
    found.bytes = static_cast<std::uint64_t>(facts.st_blocks) * 512;
    found.used = std::chrono::system_clock::from_time_t(facts.st_mtim.tv_sec);
    try {
      found.facts = read_packed_facts(found.path);
    } catch (const DataError& damage) {
      found.damage = damage.what();
    }
    all.push_back(std::move(found));
  }
  if (error != 0 && error != ENOENT) {
    errno = error;
    throw_cache_error(folder, "cannot be listed");
  }
  std::ranges::sort(all, std::greater(), &CachedImages::used);
  return all;
}

void remove_cached(const fs::path& folder, const std::string& key) {
  if (!key.empty()) {
    const fs::path file = folder / (key + ".images");
    if (::unlink(file.c_str()) != 0) throw_cache_error(file, "cannot be removed");
    return;
  }
  int error = 0;
  for (const std::string& name : names_in(folder, error)) {
    if (!name.ends_with(".lock")) continue;
    const UniqueFd file = open_file(folder / name, O_RDWR);
    if (!file || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;  // in use
    for (const char* suffix : {".part", ".list", ".lock"}) {
      const fs::path left = folder / (name.substr(0, name.size() - 5) + suffix);
      if (::unlink(left.c_str()) != 0 && errno != ENOENT) throw_cache_error(left, "cannot be removed");
    }
  }
}

}  // namespace gradring::data
