// SPDX-License-Identifier: Apache-2.0
#include "kernels/bench/measure_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "kernels/bench/kernel_case.h"
#include "tests/kernels/bench/bench_world.h"

namespace gradring::kernels::bench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

constexpr Effort kLittle{.seconds = 0, .most_samples = 2};

/// y = 1 for three elements, with an error of at most 0.25, by whoever is given.
KernelCase ones(CaseMaker& make, const std::vector<std::pair<std::string, float>>& writers) {
  KernelCase c = make.make("ones");
  BenchArray& y = make.output(c, "y", DType::f32, 3, [](double) { return 0.25; });
  c.reference = [&y] { std::fill_n(y.as<float>(Side::host), 3, 1.0f); };
  for (const auto& [name, value] : writers)
    c.variants.push_back({name, [&y, filled = value](Stream&) { std::fill_n(y.as<float>(Side::device), 3, filled); }});
  return c;
}

TEST(MeasureCase, DoesNotTimeWrongResults) {
  World world;
  CaseMaker make = world.maker({});
  const KernelCase c = ones(make, {{"right", 1.0f}, {"near", 1.125f}, {"far", 1.5f}, {"nan", std::nanf("")}});
  const auto results = measure(c, world.device, *world.stream, *world.machine, kLittle, "");
  ASSERT_EQ(results.size(), 4u);
  EXPECT_EQ(results[0].error, 0);
  EXPECT_EQ(results[1].error, 0.5);
  EXPECT_TRUE(results[1].right());
  EXPECT_GT(results[1].hot.count, 0u);
  EXPECT_EQ(results[2].error, 2);
  EXPECT_FALSE(results[2].right());
  EXPECT_EQ(results[2].hot.count, 0u);
  EXPECT_FALSE(results[3].right());
}

/// Notes what it is told.
class NotedProbe final : public ResultProbe {
 public:
  void before_run(const WrongElement* element) override {
    runs.push_back(element == nullptr ? "first" : element->output + std::to_string(element->index));
  }
  std::string after_run() override { return "somebody"; }

  std::vector<std::string> runs;
};

TEST(MeasureCase, RunsWrongResultsAgainForTheProbe) {
  World world;
  CaseMaker make = world.maker({});
  KernelCase c = ones(make, {{"right", 1.0f}});
  float* const y = c.arrays[0]->as<float>(Side::device);
  c.variants.push_back({"far", [y](Stream&) { y[0] = 1, y[1] = y[2] = 1.5f; }});
  NotedProbe probe;
  const auto results = check(c, *world.stream, "", &probe);
  EXPECT_THAT(probe.runs, ElementsAre("first", "first", "y1"));
  EXPECT_FALSE(results[0].first_wrong);
  ASSERT_TRUE(results[1].first_wrong);
  EXPECT_EQ(results[1].first_wrong->value, 1.5);
  EXPECT_EQ(results[1].first_wrong->expected, 1);
  EXPECT_EQ(results[1].first_wrong->wrong_elements, 2u);
  EXPECT_EQ(results[1].first_wrong->data, y + 1);
  EXPECT_EQ(results[1].first_wrong->writer, "somebody");
}

TEST(MeasureCase, DetectsUnwrittenOutputs) {
  World world;
  CaseMaker make = world.maker({});
  KernelCase c = ones(make, {{"right", 1.0f}});
  c.variants.push_back({"lazy", [](Stream&) {}});  // runs after one that left the right values there
  const auto results = measure(c, world.device, *world.stream, *world.machine, kLittle, "");
  EXPECT_TRUE(results[0].right());
  EXPECT_FALSE(results[1].right());
}

/// y = 2 x for a hundred elements.
KernelCase doubled(CaseMaker& make, const std::string& name, const std::function<void(const float*, float*)>& variant) {
  KernelCase c = make.make("doubled");
  BenchArray& x = make.input(c, DType::f32, 100);
  BenchArray& y = make.output(c, "y", DType::f32, 100, exact());
  c.reference = [&] {
    for (int i = 0; i < 100; ++i) y.as<float>(Side::host)[i] = 2 * x.as<float>(Side::host)[i];
  };
  c.variants.push_back({name, [&x, &y, variant](Stream&) { variant(x.floats(), y.floats()); }});
  return c;
}

void twice(const float* x, float* y) {
  for (int i = 0; i < 100; ++i) y[i] = 2 * x[i];
}

TEST(MeasureCase, RejectsWhatDoesLessWhenItIsTimed) {
  World world;
  CaseMaker make = world.maker({});
  int calls = 0;
  std::vector<float> remembered;
  const std::vector<std::pair<std::string, std::function<void(const float*, float*)>>> planted = {
      {"stops after its check", [&](const float* x, float* y) { ++calls > 2 ? void() : twice(x, y); }},
      {"copies its first result",
       [&](const float* x, float* y) {
         if (remembered.empty()) twice(x, y), remembered.assign(y, y + 100);
         std::ranges::copy(remembered, y);
       }},
      {"stops during the timed calls",
       [&, late = 0](const float* x, float* y) mutable { ++late > 5 ? void() : twice(x, y); }}};
  for (const auto& [name, variant] : planted) {
    const auto results =
        measure(doubled(make, name, variant), world.device, *world.stream, *world.machine, kLittle, "");
    ASSERT_EQ(results.size(), 1u);
    EXPECT_FALSE(results[0].right()) << name;
    ASSERT_TRUE(results[0].first_wrong) << name;
    EXPECT_EQ(results[0].first_wrong->why, WrongElement::Why::timed) << name;
  }
  const auto honest = measure(doubled(make, "honest", twice), world.device, *world.stream, *world.machine, kLittle, "");
  EXPECT_TRUE(honest[0].right());
}

TEST(MeasureCase, MeasuresOneVariantAndThePlainLoop) {
  World world;
  CaseMaker make = world.maker({});
  KernelCase c = ones(make, {{"a", 1.0f}, {"b", 1.0f}});
  int loops = 0;
  c.plain_loop = [&loops] { ++loops; };
  const auto results = measure(c, world.device, *world.stream, *world.machine, kLittle, "b");
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].name, "b");
  EXPECT_EQ(results[1].name, kPlainLoop);
  EXPECT_GT(loops, 1);
  EXPECT_TRUE(measure(c, world.device, *world.stream, *world.machine, kLittle, "none").empty());
}

TEST(MeasureCase, ChecksEmulatedVariantsWithoutTimingThem) {
  World world;
  CaseMaker make = world.maker({});
  KernelCase c = ones(make, {{"ours", 1.0f}});
  const BenchArray& y = *c.outputs[0].array;
  for (const auto& [name, value] : {std::pair("right", 1.0f), std::pair("wrong", 2.0f)})
    c.emulated.push_back({name, [&y, filled = value](Stream&) { std::fill_n(y.as<float>(Side::device), 3, filled); }});
  const auto results = measure(c, world.device, *world.stream, *world.machine, kLittle, "");
  ASSERT_EQ(results.size(), 3u);
  EXPECT_GT(results[0].hot.count, 0u);
  for (std::size_t i : {1u, 2u}) {
    EXPECT_EQ(results[i].kind, Measured::Kind::emulated);
    EXPECT_EQ(results[i].hot.count, 0u);
  }
  EXPECT_TRUE(results[1].right());
  EXPECT_FALSE(results[2].right());
  EXPECT_EQ(measure(c, world.device, *world.stream, *world.machine, kLittle, "right").size(), 1u);
}

TEST(MeasureCase, ChecksAndTimesPeersForAnyVariant) {
  World world;
  CaseMaker make = world.maker({});
  KernelCase c = ones(make, {{"a", 1.0f}, {"b", 1.0f}});
  c.peers = {{"library", c.variants.front().run}, {"broken", [](Stream&) {}}};
  const auto results = measure(c, world.device, *world.stream, *world.machine, kLittle, "b");
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].kind, Measured::Kind::variant);
  EXPECT_EQ(results[1].name, "library");
  EXPECT_EQ(results[1].kind, Measured::Kind::peer);
  EXPECT_GT(results[1].hot.count, 0u);
  EXPECT_FALSE(results[2].right()) << "a library that is wrong is no yardstick";
}

TEST(MeasureCase, ReportsTheKernelsOfOneCall) {
  World world;
  CaseMaker make = world.maker({{"elements", 5000}});
  const KernelCase c = std::move(relu_cases(make).front());
  const auto results = measure(c, world.device, *world.stream, *world.machine, kLittle, "");
  ASSERT_FALSE(results.empty());
  ASSERT_EQ(results[0].launches.size(), 1u);
  EXPECT_EQ(results[0].launches[0].kernel, "relu_forward_flat_kernel<float>");
  EXPECT_EQ(results[0].launches[0].threads, 1u);
  EXPECT_EQ(world.stream->launch_observer(), nullptr) << "nobody hears what is timed";
}

/// Whoever is asked for a peer, and with which pointers.
class CountingPeers final : public PeerMaker {
 public:
  Peer peer(const conv2d::ForwardArgs& args) override { return note("conv2d forward", args.x && args.w && args.y); }
  Peer peer(const conv2d::DgradArgs& args) override { return note("conv2d dgrad", args.dy && args.w && args.dx); }
  Peer peer(const conv2d::WgradArgs& args) override { return note("conv2d wgrad", args.x && args.dy && args.dw); }
  Peer peer(const gemm::Args& args) override { return note("gemm", args.a && args.b && args.c); }
  Peer peer(const conv_relu_pool::ForwardArgs& args) override { return note("fused forward", args.x && args.codes); }
  Peer peer(const conv_relu_pool::BackwardArgs& args) override { return note("fused backward", args.dx && args.codes); }

  std::set<std::string> asked;

 private:
  Peer note(const std::string& what, bool complete) {
    if (complete) asked.insert(what);
    return std::nullopt;
  }
};

TEST(CaseMaker, RequestsPeersOfConvolutionsAndProducts) {
  World world;
  CountingPeers peers;
  CaseMaker make({.kernels = world.kernels,
                  .device = world.device,
                  .stream = *world.stream,
                  .extents = {{"batch", 1}, {"height", 6}, {"width", 6}},
                  .peers = &peers});
  for (const CaseFamily& family : case_families()) family.cases(make);
  EXPECT_THAT(peers.asked,
              ElementsAre("conv2d dgrad", "conv2d forward", "conv2d wgrad", "fused backward", "fused forward", "gemm"));
}

TEST(CaseMaker, SortsTheVariantsOfATableByWhereTheyRun) {
  World world;
  const auto names = [](const std::vector<KernelCase::Candidate>& candidates) {
    std::vector<std::string> names;
    for (const auto& candidate : candidates) names.push_back(candidate.name);
    return names;
  };
  for (const DType dtype : {DType::f32, DType::f16}) {
    CaseMaker make = world.maker({}, dtype);
    for (const KernelCase& c : gemm_cases(make)) {
      EXPECT_THAT(names(c.variants), ElementsAre("strips"));
      if (dtype == DType::f16) {
        EXPECT_THAT(names(c.emulated), ElementsAre("tiled", "wmma", "mma", "wgmma"));
        EXPECT_THAT(c.unsupported, ElementsAre("naive", "coalesced", "shared_tile", "register_tile"));
      } else {
        EXPECT_THAT(names(c.emulated), ElementsAre("naive", "coalesced", "shared_tile", "register_tile", "tiled"));
        EXPECT_THAT(c.unsupported, ElementsAre("wmma", "mma", "wgmma"));
      }
    }
  }
}

TEST(CaseMaker, NamesTheExtentsOfEachCase) {
  World world;
  CaseMaker make = world.maker({{"rows", 5}});
  EXPECT_EQ(make.extent("rows", 64), 5);
  EXPECT_EQ(make.extent("channels", 3), 3);
  EXPECT_EQ(make.make("first").shape, "rows=5,channels=3");
  EXPECT_EQ(make.make("second").shape, "");
  EXPECT_THAT(make.extent_names(), ElementsAre("channels", "rows"));
}

TEST(CaseMaker, CountsUnreadOverwrittenBytes) {
  World world;
  CaseMaker make = world.maker({});
  KernelCase c = make.make("any");
  make.input(c, DType::f32, 10);
  make.output(c, "y", DType::f16, 10, exact());
  EXPECT_EQ(c.unread_bytes, 20);
}

/// Where rounding made ties, variants that round before they pool would find other maxima.
TEST(CaseMaker, MakesConvolutionsToPoolWhoseSumsNoTypeRounds) {
  World world;
  const Extents long_sums = {{"batch", 2}, {"height", 9}, {"width", 8}, {"in", 512}, {"out", 16}};
  std::vector<OutputValues> of_types;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    CaseMaker make = world.maker(long_sums, dtype);
    of_types.push_back(reference_values(conv_relu_pool_cases(make).front(), *world.stream));
  }
  EXPECT_EQ(of_types[1], of_types[0]);
  EXPECT_EQ(of_types[2], of_types[0]);
  EXPECT_THAT(of_types[0][0], Contains(testing::Gt(50)));
}

class EveryOperation : public testing::TestWithParam<DType> {};

TEST_P(EveryOperation, HasCasesWhoseVariantsAllPass) {
  World world;
  for (const CaseFamily& family : case_families()) {
    CaseMaker make = world.maker(kSmall, GetParam());
    const Cases cases = cases_with_trials(family, make);
    EXPECT_FALSE(cases.empty()) << family.operation;
    for (const KernelCase& c : cases) {
      const auto results = measure(c, world.device, *world.stream, *world.machine, kLittle, "");
      EXPECT_FALSE(results.empty()) << c.name;
      for (const Measured& result : results) {
        EXPECT_LE(result.error, 1) << c.name << ", " << result.name;
        if (!result.first_wrong) continue;
        const WrongElement& wrong = *result.first_wrong;
        ADD_FAILURE() << "trial " << static_cast<int>(wrong.trial) << " [" << wrong.shape << "], why "
                      << static_cast<int>(wrong.why) << ": " << wrong.output << "[" << wrong.index << "] is "
                      << wrong.value << ", expected " << wrong.expected;
      }
    }
  }
}

TEST_P(EveryOperation, HasCasesThatFindOneWrongElementOfAnyResult) {
  World world;
  for (const CaseFamily& family : case_families()) {
    CaseMaker make = world.maker(kSmall, GetParam());
    for (KernelCase& c : family.cases(make)) {
      const auto run = c.variants.front().run;
      for (const KernelCase::Output& output : c.outputs) {
        SCOPED_TRACE(c.name + ", " + output.name);
        const std::size_t index = output.array->elements() / 2, bytes = output.array->element_bytes();
        std::byte& highest = output.array->as<std::byte>(Side::device)[(index + 1) * bytes - 1];
        c.variants = {{"planted", [&](Stream& stream) { run(stream), highest ^= std::byte{0x40}; }}};
        c.emulated.clear();
        const auto results = check(c, *world.stream, "");
        ASSERT_EQ(results.size(), 1u);
        EXPECT_FALSE(results[0].right());
        ASSERT_TRUE(results[0].first_wrong);
        EXPECT_EQ(results[0].first_wrong->output, output.name);
        EXPECT_EQ(results[0].first_wrong->index, index);
        EXPECT_EQ(results[0].first_wrong->wrong_elements, 1u);
      }
    }
  }
}

/// A plain loop is worth comparing with only if it computes the same.
TEST(PlainLoops, ComputeWhatTheReferenceDoes) {
  World world;
  for (const CaseFamily& family : case_families()) {
    CaseMaker make = world.maker(kSmall);
    Cases cases = family.cases(make);
    for (KernelCase& c : cases) {
      if (!c.plain_loop) continue;
      c.variants = {{"plain loop as a variant", [&c](Stream&) { c.plain_loop(); }}};
      if (family.operation == "softmax_cross_entropy" || family.operation == "gradient_statistics")
        c.outputs.resize(1);  // they leave out the count of right rows, and the flag
      for (const Measured& result : measure(c, world.device, *world.stream, *world.machine, kLittle, ""))
        EXPECT_LE(result.error, 1) << c.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(OfType, EveryOperation, testing::Values(DType::f32, DType::f16, DType::bf16),
                         [](const auto& type) { return std::string(name_of(type.param)); });

}  // namespace
}  // namespace gradring::kernels::bench
