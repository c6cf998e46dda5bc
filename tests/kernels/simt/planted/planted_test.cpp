// SPDX-License-Identifier: Apache-2.0
// Runs each planted kernel in a process of its own and asserts what this build must say about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/simt/engine/sanitizer.h"
#include "tests/support/run_program.h"

namespace gradring::simt_test {
namespace {

using simt::detail::kAddressSanitizer;
using simt::detail::kChecked;
using simt::detail::kThreadSanitizer;

enum class Finding { right, wrong, simt_error, race, address_error, undefined_behaviour, other };

std::string text_of(Finding finding) {
  constexpr std::array kTexts = {"right result",     "wrong result",        "simt::Error",   "TSan: data race",
                                 "AddressSanitizer", "undefined behaviour", "something else"};
  return kTexts[static_cast<std::size_t>(finding)];
}
void PrintTo(Finding finding, std::ostream* out) { *out << text_of(finding); }

struct Report {
  Finding finding = Finding::other;
  std::string text;
};

Report run_planted(const std::string& name, const std::string& order) {
  const tests::ProgramEnd end =
      tests::run_program({.command = {SIMT_PLANTED_PROGRAM, name, order},
                          .folder = std::filesystem::temp_directory_path(),
                          .variables = {{"TSAN_OPTIONS", "exitcode=66"}, {"UBSAN_OPTIONS", "print_stacktrace=1"}}});
  Report report{.finding = Finding::other, .text = end.out + end.err};
  const auto says = [&](const char* words) { return report.text.find(words) != std::string::npos; };
  if (says("data race"))
    report.finding = Finding::race;
  else if (says("AddressSanitizer"))
    report.finding = Finding::address_error;
  else if (says("runtime error"))
    report.finding = Finding::undefined_behaviour;
  else if (says("simt::Error"))
    report.finding = Finding::simt_error;
  else if (says("wrong result"))
    report.finding = Finding::wrong;
  else if (says("right result"))
    report.finding = Finding::right;
  return report;
}

/// "file.cu:12" for each line of tests/kernels/simt/planted that is marked with the name.
std::vector<std::string> marked_places(const std::string& name) {
  std::vector<std::string> places;
  for (const std::string file : {"races.cu", "accesses.cu", "divergence.cu"}) {
    std::ifstream source(SIMT_PLANTED_SOURCES "/" + file);
    int number = 1;
    for (std::string line; std::getline(source, line); ++number) {
      const std::size_t mark = line.find("// planted: ");
      if (mark == std::string::npos) continue;
      std::istringstream names(line.substr(mark + 12));
      for (std::string one; names >> one;)
        if (one == name) places.push_back(file + ":" + std::to_string(number));
    }
  }
  return places;
}

bool names_one_of(const std::string& text, const std::vector<std::string>& places) {
  for (const std::string& place : places) {
    const std::size_t at = text.find(place);
    if (at != std::string::npos && !std::isdigit(static_cast<unsigned char>(text[at + place.size()]))) return true;
  }
  return false;
}

/// What a kernel's result is in the three orders, without a sanitizer: R right, W wrong; and what TSan says.
struct Race {
  const char* name;
  const char* results;  // forward, reverse, random
  bool race;            // TSan must report it
};
void PrintTo(const Race& race, std::ostream* out) { *out << race.name; }

class PlantedRace : public testing::TestWithParam<Race> {};

TEST_P(PlantedRace, IsFound) {
  constexpr std::array kOrders = {"forward", "reverse", "random"};
  const Race& planted = GetParam();
  if (!kThreadSanitizer && planted.race && std::string(planted.results) == "RRR")
    GTEST_SKIP() << "only ThreadSanitizer finds this one: build with the tsan preset";
  for (std::size_t i = 0; i < kOrders.size(); ++i) {
    const Report report = run_planted(planted.name, kOrders[i]);
    const Finding result = planted.results[i] == 'R' ? Finding::right : Finding::wrong;
    EXPECT_EQ(report.finding, kThreadSanitizer && planted.race ? Finding::race : result) << kOrders[i] << "\n"
                                                                                         << report.text;
    if (kThreadSanitizer && planted.race) {
      EXPECT_THAT(report.text, testing::HasSubstr("races.cu:"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, PlantedRace,
    testing::Values(Race{"no_barrier_right_neighbour", "WWW", true}, Race{"no_barrier_left_neighbour", "WWW", true},
                    Race{"barrier_right_neighbour", "RRR", false}, Race{"barrier_left_neighbour", "RRR", false},
                    Race{"no_second_barrier", "WWW", true}, Race{"second_barrier", "RRR", false},
                    Race{"no_syncwarp", "WRW", true}, Race{"syncwarp", "RRR", false},
                    Race{"shuffle_as_fence", "RRR", true}, Race{"ldmatrix_without_barrier", "RRR", true},
                    Race{"ldmatrix_with_barrier", "RRR", false}, Race{"plain_count_in_block", "RRR", true},
                    Race{"atomic_count_in_block", "RRR", false}, Race{"plain_count_across_blocks", "RRR", true},
                    Race{"atomic_count_across_blocks", "RRR", false}, Race{"overlap_in_flat_kernel", "RRR", true},
                    Race{"async_copy_without_barrier", "WWW", true}, Race{"async_copy_with_barrier", "RRR", false},
                    Race{"pipe", "RRR", false}, Race{"pipe_without_wait", "WWW", true},
                    Race{"pipe_released_while_read", "RRR", true}, Race{"pipe_released_by_a_fast_lane", "RRR", true},
                    Race{"uninitialised_shared", "WWW", false}, Race{"initialised_shared", "RRR", false}),
    [](const auto& race) { return std::string(race.param.name); });

struct Access {
  const char* name;
  Finding finding;  // in an ASan + UBSan build
};
void PrintTo(const Access& access, std::ostream* out) { *out << access.name; }

class PlantedAccess : public testing::TestWithParam<Access> {};

TEST_P(PlantedAccess, IsFound) {
  const Access& planted = GetParam();
  const bool harmless = planted.finding == Finding::right;
  const bool found_here = kAddressSanitizer || harmless || (kChecked && planted.finding == Finding::simt_error);
  if (!found_here) GTEST_SKIP() << "only AddressSanitizer and its like find this one: build with the asan preset";
  const Report report = run_planted(planted.name, "forward");
  EXPECT_EQ(report.finding, planted.finding) << report.text;
  if (!harmless) {
    EXPECT_TRUE(names_one_of(report.text, marked_places(planted.name))) << report.text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, PlantedAccess,
    testing::Values(
        Access{"past_shared_array", Finding::undefined_behaviour},
        Access{"past_shared_row", Finding::undefined_behaviour}, Access{"past_simt_shared", Finding::address_error},
        Access{"past_simt_shared_in_template", Finding::address_error},
        Access{"past_dynamic_shared", Finding::address_error}, Access{"past_global", Finding::address_error},
        Access{"past_global_flat", Finding::address_error}, Access{"past_local_array", Finding::address_error},
        Access{"misaligned_pointer", Finding::undefined_behaviour}, Access{"misaligned_store_as", Finding::simt_error},
        Access{"overflowing_index", Finding::undefined_behaviour}, Access{"inside_simt_shared", Finding::right},
        Access{"inside_dynamic_shared", Finding::right}, Access{"inside_global", Finding::right},
        Access{"aligned_store_as", Finding::right}),
    [](const auto& access) { return std::string(access.param.name); });

struct Divergence {
  const char* name;
  const char* words;  // of the message
};
void PrintTo(const Divergence& divergence, std::ostream* out) { *out << divergence.name; }

class PlantedDivergence : public testing::TestWithParam<Divergence> {};

TEST_P(PlantedDivergence, IsFoundInEveryBuildAndOrder) {
  const Divergence& planted = GetParam();
  for (const char* order : {"forward", "reverse", "random"}) {
    const Report report = run_planted(planted.name, order);
    EXPECT_EQ(report.finding, Finding::simt_error) << report.text;
    EXPECT_THAT(report.text, testing::HasSubstr(planted.words)) << order;
    EXPECT_TRUE(names_one_of(report.text, marked_places(planted.name))) << report.text;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, PlantedDivergence,
    testing::Values(
        Divergence{"divergent_barrier", "divergent barrier"}, Divergence{"barrier_after_exit", "barrier after exit"},
        Divergence{"unequal_trip_counts", "barrier after exit"}, Divergence{"shuffle_from_exited", "left the kernel"},
        Divergence{"shuffle_from_unnamed", "shuffle from lane"},
        Divergence{"shuffle_from_missing", "shuffle from lane 31"}, Divergence{"shuffle_meets_barrier", "deadlock"},
        Divergence{"unequal_masks", "mask 0x"}, Divergence{"mask_without_itself", "bad warp mask"},
        Divergence{"unequal_operations", "mismatched warp operation"},
        Divergence{"barrier_in_flat_launch", "launched flat"}, Divergence{"ballot_in_flat_launch", "launched flat"},
        Divergence{"partial_warp_multiply", "needs a full warp"}, Divergence{"stack_overflow", "stack overflow"}),
    [](const auto& divergence) { return std::string(divergence.param.name); });

}  // namespace
}  // namespace gradring::simt_test
