// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/allocated_bytes.h"
#include "tests/train/records/checkpoint/tensors.h"

namespace gradring::train {
namespace {

using testing::HasSubstr;
using Kind = PickleValue::Kind;

std::string why_pickle_refused(const std::string& pickle) {
  return refusal([&] { read_pickle(pickle, "a.pt"); });
}

PickleValue root_of(const std::string& pickle) {
  const Pickle read = read_pickle(pickle, "a.pt");
  return read.at(read.root);
}

TEST(Pickle, ReadsNumbers) {
  const std::pair<std::string, std::int64_t> cases[] = {
      {std::string("K\xff."), 255},
      {std::string("M\xff\xff."), 65535},
      {std::string("J\xff\xff\xff\xff."), -1},
      {std::string("\x8a\0.", 3), 0},
      {std::string("\x8a\1\xfe."), -2},
      {std::string("\x8a\5\0\0\0\0\1.", 8), std::int64_t{1} << 32},
      {std::string("\x8a\x8\xff\xff\xff\xff\xff\xff\xff\x7f."), std::numeric_limits<std::int64_t>::max()},
  };
  for (const auto& [pickle, number] : cases) EXPECT_EQ(root_of(pickle).number, number);
}

TEST(Pickle, ReadsContainersOfEveryProtocol) {
  EXPECT_EQ(root_of("\x80\2(K\1K\2K\3t.").items.size(), 3u);
  EXPECT_EQ(root_of("K\1K\2K\3\x87.").items.size(), 3u);
  EXPECT_EQ(root_of("](K\1K\2e.").items.size(), 2u);
  EXPECT_EQ(root_of("]K\1a.").items.size(), 1u);
  EXPECT_EQ(root_of("}(K\1NK\2Nu.").items.size(), 4u);
  EXPECT_EQ(root_of(std::string("\x80\4\x95\0\0\0\0\0\0\0\0}\x94\x8c\1aK\1s.", 20)).items.size(), 2u);
  EXPECT_EQ(root_of("ccollections\nOrderedDict\n)R}b.").kind, Kind::dictionary);
  EXPECT_EQ(root_of("\x8c\13collections\x8c\13OrderedDict\x93)R.").kind, Kind::dictionary);
}

TEST(Pickle, SharesMemoizedValues) {
  const Pickle pickle = read_pickle(std::string("(K\7q\0h\0t.", 9), "a.pt");
  const auto& items = pickle.at(pickle.root).items;
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0], items[1]);
  EXPECT_THAT(why_pickle_refused(std::string("h\0.", 3)), HasSubstr("gets a missing value from the memo"));
}

TEST(Pickle, RejectsUnknownNamesAndOpcodes) {
  const std::pair<std::string, std::string> cases[] = {
      {"cos\nsystem\n(X\4\0\0\0evilt R.", "'os.system'"},
      {"cposix\nsystem\n.", "'posix.system'"},
      {"cbuiltins\neval\n.", "'builtins.eval'"},
      {"\x8c\2os\x8c\6system\x93.", "'os.system'"},
      {"ctorch\nload\n.", "'torch.load'"},
      {"ctorch\nUntypedStorage\n.", "'torch.UntypedStorage'"},
      {"ctorch._utils\n_rebuild_xla_tensor\n.", "'torch._utils._rebuild_xla_tensor'"},
      {"ccollections\nOrderedDict.__init__\n.", "'collections.OrderedDict.__init__'"},
      {"ctorch\nFloatStorage\n)R.", "calls 'torch.FloatStorage'"},
      {"ctorch\nfloat32\n)R.", "calls 'torch.float32'"},
      {"c__builtin__\neval\n.", "'builtins.eval'"},
      {"ccollections\ndefaultdict\n.", "'collections.defaultdict'"},
      {"(ios\nsystem\n.", "INST (0x69)"},
      {"(cos\nsystem\no.", "'os.system'"},
      {"ccollections\nOrderedDict\n)\x81.", "NEWOBJ (0x81)"},
      {"(c__main__\nx\n.", "'__main__.x'"},
      {"P1\n.", "PERSID (0x50)"},
      {"I1\n.", "INT (0x49)"},
      {"\x82\1.", "EXT1 (0x82)"},
      {"\xff.", "0xff"},
  };
  for (const auto& [pickle, found] : cases) EXPECT_THAT(why_pickle_refused(pickle), HasSubstr(found)) << pickle;
}

TEST(Pickle, RejectsInvalidPickles) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "truncated"},
      {"K", "truncated"},
      {"X\xff\xff\xff\xff.", "truncated"},
      {"ccollections\n", "truncated"},
      {"K\1", "truncated"},
      {".", "takes missing values"},
      {"K\1K\2.", "continues after"},
      {"K\1.N", "continues after"},
      {"(K\1.", "continues after"},
      {"t.", "a mark is missing"},
      {"K\1(\x85.", "takes missing values"},
      {"K\1a.", "a list is missing"},
      {"K\1K\2a.", "a list is missing"},
      {"K\1K\2K\3s.", "a dictionary is missing"},
      {"}(K\1u.", "a key has no value"},
      {"NN"
       "b.",
       "an OrderedDict is missing"},
      {"NNR.", "calls something else than a function"},
      {"ccollections\nOrderedDict\nN\x85R.", "not made of pairs"},
      {"ccollections\nOrderedDict\n]K\1a\x85R.", "not made of pairs"},
      {"ccollections\nOrderedDict\n]K\1\x85"
       "a\x85R.",
       "not made of pairs"},
      {"ccollections\nOrderedDict\n]]\x86R.", "not made of pairs"},
      {"q\1.", "puts nothing into the memo"},
      {"Nq\2.", "puts nothing into the memo"},
      {"\x80\1N.", "protocol 1"},
      {"\x80\6N.", "protocol 6"},
      {"(K\1K\2\x90.", "a set is missing"},
      {std::string(2000, '('), "1,024 levels"},
      {std::string(5u << 20, 'N'), "5242880 bytes"},
      {std::string(1u << 20, 'N'), "262,144 values"},
  };
  for (const auto& [pickle, found] : cases)
    EXPECT_THAT(why_pickle_refused(pickle), HasSubstr(found)) << pickle.substr(0, 50);
}

TEST(Pickle, BoundsMemoryOfHostilePickles) {
  std::string calls = "(" + std::string(1u << 18, 'N') + "tq";
  std::string recalls = std::string("Nq\0", 3);
  for (int i = 0; i < 1 << 20; ++i) recalls += std::string("h\0", 2);
  std::string pairs = std::string("](K\1K\1\x86q\0", 9);  // OrderedDicts of one list, which holds one pair many times
  for (int i = 0; i < 1 << 19; ++i) pairs += std::string("h\0", 2);
  pairs += std::string("eq\1", 3);
  for (int i = 0; i < 1 << 17; ++i) pairs += std::string("ccollections\nOrderedDict\nh\1\x85R", 29);
  const std::string cases[] = {std::string(1u << 22, ']'),
                               recalls,
                               calls,
                               pairs,
                               std::string(1u << 22, '}'),
                               std::string("X\xf0\xff\x3f\0", 5) + std::string(1u << 22, 'a')};
  for (const std::string& pickle : cases) {
    const std::size_t before = tests::allocated_bytes();
    tests::reset_peak_allocated_bytes();
    EXPECT_NE(why_pickle_refused(pickle), "");
    EXPECT_LT(tests::peak_allocated_bytes() - before, 64u << 20);
  }
}

}  // namespace
}  // namespace gradring::train
