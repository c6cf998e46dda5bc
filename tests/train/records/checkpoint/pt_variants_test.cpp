// SPDX-License-Identifier: Apache-2.0
// What torch.save writes beside dense tensors of common types in a zip archive, by torch/_tensor.py, torch/_utils.py and
// torch/serialization.py of PyTorch 2.15. PyTorch's own files are read in torch_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/train/records/checkpoint/one_tensor.h"
#include "train/records/checkpoint/pt_records.h"
#include "train/records/checkpoint/tensor_file.h"

namespace gradring::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TensorRecord tensor_in(const std::string& pickle, const OneTensor& w = {}) {
  tests::MemoryDisk disk;
  write_archive(disk, pickle, w);
  return read_pt(*disk.open("/a"), "/a").at(0);
}

TensorRecord tensor_of(const OneTensor& w) { return tensor_in(pickle_of(w), w); }

std::vector<int> bytes_read(const OneTensor& w) {
  std::vector<int> bytes;
  for (const std::byte byte : tensor_of(w).bytes) bytes.push_back(std::to_integer<int>(byte));
  return bytes;
}

TEST(PtVariants, ReadsUntypedStoragesWithTheirDtype) {
  OneTensor w{.storage_elements = 24,
              .offset = 1,
              .shape = {2},
              .strides = {2},
              .function = "_rebuild_tensor_v3",
              .type = "UntypedStorage",
              .dtype = "uint16"};
  EXPECT_EQ(tensor_of(w).type, TensorType::u16);
  EXPECT_THAT(bytes_read(w), ElementsAre(2, 3, 6, 7)) << "elements 1 and 3";
  w.dtype = "float8_e4m3fn";
  EXPECT_EQ(tensor_of(w).type, TensorType::f8_e4m3);
  w.dtype = "complex32";
  EXPECT_THAT(refusal([&] { tensor_of(w); }), HasSubstr("'w' of the unknown type 'torch.complex32'"));
  w.dtype = "uint16";
  w.storage_elements = 12;
  EXPECT_THAT(refusal([&] { tensor_of(w); }), HasSubstr("a storage of 24 bytes for the 12 elements"));
}

TEST(PtVariants, SwapsTheBytesOfBigEndianMachines) {
  EXPECT_THAT(bytes_read({.shape = {2}, .strides = {3}, .byteorder = "big"}), ElementsAre(3, 2, 1, 0, 15, 14, 13, 12));
  EXPECT_THAT(
      bytes_read(
          {.storage_elements = 3, .shape = {1}, .strides = {1}, .type = "ComplexFloatStorage", .byteorder = "big"}),
      ElementsAre(3, 2, 1, 0, 7, 6, 5, 4));
}

/// PyTorch stores -x.imag and x.conj() as views with a flag.
TEST(PtVariants, ComputesLazyNegationAndConjugation) {
  EXPECT_THAT(bytes_read({.shape = {1}, .strides = {1}, .flag = "neg"}), ElementsAre(0, 1, 2, 3 | 0x80));
  const OneTensor complex{
      .storage_elements = 3, .shape = {1}, .strides = {1}, .type = "ComplexFloatStorage", .flag = "conj"};
  EXPECT_THAT(bytes_read(complex), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7 | 0x80));
}

/// The sign of an integer is no bit of its own, and torch.load rejects conjugates of real numbers.
// A dictionary that many tensors share would be searched for each of them.
TEST(PtVariants, MetadataHaveFewEntries) {
  OneTensor w{.shape = {1}, .strides = {1}, .flag = "neg", .more_flags = 31};
  EXPECT_THAT(bytes_read(w), ElementsAre(0, 1, 2, 3 | 0x80));
  w.more_flags = 32;
  EXPECT_THAT(refusal([&] { tensor_of(w); }), HasSubstr("metadata of more than 32 entries"));
}

TEST(PtVariants, RejectsFlagsThatTheTypeLacks) {
  const OneTensor w{.storage_elements = 3, .shape = {1}, .strides = {1}, .type = "LongStorage", .flag = "neg"};
  EXPECT_THAT(refusal([&] { tensor_of(w); }), HasSubstr("'w' of type I64 that is to be negated"));
  const OneTensor real{.shape = {1}, .strides = {1}, .flag = "conj"};
  EXPECT_THAT(refusal([&] { tensor_of(real); }), HasSubstr("'w' of type F32 that is to be conjugated"));
}

/// A dictionary with one entry "w".
std::string pickled(const std::function<void(PickleWriter&)>& value) {
  PickleWriter pickle;
  pickle.empty_dict();
  pickle.mark();
  pickle.text("w");
  value(pickle);
  pickle.end_items();
  return pickle.finish();
}

TEST(PtVariants, LooksThroughParametersAndAttributes) {
  const auto wrapped = [](const char* function) {
    return [function](PickleWriter& pickle) {
      pickle.global("torch._utils", function);
      pickle.mark();
      write_rebuild(pickle, {});
      pickle.boolean(true);
      pickle.empty_ordered_dict();
      pickle.empty_dict();  // attributes
      pickle.end_tuple();
      pickle.call();
    };
  };
  const auto with_attributes = [](PickleWriter& pickle) {
    pickle.global("torch._tensor", "_rebuild_from_type_v2");
    pickle.mark();
    pickle.global("torch._utils", "_rebuild_parameter");
    pickle.global("torch.nn.parameter", "Parameter");
    pickle.mark();
    write_rebuild(pickle, {});
    pickle.boolean(true);
    pickle.end_tuple();
    pickle.empty_dict();
    pickle.end_tuple();
    pickle.call();
  };
  for (const std::string& pickle :
       {pickled(wrapped("_rebuild_parameter")), pickled(wrapped("_rebuild_parameter_with_state")),
        pickled(wrapped("_rebuild_device_tensor_from_cpu_tensor")), pickled(with_attributes)})
    EXPECT_EQ(tensor_in(pickle), tensor_of({}));
}

TEST(PtVariants, NamesTensorsThatAreNotDense) {
  const std::pair<const char*, const char*> cases[] = {
      {"_rebuild_sparse_tensor", "'w', which is sparse; save it dense"},
      {"_rebuild_qtensor", "'w', which is quantized; save it dequantized"},
      {"_rebuild_meta_tensor_no_storage", "'w', which is on the device 'meta' and has no values"}};
  for (const auto& [function, found] : cases)
    EXPECT_THAT(refusal([&, name = function] { tensor_of({.function = name}); }), HasSubstr(found));
}

/// What training scripts save beside a state_dict, as far as torch.load(weights_only=True) reads it.
TEST(PtVariants, SkipsWhatTorchLoadReadsBesideTheStateDict) {
  using namespace std::string_literals;
  const std::pair<const char*, std::string> values[] = {
      {"a large integer", "\x8a\x0a" + std::string(10, '\1')},
      {"torch.float32", "ctorch\nfloat32\n"},
      {"torch.device", "ctorch\ndevice\nX\3\0\0\0cpu\x85R"s},
      {"torch.Size", "ctorch\nSize\nK\1\x85\x85R"},
      {"Counter", "ccollections\nCounter\n}K\1K\2s\x85R"},
      {"a set", "c__builtin__\nset\n]K\1a\x85R"},
      {"a set of protocol 4", "\x8f(K\1K\2\x90"},
      {"a frozen set of protocol 4", "(K\1K\2\x91"},
      {"bytes of protocol 2", "c_codecs\nencode\nX\1\0\0\0aX\6\0\0\0latin1\x86R"s},
      {"bytes of protocol 3", "C\2ab"s},
      {"bytes of protocol 4", "B\2\0\0\0ab"s},
      {"a bytearray of protocol 5", "\x96\2\0\0\0\0\0\0\0ab"s},
      {"a complex number", "c__builtin__\ncomplex\nG?\xf0\0\0\0\0\0\0G?\xf0\0\0\0\0\0\0\x86R"s}};
  for (const auto& [what, value] : values) {
    std::string pickle = pickled([](PickleWriter& writer) { write_state_dict(writer, {}); });
    // {"w": ..., "x": value}, with the state_dict as "model"
    const std::size_t name = pickle.find("X\1\0\0\0w"s);
    pickle.replace(name, 6, "X\5\0\0\0model"s);
    pickle.insert(pickle.size() - 2, "X\1\0\0\0x"s + value);
    EXPECT_EQ(tensor_in(pickle), tensor_of({})) << what;
  }
}

TEST(PtVariants, ReadsStateDictsOfPython2) {
  // OrderedDict([["w", ...]]) with str, which Python 2 pickles as SHORT_BINSTRING
  PickleWriter tensor;
  write_rebuild(tensor, {});
  const std::string call = tensor.finish();
  const std::string pickle = "ccollections\nOrderedDict\n]](U\1w" + call.substr(2, call.size() - 3) + "ea\x85R.";
  EXPECT_EQ(tensor_in(pickle), tensor_of({}));
}

/// The file of _legacy_save, which _use_new_zipfile_serialization=False selects.
std::string legacy_file(int protocol, const OneTensor& w, const std::string& key = "0") {
  using namespace std::string_literals;
  const std::string frame = protocol < 4 ? ""s : "\x95\x0d\0\0\0\0\0\0\0"s;
  const std::string start = "\x80"s + static_cast<char>(protocol);
  std::string file = start + frame + "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."s + start + "M\xe9\x03."s +
                     start + "}X\x0d\0\0\0little_endian\x88s."s + pickle_of(w);
  PickleWriter keys;
  keys.empty_list();
  keys.mark();
  keys.text(key);
  keys.end_appends();
  file += keys.finish();
  put_little_endian(file, static_cast<std::uint64_t>(w.storage_elements));
  for (const std::byte byte : data_of(w)) file += static_cast<char>(byte);
  return file;
}

TEST(PtVariants, ReadsTheLegacyFormat) {
  for (const int protocol : {2, 3, 4, 5})
    for (const char* function : {"_rebuild_tensor", "_rebuild_tensor_v2"}) {
      tests::MemoryDisk disk;
      write_new_file(
          disk, "/old.pt",
          legacy_file(protocol, {.shape = {3, 2}, .strides = {1, 3}, .function = function, .is_legacy = true}));
      EXPECT_EQ(read_tensor_file(disk, "/old.pt").at(0), tensor_of({.shape = {3, 2}, .strides = {1, 3}})) << protocol;
    }
}

TEST(PtVariants, RejectsDamagedLegacyFiles) {
  const OneTensor w{.is_legacy = true};
  const std::string good = legacy_file(2, w);
  const auto why = [](const std::string& file) {
    tests::MemoryDisk disk;
    write_new_file(disk, "/old.pt", file);
    return refusal([&] { read_tensor_file(disk, "/old.pt"); });
  };
  EXPECT_EQ(why(good), "");
  for (std::size_t bytes = 15; bytes < good.size(); ++bytes)
    EXPECT_THAT(why(good.substr(0, bytes)), HasSubstr("truncated")) << bytes;
  EXPECT_THAT(why(good + "x"), HasSubstr("bytes after its last storage"));
  EXPECT_THAT(why(legacy_file(2, w, "1")), HasSubstr("has a storage of an unknown type"));
  std::string lie = good;
  lie.replace(lie.size() - 32, 8, std::string(8, '\x7f'));
  EXPECT_THAT(why(lie), HasSubstr("is truncated"));
  EXPECT_THAT(why(legacy_file(2, {.record = "1", .is_legacy = true}, "1")), "");
}

}  // namespace
}  // namespace gradring::train
