// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/fat_binary.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#include "kernels/simulated_gpu/ptx/error.h"

// NVIDIA documents none of this; the layout is what cuobjdump and the driver read since CUDA 4.
namespace gradring::ptx {
namespace {

constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kLinkedVersion = 2;  ///< of a wrapper: by the device linker (nvcc -rdc=true)
constexpr std::uint32_t kContainerMagic = 0xba55ed50;
constexpr std::uint16_t kPtx = 1, kCode = 2;                 ///< kinds of entries
constexpr std::uint64_t kLz4 = 0x2000, kZstandard = 0x8000;  ///< flags of an entry

struct Wrapper {
  std::uint32_t magic;
  std::uint32_t version;
  const std::byte* container;
  const std::byte* const* linked;  ///< of kLinkedVersion: the containers of the objects, and a null pointer
};

struct ContainerHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t entry_bytes;  ///< of all entries, which follow the header
};
static_assert(sizeof(ContainerHeader) == 16);

struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t version;
  std::uint32_t header_bytes;
  std::uint64_t payload_bytes;
  std::uint32_t compressed_bytes;  ///< what of the payload is not padding
  std::uint32_t unused[2];
  std::uint32_t compute_capability;
  std::uint32_t unused_too[2];
  std::uint64_t flags;
  std::uint64_t unused_as_well;
  std::uint64_t decompressed_bytes;
};
static_assert(sizeof(EntryHeader) == 64);

/// A copy, because nothing aligns what is in a file.
template <class Header>
Header read_header(std::span<const std::byte> bytes) {
  check<PtxError>(bytes.size() >= sizeof(Header), "a fat binary ends within a header");
  Header made;
  std::memcpy(&made, bytes.data(), sizeof(Header));
  return made;
}

class Lz4Block {
 public:
  Lz4Block(std::span<const std::byte> block, std::size_t bytes) : rest_(block), bytes_(bytes) {
    // A block of n bytes becomes fewer than 256 n: a damaged size must not take memory.
    check<PtxError>(bytes / 256 <= block.size(), [&] { return damage("too few bytes for their size"); });
    made_.reserve(bytes);
  }

  /// Sequences of literals and a match; the last one has literals only.
  std::string decompress() {
    while (true) {
      const unsigned token = take_byte();
      append_literals(read_length(token >> 4));
      if (rest_.empty()) break;
      const std::size_t low = take_byte();
      const std::size_t distance = low + (std::size_t{take_byte()} << 8);
      append_match(distance, 4 + read_length(token & 15));
    }
    check<PtxError>(made_.size() == bytes_, [&] { return damage(joined("it ends after ", made_.size())); });
    return std::move(made_);
  }

 private:
  unsigned take_byte() {
    check<PtxError>(!rest_.empty(), [&] { return damage("it is cut short"); });
    const auto byte = std::to_integer<unsigned>(rest_.front());
    rest_ = rest_.subspan(1);
    return byte;
  }

  /// 15 goes on in the bytes that follow, until one is less than 255.
  std::size_t read_length(unsigned length) {
    if (length < 15) return length;
    std::size_t sum = length;
    unsigned byte = 255;
    while (byte == 255) sum += byte = take_byte();
    return sum;
  }

  void append_literals(std::size_t length) {
    check<PtxError>(length <= rest_.size() && length <= room(), [&] { return damage("literals past the end"); });
    made_.append(reinterpret_cast<const char*>(rest_.data()), length);
    rest_ = rest_.subspan(length);
  }

  /// The copy may read what it wrote itself.
  void append_match(std::size_t distance, std::size_t length) {
    check<PtxError>(distance > 0 && distance <= made_.size() && length <= room(),
                    [&] { return damage("a match outside of the text"); });
    for (std::size_t from = made_.size() - distance; length > 0; --length) made_.push_back(made_[from++]);
  }

  std::size_t room() const { return bytes_ - made_.size(); }

  std::string damage(const std::string& what) const {
    return joined("an LZ4 block of ", bytes_, " bytes is damaged: ", what);
  }

  std::span<const std::byte> rest_;
  std::size_t bytes_;
  std::string made_;
};

bool is_compressed(const EntryHeader& header) { return (header.flags & (kLz4 | kZstandard)) != 0; }

std::string decompress(const EntryHeader& header, std::span<const std::byte> payload) {
  check<PtxError>(header.compressed_bytes <= payload.size(), "a compressed entry ends behind its part of a fat binary");
  const auto compressed = payload.first(header.compressed_bytes);
  return (header.flags & kLz4) != 0 ? decompress_lz4(compressed, header.decompressed_bytes)
                                    : decompress_zstandard(compressed, header.decompressed_bytes);
}

std::string text_of(const EntryHeader& header, std::span<const std::byte> payload) {
  std::string text = is_compressed(header) ? decompress(header, payload)
                                           : std::string(reinterpret_cast<const char*>(payload.data()), payload.size());
  text.erase(std::min(text.find('\0'), text.size()));  // the end of a C string, and padding
  return text;
}

EmbeddedCode code_of(const EntryHeader& header, std::span<const std::byte> payload) {
  EmbeddedCode code{.compute_capability = static_cast<int>(header.compute_capability), .elf = payload};
  if (is_compressed(header)) {
    code.decompressed = std::make_shared<const std::string>(decompress(header, payload));
    code.elf = std::as_bytes(std::span(*code.decompressed));
  }
  return code;
}

/// Calls take(header, payload) for each entry of this kind in a container.
template <class Take>
void each_entry(std::span<const std::byte> bytes, std::uint16_t kind, const Take& take) {
  const auto container = read_header<ContainerHeader>(bytes);
  check<PtxError>(container.magic == kContainerMagic && container.version == 1, [&] {
    return joined("a fat binary begins with ", hexadecimal(container.magic), ", version ", container.version,
                  "; expected ", hexadecimal(kContainerMagic), ", version 1");
  });
  const std::size_t rest = bytes.size() - std::min<std::size_t>(container.header_bytes, bytes.size());
  check<PtxError>(container.header_bytes >= sizeof(ContainerHeader) && container.entry_bytes <= rest,
                  "a fat binary is shorter than its header says");
  for (auto entries = bytes.subspan(container.header_bytes, container.entry_bytes); !entries.empty();) {
    const auto header = read_header<EntryHeader>(entries);
    check<PtxError>(header.header_bytes >= sizeof(EntryHeader) && header.header_bytes <= entries.size() &&
                        header.payload_bytes <= entries.size() - header.header_bytes,
                    "an entry of a fat binary ends behind the fat binary");
    if (header.kind == kind) take(header, entries.subspan(header.header_bytes, header.payload_bytes));
    entries = entries.subspan(header.header_bytes + header.payload_bytes);
  }
}

std::span<const std::byte> container_at(const std::byte* begin) {
  const auto header = read_header<ContainerHeader>({begin, sizeof(ContainerHeader)});
  return std::span(begin, header.header_bytes + header.entry_bytes);
}

const Wrapper& wrapper_at(const void* fat_binary_wrapper) {
  const auto& wrapper = *static_cast<const Wrapper*>(fat_binary_wrapper);
  check<PtxError>(wrapper.magic == kWrapperMagic && (wrapper.version == 1 || wrapper.version == kLinkedVersion), [&] {
    return joined("the wrapper of a fat binary begins with ", hexadecimal(wrapper.magic), ", version ", wrapper.version,
                  "; expected ", hexadecimal(kWrapperMagic), ", version 1 or ", kLinkedVersion);
  });
  return wrapper;
}

}  // namespace

std::string decompress_lz4(std::span<const std::byte> block, std::size_t bytes) {
  return Lz4Block(block, bytes).decompress();
}

std::vector<EmbeddedPtx> embedded_ptx(std::span<const std::byte> bytes) {
  std::vector<EmbeddedPtx> made;
  each_entry(bytes, kPtx, [&](const EntryHeader& header, std::span<const std::byte> payload) {
    made.push_back({static_cast<int>(header.compute_capability), text_of(header, payload)});
  });
  return made;
}

std::vector<EmbeddedPtx> embedded_ptx(const void* fat_binary_wrapper) {
  const Wrapper& wrapper = wrapper_at(fat_binary_wrapper);
  std::vector<EmbeddedPtx> made = embedded_ptx(container_at(wrapper.container));
  if (wrapper.version == kLinkedVersion)
    for (const std::byte* const* object = wrapper.linked; *object != nullptr; ++object)
      std::ranges::move(embedded_ptx(container_at(*object)), std::back_inserter(made));
  return made;
}

std::vector<EmbeddedCode> embedded_code(std::span<const std::byte> bytes) {
  std::vector<EmbeddedCode> made;
  each_entry(bytes, kCode, [&](const EntryHeader& header, std::span<const std::byte> payload) {
    made.push_back(code_of(header, payload));
  });
  return made;
}

std::vector<EmbeddedCode> embedded_code(const void* fat_binary_wrapper) {
  return embedded_code(container_at(wrapper_at(fat_binary_wrapper).container));
}

}  // namespace gradring::ptx
