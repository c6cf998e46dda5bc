// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/datasets/image_listing.h"
#include "data/datasets/image_settings.h"
#include "data/datasets/packed_images.h"
#include "data/files/sha256.h"

namespace gradring::data {

/// The pixels of an image file by these settings: torchvision's Resize(resize), CenterCrop(size) of a PIL image.
///
/// Errors    as read_image.
std::vector<std::uint8_t> decoded(const std::filesystem::path& path, const ImageSettings& settings);

/// Called now and then from one thread at a time, with the images that are done.
using Progress = std::function<void(std::int64_t done)>;

/// Threads that decode: the processors that are usable, fewer where the largest images would not fit in memory beside
/// each other.
int decoding_threads();

/// The SHA-256 of each file, by index; zeros for one that cannot be read.
///
/// Cost      reads every file once.
std::vector<Sha256> hash_images(const ImageListing& listing, int threads, const Progress& progress);

/// The SHA-256 of all paths, labels, hashes of files, and the settings. Equal decoders pack equal images for equal
/// keys.
Sha256 content_key(const ImageListing& listing, std::span<const Sha256> hashes, const ImageSettings& settings);

/// Decodes all images into `file`, which is empty, and writes what packed_images.h describes, with the content_key.
/// Images that cannot be read are noted in the facts.
///
/// Errors    DataError if a file has changed since it was hashed, or no image can be read; std::system_error if the
///           disk is full or fails; NoPngError, NoJpegError.
/// Cost      memory: that of read_image for each thread.
void pack_images(const ImageListing& listing, std::span<const Sha256> hashes, const ImageSettings& settings,
                 const Sha256& key, int threads, const std::filesystem::path& file, const Progress& progress);

}  // namespace gradring::data
