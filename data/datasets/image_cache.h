// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/datasets/pack_images.h"

namespace gradring::data {

/// The decoded images of image folders, in files that all processes of this user share:
///
///   KEY.images   a split by some settings (packed_images.h); KEY begins the SHA-256 of names, contents and settings
///   ID.list      of a folder by some settings: the SHA-256 of its files' names, sizes and times, and the KEY
///   ID.lock      locked by the process that makes the above
///   ID.part      what will be KEY.images
///
/// A start that finds the sizes and times of ID.list opens KEY.images without reading the images of the folder.
class ImageCache {
 public:
  /// Receives lines for the user: what is made, and how long it takes.
  using Say = std::function<void(const std::string&)>;

  /// Errors    none: `folder` is made when it is needed, with mode 0700.
  ImageCache(std::filesystem::path folder, Say say) : folder_(std::move(folder)), say_(std::move(say)) {}

  /// The packed images of a split, made by all processors if they are missing or damaged. While another process makes
  /// them, this one waits.
  ///
  /// Errors    as pack_images; std::system_error if the cache cannot be written; Error if the other process stands
  ///           still for kPatience.
  std::unique_ptr<PackedImages> open(const ImageListing& listing, const ImageSettings& settings);

  static constexpr std::chrono::minutes kPatience{5};

 private:
  class Lock;

  std::unique_ptr<PackedImages> find(const ImageListing& listing, const ImageSettings& settings,
                                     const std::filesystem::path& list, const std::string& stamp) const;
  std::unique_ptr<PackedImages> make(const ImageListing& listing, const ImageSettings& settings, const Lock& lock,
                                     const std::string& id, const std::string& stamp);

  std::filesystem::path folder_;
  Say say_;
};

/// The environment variable of the folder for caches.
inline constexpr const char* kCacheVariable = "GRADRING_CACHE_DIR";

/// The folder of this user's image cache: images in $GRADRING_CACHE_DIR, $XDG_CACHE_HOME/gradring or ~/.cache/gradring,
/// the first that is set.
///
/// Errors    InvalidArgument if none is set.
std::filesystem::path default_image_cache();

/// A remark if users other than this one and root may write to the folder of a cache; else empty.
std::string writers_of(const std::filesystem::path& folder);

/// A file of an image cache.
struct CachedImages {
  std::string key;
  std::filesystem::path path;
  std::uint64_t bytes = 0;
  std::chrono::system_clock::time_point used{};  ///< last opened
  PackedFacts facts;
  std::string damage;  ///< why the facts are missing; empty if they are there
};

/// The packed images in a cache, last used first; empty without that folder.
///
/// Errors    std::system_error if the folder cannot be listed.
std::vector<CachedImages> cached_images(const std::filesystem::path& folder);

/// Removes one of them, or what interrupted processes left (ID.part, ID.lock) and lists without images if `key` is
/// empty. A process that has the images open keeps them until it ends.
///
/// Errors    std::system_error.
void remove_cached(const std::filesystem::path& folder, const std::string& key);

}  // namespace gradring::data
