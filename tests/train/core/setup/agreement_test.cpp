// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/host_name.h"
#include "tests/data/support/message_of.h"
#include "tests/train/support/rank_rig.h"
#include "train/core/trainer/replica.h"
#include "train/launch/workers/run_folder.h"

namespace gradring::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::message_of;
using tests::run_ranks;

RankFacts facts(int rank, const std::string& host, RankValues values) {
  return {.rank = rank, .host = host, .sections = {std::move(values)}};
}

std::string differences(const std::vector<RankFacts>& ranks) { return describe_differences(ranks, 0, always("do it")); }

TEST(Agreement, NamesValueRanksHostsAndPlaces) {
  EXPECT_EQ(differences({facts(0, "node1", {{{"size", "8"}, {"shape", "3"}}, "/a"}),
                         facts(1, "node1", {{{"size", "8"}, {"shape", "3"}}, "/a"}),
                         facts(2, "node2", {{{"size", "9"}, {"shape", "3"}}, "/b"})}),
            "size is 8 on rank 0 (node1, /a) but 9 on rank 2 (node2, /b); do it");
}

TEST(Agreement, NamesEachValueOnceAndCountsTheOtherRanks) {
  EXPECT_EQ(
      differences({facts(0, "a", {{{"x", "1"}, {"y", "1"}}}), facts(1, "b", {{{"x", "2"}, {"y", "1"}}}),
                   facts(2, "c", {{{"x", "3"}, {"y", "4"}}}), facts(3, "d", {{{"x", "1"}, {"y", "1"}}})}),
      "x is 1 on rank 0 (a) but 2 on rank 1 (b), and differs on 1 other; y is 1 on rank 0 (a) but 4 on rank 2 (c); do "
      "it");
}

TEST(Agreement, IsSilentWhereAllIsEqual) {
  EXPECT_EQ(differences({facts(0, "a", {{{"x", "1"}}, "/a"}), facts(1, "b", {{{"x", "1"}}, "/b"})}), "");
}

TEST(Agreement, TextComesBackAndOtherTextIsRejected) {
  const RankFacts before = facts(3, "a \"host\"\n", {{{"x", "\xff"}, {"y", ""}}, "/p q"});
  const RankFacts after = RankFacts::parse(before.to_text());
  EXPECT_EQ(after.rank, 3);
  EXPECT_EQ(after.host, before.host);
  ASSERT_EQ(after.sections.size(), 1u);
  EXPECT_EQ(after.sections[0].where, "/p q");
  EXPECT_EQ(after.sections[0].values[0].value, "\xef\xbf\xbd") << "JSON is UTF-8";
  for (const char* text : {"", "{}", "[]", "{\"rank\":0,\"host\":\"a\",\"sections\":[3]}"})
    EXPECT_THAT(message_of<ReplicaError>([&] { RankFacts::parse(text); }), HasSubstr("install the same build")) << text;
}

/// What ranks with these values say; a rank without an error says its remarks.
std::vector<std::string> said(const std::vector<std::vector<Agreement>>& of_ranks) {
  std::vector<std::string> all(of_ranks.size());
  run_ranks(static_cast<int>(of_ranks.size()), [&](comm::ProcessGroup& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    try {
      for (const std::string& remark : agree(group, of_ranks[rank])) all[rank] += "remark: " + remark;
    } catch (const ReplicaError& error) {
      all[rank] = error.what();
    }
  });
  return all;
}

Agreement agreement(const std::string& name, const std::string& value, bool is_required = true) {
  return {.mine = {{{name, value}}, "/at " + value}, .advice = always("repair " + name), .is_required = is_required};
}

TEST(Agreement, PassesWhereAllRanksHaveTheSameFromOtherPlaces) {
  std::vector<std::vector<Agreement>> ranks(3, {agreement("a", "1"), agreement("b", "2")});
  ranks[2][0].mine.where = "/elsewhere";
  EXPECT_THAT(said(ranks), ElementsAre("", "", ""));
}

TEST(Agreement, ReportsTheFirstSectionThatDiffersOnEveryRank) {
  std::vector<std::vector<Agreement>> ranks(
      3, {agreement("a", "1"), agreement("b", "2"), agreement("c", "3"), agreement("d", "4")});
  ranks[2][1] = agreement("b", "0");
  ranks[1][2] = agreement("c", "0");
  const std::string here = host_name() + ", " + describe_process("");
  for (const std::string& text : said(ranks))
    EXPECT_EQ(text, "the ranks do not agree: b is 2 on rank 0 (" + here + ", /at 2) but 0 on rank 2 (" + here +
                        ", /at 0); repair b");
}

TEST(Agreement, RemarksWhatNeedNotAgree) {
  std::vector<std::vector<Agreement>> ranks(2, {agreement("a", "1"), agreement("b", "2", false)});
  ranks[1][1] = agreement("b", "0", false);
  for (const std::string& text : said(ranks))
    EXPECT_THAT(text, AllOf(HasSubstr("remark: b is 2 on rank 0"), HasSubstr("repair b"), Not(HasSubstr("agree"))));
}

TEST(Agreement, TakesOtherNamesForAnotherVersion) {
  for (const std::string& text : said({{agreement("a", "1")}, {agreement("b", "1")}}))
    EXPECT_THAT(text, HasSubstr("another version of gradring"));
  for (const std::string& text : said({{agreement("a", "1")}, {agreement("a", "1"), agreement("b", "1")}}))
    EXPECT_THAT(text, HasSubstr("another version of gradring"));
}

}  // namespace
}  // namespace gradring::train
