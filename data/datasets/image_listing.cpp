// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/image_listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "data/datasets/class_names.h"
#include "data/files/byte_source.h"
#include "kernels/base/in_quotes.h"
#include "kernels/base/printable.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using OpenFolder = std::unique_ptr<DIR, CloseFolder>;

enum class Kind : std::uint8_t { file, folder, broken_link, other };

struct Entry {
  std::string name;
  Kind kind = Kind::other;
  struct stat facts {};
};

std::int64_t nanoseconds(const timespec& time) { return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

/// Follows links.
Entry entry_of(const OpenFolder& folder, const char* name) {
  Entry entry{.name = name};
  if (::fstatat(::dirfd(folder.get()), name, &entry.facts, 0) != 0)
    entry.kind = Kind::broken_link;
  else if (S_ISREG(entry.facts.st_mode))
    entry.kind = Kind::file;
  else if (S_ISDIR(entry.facts.st_mode))
    entry.kind = Kind::folder;
  if (entry.kind == Kind::broken_link) entry.facts = {};
  return entry;
}

/// What a folder holds, sorted by name, without hidden entries.
std::vector<Entry> entries_of(const fs::path& path) {
  const OpenFolder folder(::opendir(path.c_str()));
  if (!folder)
    throw DataError(path, std::string("cannot be listed (") + std::strerror(errno) + ")",
                    "check that it is a folder and that you may read it");
  std::vector<Entry> entries;
  while (const dirent* found = ::readdir(folder.get()))
    if (found->d_name[0] != '.') entries.push_back(entry_of(folder, found->d_name));
  std::ranges::sort(entries, {}, &Entry::name);
  return entries;
}

/// Notes an entry that is not used.
void leave_out(ImageListing& listing, const std::string& path, Kind kind) {
  if (listing.others++ > 0) return;
  listing.one_other = path + (kind == Kind::broken_link ? " (a link to nothing)"
                              : kind == Kind::other     ? " (not a regular file)"
                                                        : "");
}

/// The walk through a folder and those below it, whose images have one label.
class FolderWalk {
 public:
  FolderWalk(ImageListing& listing, int label) : listing_(listing), label_(label) {}

  /// `name` is the path from the folder of the listing; empty: that folder itself.
  void walk(const std::string& name, const struct stat& facts) {
    visit(name, facts);
    // As sorted(os.walk(...)): a folder's files before those of the folders in it, folders by their paths.
    std::ranges::sort(folders_, {}, &Folder::path);
    for (Folder& each : folders_) std::ranges::move(each.files, std::back_inserter(listing_.files));
  }

 private:
  struct Folder {
    std::string path;
    std::vector<ImageFile> files;
  };

  void visit(const std::string& path, const struct stat& facts) {
    const auto identity = std::pair(facts.st_dev, facts.st_ino);
    if (std::ranges::count(above_, identity) > 0)
      throw DataError(listing_.folder / path, "is a link to a folder that it is in", "remove the link");
    above_.push_back(identity);
    Folder folder{.path = path, .files = {}};
    for (const Entry& entry : entries_of(path.empty() ? listing_.folder : listing_.folder / path)) {
      const std::string name = path.empty() ? entry.name : path + "/" + entry.name;
      if (entry.kind == Kind::folder)
        visit(name, entry.facts);
      else if (entry.kind != Kind::other && is_image_name(entry.name))
        folder.files.push_back({.path = name,
                                .label = label_,
                                .bytes = static_cast<std::uint64_t>(entry.facts.st_size),
                                .modified = nanoseconds(entry.facts.st_mtim),
                                .changed = nanoseconds(entry.facts.st_ctim)});
      else
        leave_out(listing_, name, entry.kind);
    }
    folders_.push_back(std::move(folder));
    above_.pop_back();
  }

  ImageListing& listing_;
  const int label_;
  std::vector<std::pair<dev_t, ino_t>> above_;
  std::vector<Folder> folders_;
};

constexpr const char* kNoImage = "holds no .jpg, .jpeg or .png file";

}  // namespace

bool is_image_name(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  std::string suffix(name.substr(dot + 1));
  std::ranges::transform(suffix, suffix.begin(), [](unsigned char c) { return std::tolower(c); });
  return suffix == "jpg" || suffix == "jpeg" || suffix == "png";
}

std::string describe_others(const ImageListing& listing) {
  return std::to_string(listing.others) + (listing.others == 1 ? " file is" : " files are") + " not used, such as " +
         listing.one_other + ": images are .jpg, .jpeg or .png files";
}

fs::path split_folder(const fs::path& folder, Split split) {
  const auto exists = [](const fs::path& path) {
    std::error_code error;
    return fs::exists(fs::symlink_status(path, error));
  };
  if (split == Split::train) return exists(folder / "train") ? folder / "train" : fs::path();
  for (const char* name : {"test", "val"})
    if (exists(folder / name)) return folder / name;
  return {};
}

std::vector<std::string> class_folders_in(const fs::path& split_folder) {
  std::vector<std::string> names;
  for (const Entry& entry : entries_of(split_folder))
    if (entry.kind == Kind::folder) names.push_back(entry.name);
  for (const std::string& name : names)
    if (printable_bytes(name) != name.size())
      throw DataError(split_folder / name, "is the folder of a class, but its name is not printable UTF-8",
                      "rename it");
  if (names.size() < 2)
    throw DataError(
        split_folder,
        names.empty() ? "holds no folders" : "holds one folder, " + in_quotes(names.front()) + ": one class",
        "make a folder for each of at least two classes, and put its images there");
  return names;
}

ImageListing list_images(const fs::path& folder) {
  ImageListing listing{.folder = folder, .classes = {}, .files = {}};
  struct stat facts {};
  ::stat(folder.c_str(), &facts);  // entries_of says why a folder cannot be opened.
  FolderWalk(listing, 0).walk("", facts);
  if (listing.files.empty()) throw DataError(folder, kNoImage, "name a folder of images, or images");
  return listing;
}

ImageListing list_images(const fs::path& split_folder, Split split, std::span<const std::string> classes) {
  ImageListing listing{.folder = split_folder, .classes = {classes.begin(), classes.end()}};
  for (const Entry& entry : entries_of(split_folder)) {
    if (entry.kind != Kind::folder) {
      leave_out(listing, entry.name, entry.kind);
      continue;
    }
    const auto found = std::ranges::lower_bound(classes, entry.name);
    if (found == classes.end() || *found != entry.name)
      throw DataError(
          split_folder / entry.name,
          "is a class that the training set lacks: it has " + list_of(classes) + unicode_hint(entry.name, classes),
          "rename or remove the folder, or add the class to the training set");
    const std::size_t before = listing.files.size();
    FolderWalk(listing, static_cast<int>(found - classes.begin())).walk(entry.name, entry.facts);
    if (split == Split::train && listing.files.size() == before)
      throw DataError(split_folder / entry.name, kNoImage, "put images of the class there, or remove the folder");
  }
  if (listing.files.empty()) throw DataError(split_folder, kNoImage, "put images into a folder for each class");
  return listing;
}

}  // namespace gradring::data
