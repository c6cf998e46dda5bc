// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/packed_images.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>
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
  writer.text(facts.decoders);
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
  writer.text({reinterpret_cast<const char*>(facts.checksums.data()), facts.checksums.size() * sizeof(std::uint32_t)});
  return writer.bytes();
}

PackedFacts facts_of(std::string_view bytes) {
  Reader reader(bytes);
  PackedFacts facts;
  facts.source = reader.text();
  facts.settings = reader.text();
  facts.decoders = reader.text();
  facts.size = static_cast<std::int64_t>(reader.number());
  for (std::uint64_t left = reader.count(8); left > 0; --left) facts.classes.push_back(reader.text());
  const auto read = [&reader](auto& values) {
    const std::string text = reader.text();
    values.resize(text.size() / sizeof values[0]);
    if (!values.empty()) std::memcpy(values.data(), text.data(), values.size() * sizeof values[0]);
  };
  read(facts.labels);
  for (std::uint64_t left = reader.count(24); left > 0; --left) {
    BrokenImage& image = facts.broken.emplace_back();
    image.slot = reader.number();
    image.path = reader.text();
    image.reason = reader.text();
  }
  const std::string content = reader.text();
  std::memcpy(facts.content.data(), content.data(), std::min(content.size(), facts.content.size()));
  read(facts.checksums);
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
         std::ranges::is_sorted(facts.broken, {}, &BrokenImage::slot) && facts.checksums.size() == facts.labels.size();
}

}  // namespace

/// A range of memory that is mapped to a file. The handler of SIGBUS looks the address up among all that exist: a page
/// that the file no longer has raises the signal.
class PackedImages::MappedRange {
 public:
  MappedRange(const fs::path& path, const std::uint8_t* start, std::size_t bytes)
      : start_(reinterpret_cast<std::uintptr_t>(start)),
        bytes_(bytes),
        message_("gradring: " + path.string() +
                 ": has become shorter while it was in use, or its disk fails; start again: a damaged file of the "
                 "cache is made anew\n") {
    static std::once_flag installed;
    std::call_once(installed, install_handler);
    for (auto& each : all_)
      if (const MappedRange* none = nullptr; each.compare_exchange_strong(none, this)) break;
  }
  ~MappedRange() {
    for (auto& each : all_)
      if (const MappedRange* self = this; each.compare_exchange_strong(self, nullptr)) break;
  }
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

 private:
  static void install_handler() {
    struct sigaction action {};
    action.sa_sigaction = &on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGBUS, &action, &action_before_);
  }

  static void on_bus_error(int, siginfo_t* info, void*) {
    const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
    for (const auto& each : all_)
      if (const MappedRange* const range = each.load(); range && address - range->start_ < range->bytes_) {
        print_to_stderr(range->message_);
        ::_exit(kBadData);
      }
    ::sigaction(SIGBUS, &action_before_, nullptr);  // The access is repeated, and goes to the handler before.
  }

  static inline std::array<std::atomic<const MappedRange*>, 64> all_;
  static inline struct sigaction action_before_;

  const std::uintptr_t start_;
  const std::size_t bytes_;
  const std::string message_;
};

std::uint32_t checksum_of(std::span<const std::uint8_t> pixels) {
  return static_cast<std::uint32_t>(::crc32_z(0, pixels.data(), pixels.size()));
}

std::string packed_key(const Sha256& content, const std::string& decoders) {
  return to_hex(sha256_of(to_hex(content) + decoders)).substr(0, 32);
}

UniqueFd create_anew(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
  UniqueFd file = open_file(path, O_RDWR | O_CREAT | O_EXCL);
  if (!file) throw_write_error(path, errno == EEXIST ? "cannot be replaced; remove it" : "cannot be created", errno);
  return file;
}

PackedFile::PackedFile(fs::path path, const PackedFacts& facts)
    : path_(std::move(path)), facts_(facts), file_(create_anew(path_)) {
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
  const UniqueFd file = open_file(path, O_RDONLY | O_NONBLOCK);
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
  if (const std::string key = packed_key(facts.content, facts.decoders); path.stem() != key)
    throw DataError(path, "holds the images of another key, " + key, kMakeAgain);
  return facts;
}

PackedImages::PackedImages(const fs::path& path)
    : path_(path), facts_(read_packed_facts(path)), verified_(facts_.labels.size()) {
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
  range_ = std::make_unique<MappedRange>(path, start_, mapped_bytes_);
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
  const std::size_t slot = slot_of(index);
  const std::span pixels(start_ + facts_.start_of(slot), facts_.slot_bytes());
  if (exceeds_memory_) read_ahead(pixels);
  if (verified_[slot].load(std::memory_order_relaxed)) return pixels;
  if (checksum_of(pixels) != facts_.checksums[slot])
    throw DataError(path_, "is damaged: the pixels of image " + std::to_string(slot) + " have another checksum",
                    kMakeAgain);
  verified_[slot].store(true, std::memory_order_relaxed);
  return pixels;
}

}  // namespace gradring::data
