// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/packed_images.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "data/files/byte_source.h"
#include "kernels/base/available_memory.h"
#include "kernels/base/directory.h"

namespace gradring::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPackedMagic = "gradring images 3\n";
constexpr const char* kMakeAgain = "remove it with gradring data cache rm: the next start makes it again";
static_assert(std::endian::native == std::endian::little, "packed images are little-endian");

/// The numbers behind the magic.
struct Start {
  std::uint64_t facts_at = 0;
  std::uint64_t facts_bytes = 0;
  Sha256 facts_hash{};
};

class Writer {
 public:
  void number(std::uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value) {
    number(value.size());
    bytes_ += value;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

/// Returns zeros and empty texts beyond the end.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    if (rest_.size() < sizeof value) return rest_ = {}, 0;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const std::uint64_t promised = number();  // which shortens the rest
    const std::uint64_t size = std::min<std::uint64_t>(promised, rest_.size());
    std::string value(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return value;
  }
  /// A count of things of at least `bytes` each.
  std::uint64_t count(std::uint64_t bytes) {
    const std::uint64_t promised = number();
    return std::min<std::uint64_t>(promised, rest_.size() / bytes);
  }

 private:
  std::string_view rest_;
};

std::string to_bytes(const PackedFacts& facts) {
  Writer writer;
  writer.text(facts.source);
  writer.text(facts.settings);
  writer.number(static_cast<std::uint64_t>(facts.size));
  writer.number(facts.classes.size());
  for (const std::string& name : facts.classes) writer.text(name);
  writer.text({reinterpret_cast<const char*>(facts.labels.data()), facts.labels.size() * sizeof(std::int32_t)});
  writer.number(facts.broken.size());
  for (const BrokenImage& image : facts.broken) {
    writer.number(image.slot);
    writer.text(image.path);
    writer.text(image.reason);
  }
  writer.text({reinterpret_cast<const char*>(facts.content.data()), facts.content.size()});
  return writer.bytes();
}

PackedFacts facts_of(std::string_view bytes) {
  Reader reader(bytes);
  PackedFacts facts;
  facts.source = reader.text();
  facts.settings = reader.text();
  facts.size = static_cast<std::int64_t>(reader.number());
  for (std::uint64_t left = reader.count(8); left > 0; --left) facts.classes.push_back(reader.text());
  const std::string labels = reader.text();
  facts.labels.resize(labels.size() / sizeof(std::int32_t));
  if (!facts.labels.empty())
    std::memcpy(facts.labels.data(), labels.data(), facts.labels.size() * sizeof(std::int32_t));
  for (std::uint64_t left = reader.count(24); left > 0; --left) {
    BrokenImage& image = facts.broken.emplace_back();
    image.slot = reader.number();
    image.path = reader.text();
    image.reason = reader.text();
  }
  const std::string content = reader.text();
  std::memcpy(facts.content.data(), content.data(), std::min(content.size(), facts.content.size()));
  return facts;
}

[[noreturn]] void throw_errno(const fs::path& path, const char* what) {
  throw std::system_error(errno, std::generic_category(), path.string() + ": " + what);
}

[[noreturn]] void throw_write_error(const fs::path& path, const char* what, int error) {
  throw std::system_error(error, std::generic_category(),
                          path.string() + ": " + what +
                              (error == ENOSPC || error == EDQUOT || error == EFBIG
                                   ? "; free space there, or set GRADRING_CACHE_DIR to a folder on another disk"
                                   : ""));
}

std::string read_at(const fs::path& path, const UniqueFd& file, std::uint64_t at, std::uint64_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t have = 0; have < text.size();) {
    const ssize_t count = ::pread(file.get(), text.data() + have, text.size() - have, static_cast<off_t>(at + have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_errno(path, "cannot be read");
    if (count == 0) throw DataError(path, "is truncated", kMakeAgain);
    have += static_cast<std::size_t>(count);
  }
  return text;
}

/// Labels and broken slots belong to the classes and slots, whatever the file holds.
bool is_consistent(const PackedFacts& facts, std::uint64_t facts_at) {
  const auto classes = static_cast<std::int32_t>(facts.classes.size());
  return facts.size > 0 && facts.size < (1 << 15) && std::ssize(facts.labels) < INT32_MAX && facts_at == facts.end() &&
         std::ranges::all_of(facts.labels, [classes](std::int32_t label) { return label >= 0 && label < classes; }) &&
         std::ranges::all_of(facts.broken, [&](const BrokenImage& each) { return each.slot < facts.labels.size(); }) &&
         std::ranges::is_sorted(facts.broken, {}, &BrokenImage::slot);
}

}  // namespace

PackedFile::PackedFile(fs::path path, const PackedFacts& facts)
    : path_(std::move(path)), facts_(facts), file_(open_file(path_, O_RDWR | O_CREAT | O_TRUNC)) {
  if (!file_) throw_write_error(path_, "cannot be created", errno);
  const int error = ::posix_fallocate(file_.get(), 0, static_cast<off_t>(facts_.end()));
  if (error != 0) throw_write_error(path_, "cannot be written", error);
}

void PackedFile::write(std::span<const std::uint8_t> pixels, std::uint64_t slot) const {
  write_at({reinterpret_cast<const char*>(pixels.data()), pixels.size()}, facts_.start_of(slot));
}

void PackedFile::finish() const {
  const std::string bytes = to_bytes(facts_);
  const Start start{.facts_at = facts_.end(), .facts_bytes = bytes.size(), .facts_hash = sha256_of(bytes)};
  write_at(bytes, start.facts_at);
  write_at(std::string(kPackedMagic) + std::string(reinterpret_cast<const char*>(&start), sizeof start), 0);
  if (::fdatasync(file_.get()) != 0) throw_write_error(path_, "cannot be written", errno);
}

void PackedFile::write_at(std::string_view bytes, std::uint64_t at) const {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (written < 0 && errno != EINTR) throw_write_error(path_, "cannot be written", errno);
    if (written <= 0) continue;
    bytes.remove_prefix(static_cast<std::size_t>(written));
    at += static_cast<std::uint64_t>(written);
  }
}

PackedFacts read_packed_facts(const fs::path& path) {
  const UniqueFd file = open_file(path, O_RDONLY);
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0)
    throw DataError(path, std::string("cannot be opened (") + std::strerror(errno) + ")", kMakeAgain);
  const auto bytes = static_cast<std::uint64_t>(about.st_size);
  if (!S_ISREG(about.st_mode) || bytes < kPackedStart)
    throw DataError(path, "is not a file of packed images", kMakeAgain);
  const std::string head = read_at(path, file, 0, kPackedMagic.size() + sizeof(Start));
  if (!head.starts_with(kPackedMagic))
    throw DataError(path, "is of another version, or not a file of packed images", kMakeAgain);
  Start start;
  std::memcpy(&start, head.data() + kPackedMagic.size(), sizeof start);
  if (start.facts_at > bytes || start.facts_bytes != bytes - start.facts_at)
    throw DataError(path, "is truncated", kMakeAgain);
  const std::string text = read_at(path, file, start.facts_at, start.facts_bytes);
  PackedFacts facts = facts_of(text);
  if (sha256_of(text) != start.facts_hash || !is_consistent(facts, start.facts_at))
    throw DataError(path, "is damaged", kMakeAgain);
  return facts;
}

PackedImages::PackedImages(const fs::path& path) : facts_(read_packed_facts(path)) {
  auto broken = facts_.broken.begin();
  for (std::uint32_t slot = 0; slot < facts_.labels.size(); ++slot)
    if (broken != facts_.broken.end() && broken->slot == slot)
      ++broken;
    else
      slots_.push_back(slot);
  mapped_bytes_ = facts_.end();
  const UniqueFd file = open_file(path, O_RDONLY);
  if (!file) throw_errno(path, "cannot be opened");
  void* const at = ::mmap(nullptr, mapped_bytes_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (at == MAP_FAILED) throw_errno(path, "cannot be mapped into memory");
  start_ = static_cast<const std::uint8_t*>(at);
  exceeds_memory_ = mapped_bytes_ > available_memory();
  if (exceeds_memory_) ::madvise(at, mapped_bytes_, MADV_RANDOM);  // otherwise each fault reads 128 KiB
}

PackedImages::~PackedImages() { ::munmap(const_cast<std::uint8_t*>(start_), mapped_bytes_); }

std::size_t PackedImages::slot_of(std::int64_t index) const {
  if (index < 0 || index >= size()) [[unlikely]]
    throw InvalidArgument("the image folder has no sample " + std::to_string(index) + ": it holds 0 to " +
                          std::to_string(size() - 1));
  return slots_[static_cast<std::size_t>(index)];
}

void PackedImages::read_ahead(std::span<const std::uint8_t> bytes) const {
  static const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto offset = static_cast<std::size_t>(bytes.data() - start_) / page * page;
  const auto end = static_cast<std::size_t>(bytes.data() - start_) + bytes.size();
  ::madvise(const_cast<std::uint8_t*>(start_) + offset, end - offset, MADV_WILLNEED);
}

std::span<const std::uint8_t> PackedImages::pixels(std::int64_t index) const {
  const std::span pixels(start_ + facts_.start_of(slot_of(index)), facts_.slot_bytes());
  if (exceeds_memory_) read_ahead(pixels);
  return pixels;
}

}  // namespace gradring::data
