// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/support/json.h"
#include "tests/support/temp_folder.h"
#include "tests/train/records/checkpoint/small_checkpoint.h"
#include "tests/train/support/memory_disk.h"
#include "tests/train/support/sealed_meta.h"
#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/checkpoint/file_system.h"

namespace gradring::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using tests::MemoryDisk;
using Json = nlohmann::ordered_json;

namespace fs = std::filesystem;

constexpr const char* kFiles[] = {kModelFile, kStateFile, kMetaFile};

/// Two checkpoints; the tests damage the newer one.
class DamagedCheckpoint : public testing::Test {
 protected:
  DamagedCheckpoint() {
    disk_.make_folder("/run");
    for (std::int64_t step : {10, 20}) EXPECT_THAT(directory_.save(small_checkpoint(step)), IsEmpty());
    for (const char* name : kFiles) whole_.push_back(disk_.bytes_of(newest_ / name));
    whole_meta_.assign(reinterpret_cast<const char*>(whole_[2].data()), whole_[2].size());
  }

  std::size_t total_bytes() const { return whole_[0].size() + whole_[1].size() + whole_[2].size(); }

  /// The file of byte `at` of the three concatenated files, and its offset there.
  std::pair<std::size_t, std::size_t> place_of(std::size_t at) const {
    std::size_t file = 0;
    while (at >= whole_[file].size()) at -= whole_[file++].size();
    return {file, at};
  }

  /// Whether the message names the file, and the checkpoint before is used.
  bool falls_back(std::size_t file) {
    const NewestValid newest = directory_.newest_valid();
    return newest.found && newest.found->step == 10 && newest.passed_over.size() == 1 &&
           newest.passed_over[0].folder == newest_ &&
           newest.passed_over[0].why.starts_with((newest_ / kFiles[file]).string());
  }

  void put_meta(const std::string& text) {
    const auto bytes = bytes_of(text);
    disk_.bytes_of(newest_ / kMetaFile).assign(bytes.begin(), bytes.end());
  }

  MemoryDisk disk_;
  CheckpointDirectory directory_{disk_, "/run/checkpoints"};
  const fs::path newest_ = "/run/checkpoints/step-20";
  std::vector<std::vector<std::byte>> whole_;
  std::string whole_meta_;
};

TEST(Checkpoint, RoundTrips) {
  MemoryDisk disk;
  disk.make_folder("/a");
  Checkpoint checkpoint = small_checkpoint(7, 0.75);
  checkpoint.state = awkward_tensors();
  (*checkpoint.about)["lr"] = 0.1;
  (*checkpoint.about)["tiny"] = 5e-324;
  write_checkpoint(disk, "/a", checkpoint);
  expect_equal(read_checkpoint(disk, "/a"), checkpoint);
  EXPECT_THAT(verify_checkpoint(disk, "/a"), IsEmpty());
}

TEST(Checkpoint, RoundTripsOnDisk) {
  const tests::TempFolder folder;
  PosixFileSystem files;
  write_checkpoint(files, folder.path(), small_checkpoint(7));
  expect_equal(read_checkpoint(files, folder.path()), small_checkpoint(7));
}

TEST(Checkpoint, RoundTripsEmpty) {
  MemoryDisk disk;
  disk.make_folder("/a");
  write_checkpoint(disk, "/a", {});
  expect_equal(read_checkpoint(disk, "/a"), {});
}

TEST(Checkpoint, DropsScoreThatIsNotFinite) {
  MemoryDisk disk;
  disk.make_folder("/a");
  write_checkpoint(disk, "/a", small_checkpoint(1, std::nan("")));
  EXPECT_EQ(read_checkpoint(disk, "/a").score, std::nullopt);
}

TEST(Checkpoint, EndsMetaWithItsHash) {
  MemoryDisk disk;
  disk.make_folder("/a");
  write_checkpoint(disk, "/a", small_checkpoint(7, 0.5));
  const auto& bytes = disk.bytes_of("/a/meta.json");
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto json = tests::parse_json(text);
  EXPECT_EQ(json.at("format"), 1);
  EXPECT_EQ(json.at("step"), 7);
  EXPECT_EQ(json.at("score"), 0.5);
  EXPECT_EQ(json.at("about").at("sampler").at("position"), 320);
  EXPECT_EQ(json.at(kModelFile).at("tensors").at("fc.bias"), sha256_hex(small_checkpoint(7).model[0].bytes));
  EXPECT_EQ(json.at("sha256"), sha256_hex(bytes_of(text.substr(0, text.size() - 68))));
}

TEST(Checkpoint, RejectsInvalidUtf8BeforeWriting) {
  MemoryDisk disk;
  disk.make_folder("/a");
  Checkpoint checkpoint = small_checkpoint(1);
  (*checkpoint.about)["name"] = "\xff";
  EXPECT_THROW(write_checkpoint(disk, "/a", checkpoint), InvalidArgument);
  EXPECT_THAT(disk.list("/a"), IsEmpty());
}

TEST_F(DamagedCheckpoint, Detects10000BitFlips) {
  constexpr unsigned kSeed = 20;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  std::uniform_int_distribution<std::size_t> bits(0, total_bytes() * 8 - 1);
  int missed = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t bit = bits(random);
    const auto [file, at] = place_of(bit / 8);
    std::byte& byte = disk_.bytes_of(newest_ / kFiles[file])[at];
    byte ^= std::byte{1} << bit % 8;
    if (!falls_back(file) && ++missed <= 3) ADD_FAILURE() << kFiles[file] << ", byte " << at << ", bit " << bit % 8;
    byte ^= std::byte{1} << bit % 8;
  }
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(directory_.newest_valid().found->step, 20);
}

TEST_F(DamagedCheckpoint, Detects1000Truncations) {
  constexpr unsigned kSeed = 21;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  std::uniform_int_distribution<std::size_t> bytes(0, total_bytes() - 1);
  for (int i = 0; i < 1'000; ++i) {
    const auto [file, at] = place_of(bytes(random));
    disk_.bytes_of(newest_ / kFiles[file]).resize(at);
    EXPECT_TRUE(falls_back(file)) << kFiles[file] << " cut to " << at;
    disk_.bytes_of(newest_ / kFiles[file]) = whole_[file];
  }
}

TEST_F(DamagedCheckpoint, DetectsAppendedBytes) {
  for (std::size_t file = 0; file < 3; ++file) {
    disk_.bytes_of(newest_ / kFiles[file]).push_back(std::byte{' '});
    EXPECT_TRUE(falls_back(file));
    disk_.bytes_of(newest_ / kFiles[file]) = whole_[file];
  }
}

TEST_F(DamagedCheckpoint, DetectsMissingFiles) {
  for (std::size_t file = 0; file < 3; ++file) {
    disk_.rename(newest_ / kFiles[file], "/aside");
    EXPECT_TRUE(falls_back(file));
    disk_.rename("/aside", newest_ / kFiles[file]);
  }
}

TEST_F(DamagedCheckpoint, DetectsFilesOfAnotherCheckpoint) {
  for (const char* name : kFiles) {
    auto& bytes = disk_.bytes_of(newest_ / name);
    const auto own = bytes;
    bytes = disk_.bytes_of(fs::path("/run/checkpoints/step-10") / name);
    EXPECT_NE(directory_.newest_valid().found->step, 20) << name;
    bytes = own;
  }
}

TEST_F(DamagedCheckpoint, NamesEveryCorruptTensor) {
  auto& bytes = disk_.bytes_of(newest_ / kModelFile);
  const std::size_t data = bytes.size() - 18 * sizeof(float);
  bytes[data] ^= std::byte{1};
  bytes.back() ^= std::byte{1};
  EXPECT_THAT(verify_checkpoint(disk_, newest_), ElementsAre(HasSubstr("is corrupt: tensor 'fc.bias' has SHA-256"),
                                                             HasSubstr("is corrupt: tensor 'fc.weight' has SHA-256")));
  EXPECT_THAT(refusal([&] { read_checkpoint(disk_, newest_); }), HasSubstr("'fc.bias'"));
}

TEST_F(DamagedCheckpoint, RejectsNewerFormat) {
  put_meta(tests::forged(whole_meta_, [](Json& json) { json["format"] = 2; }));
  EXPECT_THAT(refusal([&] { read_checkpoint(disk_, newest_); }),
              HasSubstr("has format 2; this program reads format 1"));
  put_meta(tests::forged(whole_meta_, [](Json& json) { json["format"] = 0; }));
  EXPECT_TRUE(falls_back(2)) << "no version wrote format 0";
}

TEST_F(DamagedCheckpoint, DoesNotTakeNewerFormatForDamage) {
  put_meta(tests::forged(whole_meta_, [](Json& json) {
    json["format"] = 2;
    json["about"]["made_by"] = "gradring 9.9\n";
  }));
  EXPECT_THAT(refusal([&] { directory_.newest_valid(); }),
              HasSubstr("step-20/meta.json has format 2, written by 'gradring 9.9\\x0a'; this program reads format "
                        "1: use the gradring that wrote it"));
  EXPECT_EQ(list_checkpoints(disk_, "/run/checkpoints").front().meta, MetaState::newer_format);
}

/// The hash of meta.json is valid here.
TEST_F(DamagedCheckpoint, NamesInvalidMembers) {
  const auto refused = [&](const char* pointer, const Json& value) {
    put_meta(tests::forged(whole_meta_, [&](Json& json) { json[Json::json_pointer(pointer)] = value; }));
    const std::string why = refusal([&] { read_checkpoint(disk_, newest_); });
    EXPECT_THAT(why, Not(HasSubstr("json.exception")));
    EXPECT_TRUE(falls_back(2)) << pointer;
    put_meta(whole_meta_);
    return why;
  };
  EXPECT_THAT(refused("/about", Json::array()), HasSubstr("meta.json has 'about' = '[]', expected an object"));
  EXPECT_THAT(refused("/about", nullptr), HasSubstr("'about' = 'null', expected an object"));
  EXPECT_THAT(refused("/step", -1), HasSubstr("'step' = '-1', expected a number from 0 to"));
  EXPECT_THAT(refused("/step", 1.5), HasSubstr("'step' = '1.5'"));
  EXPECT_THAT(refused("/step", std::numeric_limits<std::uint64_t>::max()), HasSubstr("'step' = '184467"));
  EXPECT_THAT(refused("/score", "high"), HasSubstr("'score' = '\"high\"'"));
  EXPECT_THAT(refused("/format", "1"), HasSubstr("'format' = '\"1\"'"));
  EXPECT_THAT(refused("/model.safetensors", 7), HasSubstr("'model.safetensors' = '7', expected an object"));
  EXPECT_THAT(refused("/model.safetensors/head", {}), HasSubstr("'head' = 'null', expected text"));
  EXPECT_THAT(refused("/state.safetensors/tensors/rng.counter", 7), HasSubstr("'tensors' = "));
}

TEST_F(DamagedCheckpoint, NamesMissingMembers) {
  for (const char* name : {"format", "step", "score", "about", "model.safetensors", "state.safetensors"}) {
    put_meta(tests::forged(whole_meta_, [&](Json& json) { json.erase(name); }));
    EXPECT_THAT(refusal([&] { read_checkpoint(disk_, newest_); }),
                HasSubstr(std::string("has no member '") + name + "'"));
  }
}

TEST_F(DamagedCheckpoint, DetectsAHashWithoutATensor) {
  put_meta(tests::forged(whole_meta_, [](Json& json) { json["model.safetensors"]["tensors"]["lost"] = "00"; }));
  EXPECT_THAT(verify_checkpoint(disk_, newest_), ElementsAre(HasSubstr("tensors, meta.json has hashes of ")));
}

/// A file must not control the stack depth or the time of the parser.
TEST_F(DamagedCheckpoint, RejectsUnboundedJson) {
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  put_meta(tests::sealed("{\"about\": " + deep + "}"));
  EXPECT_THAT(refusal([&] { read_checkpoint(disk_, newest_); }), HasSubstr("more than 64 levels"));
  std::string many = "{\"a\": 0";
  for (int i = 0; i < 100'000; ++i) many += ",\"" + std::to_string(i) + "\":0";
  put_meta(tests::sealed(many + "}"));
  EXPECT_THAT(refusal([&] { read_checkpoint(disk_, newest_); }), HasSubstr("32,768 members"));
  put_meta(tests::sealed("{\"about\": }"));
  EXPECT_THAT(refusal([&] { read_checkpoint(disk_, newest_); }), HasSubstr("is not valid JSON"));
}

}  // namespace
}  // namespace gradring::train
