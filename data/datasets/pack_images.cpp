// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/pack_images.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "data/files/byte_source.h"
#include "data/images/decoders.h"
#include "data/images/image.h"
#include "kernels/base/available_memory.h"
#include "kernels/base/processors.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

/// Calls of one function by several threads, each with an index of its own.
class IndexLoop {
 public:
  IndexLoop(std::int64_t count, const Progress& progress) : count_(count), progress_(progress) {}

  /// Errors    the first that `step` throws; the other threads then stop.
  template <class Step>
  void run(int threads, const Step& step) {
    {
      std::vector<std::jthread> others;
      for (int i = 1; i < threads; ++i) others.emplace_back([&] { work(step); });
      work(step);
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  template <class Step>
  void work(const Step& step) noexcept {
    for (std::int64_t i = next_++; i < count_; i = next_++) try {
        step(i);
        const std::lock_guard lock(mutex_);
        progress_(++done_);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        next_ = count_;
      }
  }

  const std::int64_t count_;
  const Progress& progress_;
  std::atomic<std::int64_t> next_ = 0;
  std::mutex mutex_;
  std::int64_t done_ = 0;
  std::exception_ptr error_;
};

/// In the place of the hash of a file that cannot be read.
constexpr Sha256 kUnread{};

std::vector<std::uint8_t> sample_of(Image image, const ImageSettings& settings) {
  const bool is_one = image.height == settings.size && image.width == settings.size && settings.resize == settings.size;
  return is_one ? std::move(image.pixels) : resized_middle(image, settings.resize, settings.size).pixels;
}

std::string without_path(const DataError& error) {
  const std::string_view message = error.what();
  return std::string(message.substr(std::min(message.size(), printable(error.path().string()).size() + 2)));
}

/// The sample of one file, or why it cannot be read.
struct Packed {
  std::vector<std::uint8_t> pixels;
  std::string broken;
};

Packed pack(const fs::path& path, const Sha256& expected, const ImageSettings& settings) {
  std::string bytes;
  Packed packed;
  try {
    bytes = read_image_file(path);
  } catch (const DataError& error) {
    packed.broken = without_path(error);
  }
  if ((packed.broken.empty() ? sha256_of(bytes) : kUnread) != expected)
    throw DataError(path, "has changed while it was read", "start again when no program writes to the folder");
  if (packed.broken.empty()) try {
      packed.pixels = sample_of(decode_image(path, bytes), settings);
    } catch (const DataError& error) {
      packed.broken = without_path(error);
    }
  return packed;
}

}  // namespace

std::string ImageSettings::text() const {
  return std::to_string(size) + " x " + std::to_string(size) + " pixels out of a shorter side of " +
         std::to_string(resize);
}

std::vector<std::uint8_t> decoded(const fs::path& path, const ImageSettings& settings) {
  return sample_of(read_image(path), settings);
}

int decoding_threads() {
  constexpr std::uint64_t kMostBytes = kLargestImageFile + 15 * data::kMostPixels;  // a progressive JPEG
  const std::uint64_t fit = available_memory() / kMostBytes;
  return static_cast<int>(std::clamp<std::uint64_t>(fit, 1, static_cast<std::uint64_t>(usable_processors())));
}

std::vector<Sha256> hash_images(const ImageListing& listing, int threads, const Progress& progress) {
  std::vector<Sha256> hashes(listing.files.size());
  IndexLoop(std::ssize(listing.files), progress).run(threads, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    try {
      hashes[at] = sha256_of(read_image_file(listing.folder / listing.files[at].path));
    } catch (const DataError&) {
      hashes[at] = kUnread;
    }
  });
  return hashes;
}

Sha256 content_key(const ImageListing& listing, std::span<const Sha256> hashes, const ImageSettings& settings) {
  Sha256Sum sum;
  const auto add = [&sum](std::string_view text) {
    const std::uint64_t size = text.size();
    sum.add(std::as_bytes(std::span(&size, 1)));
    sum.add(std::as_bytes(std::span(text)));
  };
  add(settings.text());
  for (const std::string& name : listing.classes) add(name);
  add("");
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    add(listing.files[i].path);
    sum.add(hashes[i]);
  }
  return sum.finish();
}

void pack_images(const ImageListing& listing, std::span<const Sha256> hashes, const ImageSettings& settings,
                 const Sha256& key, int threads, const fs::path& file, const Progress& progress) {
  PackedFacts facts{.source = fs::absolute(listing.folder).lexically_normal().string(),
                    .settings = settings.text(),
                    .decoders = decoder_versions(),
                    .size = settings.size,
                    .classes = listing.classes,
                    .labels = {},
                    .broken = {},
                    .content = key,
                    .checksums = std::vector<std::uint32_t>(listing.files.size())};
  for (const ImageFile& each : listing.files) facts.labels.push_back(each.label);
  const PackedFile packed_file(file, facts);
  std::mutex mutex;
  IndexLoop(std::ssize(listing.files), progress).run(threads, [&](std::int64_t i) {
    const auto slot = static_cast<std::uint64_t>(i);
    const std::string& path = listing.files[slot].path;
    Packed packed = pack(listing.folder / path, hashes[slot], settings);
    if (packed.broken.empty()) {
      facts.checksums[slot] = checksum_of(packed.pixels);
      packed_file.write(packed.pixels, slot);
      return;
    }
    const std::lock_guard lock(mutex);
    facts.broken.push_back({.slot = slot, .path = path, .reason = std::move(packed.broken)});
  });
  std::ranges::sort(facts.broken, {}, &BrokenImage::slot);
  packed_file.finish();
}

}  // namespace gradring::data
