// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/ptx/fat_binary.h"

#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>

#include "kernels/simulated_gpu/ptx/error.h"

namespace gradring::ptx {
namespace {

using testing::AllOf;
using testing::HasSubstr;

template <class Value>
void put(std::string& bytes, std::size_t offset, Value value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

struct Entry {
  std::uint16_t kind = 1;
  std::uint32_t compute_capability = 90;
  std::uint64_t flags = 0x11;
  std::string payload;
  std::uint64_t decompressed_bytes = 0;
};

/// As nvcc writes them: headers of more bytes than are known here, payloads padded to 8 bytes.
std::string container(const std::vector<Entry>& entries) {
  std::string all;
  for (const Entry& entry : entries) {
    std::string bytes(80, '\x7f');
    std::string payload = entry.payload;
    payload.resize((payload.size() + 7) / 8 * 8);
    put(bytes, 0, entry.kind);
    put(bytes, 4, std::uint32_t{80});
    put(bytes, 8, std::uint64_t{payload.size()});
    put(bytes, 16, static_cast<std::uint32_t>(entry.payload.size()));
    put(bytes, 28, entry.compute_capability);
    put(bytes, 40, entry.flags);
    put(bytes, 56, entry.decompressed_bytes);
    all += bytes + payload;
  }
  std::string header(16, '\0');
  put(header, 0, 0xba55ed50u);
  put(header, 4, std::uint16_t{1});
  put(header, 6, std::uint16_t{16});
  put(header, 8, std::uint64_t{all.size()});
  return header + all;
}

std::vector<EmbeddedPtx> read(const std::string& bytes) { return embedded_ptx(std::as_bytes(std::span(bytes))); }

std::string error_in(const std::string& bytes) {
  try {
    read(bytes);
  } catch (const PtxError& error) {
    return error.what();
  }
  return "none";
}

// Eight line feeds: one, and a match of seven that overlaps itself. Then 16 + 5 literals.
const std::string kBlock("\x13\n\x01\x00\xf0\x06.version 9.0 .target ", 27);
const std::string kText = "\n\n\n\n\n\n\n\n.version 9.0 .target ";

TEST(FatBinary, HoldsPtxBesideMachineCode) {
  const std::string bytes = container({{.kind = 2,
                                        .payload = "\x7f"
                                                   "ELF"},
                                       {.compute_capability = 80, .payload = ".version 8.0\n"},
                                       {.flags = 0x2011, .payload = kBlock, .decompressed_bytes = 29}});
  const auto found = read(bytes + "what follows");
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].compute_capability, 80);
  EXPECT_EQ(found[0].text, ".version 8.0\n");
  EXPECT_EQ(found[1].compute_capability, 90);
  EXPECT_EQ(found[1].text, kText);
}

TEST(FatBinary, IsReadThroughItsWrapper) {
  const std::string bytes = container({{.payload = ".version 9.0"}});
  struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const void* data;
    const void* unused = nullptr;
  } wrapper{.data = bytes.data()};
  ASSERT_EQ(embedded_ptx(&wrapper).size(), 1);
  EXPECT_EQ(embedded_ptx(&wrapper)[0].text, ".version 9.0");
  wrapper.version = 3;
  EXPECT_THROW(embedded_ptx(&wrapper), PtxError);
}

TEST(FatBinary, HasThePtxOfEachLinkedObject) {
  const std::string linked = container({{.kind = 2, .payload = "code"}});
  const std::string objects[2] = {container({{.payload = "first"}}), container({{.payload = "second"}})};
  const void* const list[3] = {objects[0].data(), objects[1].data(), nullptr};
  const struct {
    std::uint32_t magic = 0x466243b1, version = 2;
    const void* data;
    const void* const* linked;
  } wrapper{.data = linked.data(), .linked = list};
  const auto found = embedded_ptx(&wrapper);
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].text, "first");
  EXPECT_EQ(found[1].text, "second");
}

/// The bytes of "0a2e".
std::string from_hexadecimal(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

// kText, as `zstd --no-check` compresses it.
const std::string kFrame =
    from_hexadecimal("28b52ffd0058e900000a0a0a0a0a0a0a0a2e76657273696f6e20392e30202e74617267657420");

TEST(FatBinary, ReadsZstandardOrSaysWhatToDo) {
  const std::string bytes = container({{.flags = 0x8011, .payload = kFrame, .decompressed_bytes = 29},
                                       {.kind = 2, .flags = 0x8011, .payload = kFrame, .decompressed_bytes = 29}});
  if (!has_zstandard()) {
    EXPECT_THAT(error_in(bytes), AllOf(HasSubstr("libzstd-dev"), HasSubstr("--compress-mode=speed")));
    return;
  }
  EXPECT_EQ(read(bytes).at(0).text, kText);
  const EmbeddedCode code = embedded_code(std::as_bytes(std::span(bytes))).at(0);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(code.elf.data()), code.elf.size()), kText);
}

TEST(FatBinary, RejectsDamage) {
  const std::string whole = container({{.payload = ".version 9.0"}});
  ASSERT_EQ(error_in(whole), "none");
  for (std::size_t size = 0; size < whole.size(); ++size) EXPECT_NE(error_in(whole.substr(0, size)), "none") << size;
  for (const std::size_t byte : {0, 4, 6, 8, 15, 16 + 4, 16 + 8, 16 + 15}) {
    std::string damaged = whole;
    damaged[byte] ^= '\x40';
    EXPECT_NE(error_in(damaged), "none") << byte;
  }
}

std::string decompress(const std::string& block, std::size_t bytes) {
  return decompress_lz4(std::as_bytes(std::span(block)), bytes);
}

TEST(Lz4, DecompressesLongLengths) {
  // 15 + 255 + 10 literals; a match of 4 + 15 + 255 + 255 + 0 at distance 280.
  const std::string literals = std::string(140, 'a') + std::string(140, 'b');
  const std::string block = std::string("\xff\xff\x0a", 3) + literals + std::string("\x18\x01\xff\xff\x00\x10z", 7);
  EXPECT_EQ(decompress(block, 280 + 529 + 1), literals + literals + literals.substr(0, 249) + "z");
  EXPECT_EQ(decompress(std::string("\0", 1), 0), "");
}

TEST(Lz4, RejectsDamage) {
  ASSERT_EQ(decompress(kBlock, kText.size()), kText);
  EXPECT_THROW(decompress(kBlock, kText.size() - 1), PtxError);
  EXPECT_THROW(decompress(kBlock, kText.size() + 1), PtxError);
  EXPECT_THROW(decompress(kBlock, std::size_t{1} << 40), PtxError);
  for (std::size_t size = 0; size < kBlock.size(); ++size)
    EXPECT_THROW(decompress(kBlock.substr(0, size), kText.size()), PtxError) << size;
  for (const char distance : {'\x00', '\x02'}) {
    std::string outside = kBlock;
    outside[2] = distance;
    EXPECT_THROW(decompress(outside, kText.size()), PtxError);
  }
}

class Zstandard : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_zstandard()) GTEST_SKIP() << "this build has no libzstd";
  }

  static std::string decompress(const std::string& frame, std::size_t bytes) {
    return decompress_zstandard(std::as_bytes(std::span(frame)), bytes);
  }
};

TEST_F(Zstandard, DecompressesMoreThanOnePiece) {
  std::string text;
  for (int line = 0; line < 8000; ++line) text += "mov.u32 %r1, %r2;\n";
  text.pop_back();
  const std::string frame =
      from_hexadecimal("28b52ffd0058d40000906d6f762e753332202572312c202572323b0a0100d6ff2b9f61450000087201007b920742");
  EXPECT_EQ(decompress(frame, text.size()), text);
}

TEST_F(Zstandard, RejectsDamage) {
  ASSERT_EQ(decompress(kFrame, kText.size()), kText);
  EXPECT_THROW(decompress(kFrame, kText.size() - 1), PtxError);
  EXPECT_THROW(decompress(kFrame, kText.size() + 1), PtxError);
  EXPECT_THROW(decompress(kFrame, std::size_t{1} << 40), PtxError);
  for (std::size_t size = 0; size < kFrame.size(); ++size)
    EXPECT_THROW(decompress(kFrame.substr(0, size), kText.size()), PtxError) << size;
}

}  // namespace
}  // namespace gradring::ptx
