// SPDX-License-Identifier: Apache-2.0
// Errors that only a tail, a NaN or a second run shows.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/measure_case.h"
#include "tests/kernels/bench/bench_world.h"

namespace gradring::kernels::bench {
namespace {

using ::testing::ElementsAre;

/// The first case of a family with its trials; the case's and the trials' only candidate is `planted`.
template <class Plant>
KernelCase with_planted(CaseMaker& make, const std::string& operation, const Plant& planted) {
  const auto family = std::ranges::find(case_families(), operation, &CaseFamily::operation);
  KernelCase c = std::move(cases_with_trials(*family, make).front());
  planted(c, c);
  for (KernelCase& trial : c.trials) planted(c, trial);
  return c;
}

WrongElement wrong_in(const KernelCase& c, World& world) {
  const auto results = check(c, *world.stream, "");
  EXPECT_EQ(results.size(), 1u);
  EXPECT_FALSE(results.front().right());
  return results.front().first_wrong.value_or(WrongElement{});
}

TEST(Trials, FindANaNThatAMaximumLoses) {
  World world;
  CaseMaker make = world.maker(kSmall);
  const KernelCase c = with_planted(make, "relu", [](const KernelCase&, KernelCase& own) {
    own.variants = {{"planted", [&x = *own.arrays[0], &y = *own.arrays[1]](Stream&) {
                       for (std::size_t i = 0; i < y.elements(); ++i) y.floats()[i] = std::fmax(x.floats()[i], 0.0f);
                     }}};
  });
  const WrongElement wrong = wrong_in(c, world);
  EXPECT_EQ(wrong.trial, Trial::non_finite);
  EXPECT_EQ(wrong.why, WrongElement::Why::value);
  EXPECT_EQ(wrong.index, 250u) << "the last of 1001 / 4 | 1";
  EXPECT_TRUE(std::isnan(wrong.expected));
  EXPECT_EQ(wrong.value, 0);
}

TEST(Trials, FindACountOfTheBatchBefore) {
  World world;
  CaseMaker make = world.maker(kSmall);
  const KernelCase c = with_planted(make, "relu", [](const KernelCase& first, KernelCase& own) {
    own.variants = {
        {"planted", [&x = *own.arrays[0], &y = *own.arrays[1], count = first.arrays[0]->elements()](Stream&) {
           for (std::size_t i = 0; i < count; ++i) y.floats()[i] = x.floats()[i] < 0 ? 0 : x.floats()[i];
         }}};
  });
  const WrongElement wrong = wrong_in(c, world);
  EXPECT_EQ(wrong.trial, Trial::tail);
  EXPECT_EQ(wrong.why, WrongElement::Why::behind);
  EXPECT_EQ(wrong.index, 251u);
}

/// A sum over all rows that the batch before had.
TEST(Trials, FindASumOfMoreRowsThanThereAre) {
  World world;
  CaseMaker make = world.maker(kSmall);
  const KernelCase c = with_planted(make, "gradient_statistics", [](const KernelCase& first, KernelCase& own) {
    const auto run = first.variants.front().run;
    own.variants = {{"planted", run}};
    own.emulated = {};
  });
  const WrongElement wrong = wrong_in(c, world);
  EXPECT_EQ(wrong.trial, Trial::tail);
  EXPECT_EQ(wrong.why, WrongElement::Why::value);
}

TEST(Trials, FindASumInAnotherOrder) {
  World world;
  CaseMaker make = world.maker(kSmall);
  int calls = 0;
  KernelCase c = make.make("sum");
  BenchArray& x = make.input(c, DType::f32, 1000);
  BenchArray& y = make.output(c, "y", DType::f32, 1, sum_of_products(DType::f32, 1000));
  const auto sum_of = [](Side side, const BenchArray& from, BenchArray& to, bool from_the_end) {
    float sum = 0;
    for (std::size_t i = 0; i < from.elements(); ++i)
      sum += from.as<float>(side)[from_the_end ? from.elements() - 1 - i : i];
    *to.as<float>(side) = sum;
  };
  c.reference = [&] { sum_of(Side::host, x, y, false); };
  c.variants = {{"planted", [&](Stream&) { sum_of(Side::device, x, y, ++calls % 2 == 0); }}};
  const WrongElement wrong = wrong_in(c, world);
  EXPECT_EQ(wrong.trial, Trial::none);
  EXPECT_EQ(wrong.why, WrongElement::Why::repetition);
  EXPECT_NEAR(wrong.value, wrong.expected, 1e-3) << "within the bound, and not the same";
}

/// A counter of arrivals that a launch leaves in the workspace.
TEST(Trials, FindACallThatDependsOnItsWorkspace) {
  World world;
  CaseMaker make = world.maker(kSmall);
  KernelCase c = make.make("counted");
  BenchArray& y = make.output(c, "y", DType::f32, 1, [](double) { return 1.0; });
  BenchArray& workspace = make.workspace(c, 1);
  c.reference = [&] { *y.as<float>(Side::host) = 77; };
  c.variants = {{"planted", [&](Stream&) { *y.floats() = (*workspace.as<std::uint8_t>(Side::device))++; }}};
  EXPECT_EQ(wrong_in(c, world).why, WrongElement::Why::repetition);
}

TEST(Trials, ShareTheMemoryOfTheirCase) {
  World world;
  CaseMaker make = world.maker(kSmall);
  const KernelCase c = std::move(cases_with_trials(case_families()[0], make).front());
  ASSERT_EQ(c.trials.size(), 2u);
  for (const KernelCase& trial : c.trials) {
    EXPECT_EQ(trial.outputs[0].array->at(Side::device), c.outputs[0].array->at(Side::device));
    EXPECT_EQ(trial.outputs[0].array->elements() % 2, 1u);
    EXPECT_LT(trial.outputs[0].array->elements(), c.outputs[0].array->elements());
    EXPECT_THAT(trial.peers, ElementsAre());
  }
}

}  // namespace
}  // namespace gradring::kernels::bench
