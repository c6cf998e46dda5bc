// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/dropout/dropout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/safetensors.h"
#include "tests/support/values.h"

namespace gradring::kernels::dropout {
namespace {

using namespace gradring::tests;

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};

/// As in a captured graph: the step is in memory.
struct Counters {
  std::int32_t step = 3;
  std::int64_t first = 0;

  Draw draw(std::uint64_t seed = 11, std::int64_t layer = 2) const {
    return {.seed = seed, .layer = layer, .step = &step, .first = first};
  }
};

std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

TEST(Dropout, IsExactForwardAndInPlace) {
  const struct {
    std::int64_t samples, elements;
  } cases[] = {{0, 5}, {5, 0}, {1, 1}, {3, 4}, {2, 31}, {33, 7}, {2, 1023}, {2, 512}, {3, 1028}, {1, 20001}};
  const Counters counters{.step = 3, .first = 1'000'000};
  for (DType dtype : kTypes)
    for (const auto& c : cases)
      for (double p : {0.0, 0.25, 0.9}) {
        const TypedArray x(dtype, random_values(size(c.samples * c.elements), 1));
        Args args{.dtype = dtype,
                  .samples = c.samples,
                  .elements = c.elements,
                  .x = x.data(),
                  .p = p,
                  .draw = counters.draw()};
        TypedArray expected = TypedArray::unwritten(dtype, x.elements());
        args.y = expected.data();
        reference_run(args);
        const std::vector<double> truth = expected.values();
        for_each_variant(kernel_set().dropout, dtype, [&](const Variant& variant, Stream& stream) {
          TypedArray actual = TypedArray::unwritten(dtype, x.elements());
          TypedArray in_place = x;
          Args here = args;
          here.y = actual.data();
          variant.run(stream, here);
          here.x = here.y = in_place.data();
          variant.run(stream, here);
          finish(stream);
          // The scale and the product are rounded to f32, then the result to the type.
          expect_close(actual.values(), truth, [&](std::size_t i) {
            return 3 * rounding(DType::f32, truth[i]) + 2 * rounding(dtype, truth[i]);
          });
          expect_equal(in_place.values(), actual.values());
        });
      }
}

/// tests/golden/make_dropout.py: the words that another implementation of Philox draws.
TEST(Dropout, DrawsTheWordsOfPhilox) {
  const StoredTensors golden = read_golden("dropout");
  const std::vector<std::int64_t> numbers = golden.at("numbers").as<std::int64_t>();
  const struct {
    const char* name;
    std::uint64_t seed;
    std::int32_t step;
    std::int64_t layer;
  } cases[] = {{"words.zero", 0, 0, 0}, {"words.any", 0x299f31d0a4093822, 1'234'567'890, 17}};
  for (const auto& c : cases) {
    const StoredTensor& stored = golden.at(c.name);
    const std::vector<std::int64_t> words = stored.as<std::int64_t>();
    const std::int64_t elements = stored.shape[1];
    const std::vector<float> x(words.size(), 1.0f);
    for (double p : {0.5, 0.125}) {
      std::vector<double> expected(words.size());
      std::ranges::transform(words, expected.begin(), [p](std::int64_t word) {
        return static_cast<double>(word) >= p * 0x1p32 ? static_cast<double>(static_cast<float>(1 / (1 - p))) : 0.0;
      });
      for_each_variant(kernel_set().dropout, DType::f32, [&](const Variant& variant, Stream& stream) {
        std::vector<float> y(words.size());
        for (std::size_t r = 0; r < numbers.size(); ++r)
          variant.run(stream, {.samples = 1,
                               .elements = elements,
                               .x = x.data(),
                               .y = y.data() + r * size(elements),
                               .p = p,
                               .draw = {.seed = c.seed, .layer = c.layer, .step = &c.step, .first = numbers[r]}});
        finish(stream);
        expect_equal(std::vector<double>(y.begin(), y.end()), expected);
      });
    }
  }
}

/// One batch of 12, or the parts of ranks and micro-batches.
TEST(Dropout, DrawsTheSameBitsInEveryLayout) {
  constexpr std::int64_t kSamples = 12, kElements = 29;
  const Counters counters{.step = 3, .first = 40};
  const TypedArray ones(DType::f32, std::vector<double>(kSamples * kElements, 1.0));
  for_each_variant(kernel_set().dropout, DType::f32, [&](const Variant& variant, Stream& stream) {
    const auto run = [&](std::int64_t samples, const Draw& draw) {
      TypedArray y = TypedArray::unwritten(DType::f32, size(samples * kElements));
      variant.run(stream, {.samples = samples, .elements = kElements, .x = ones.data(), .y = y.data(), .draw = draw});
      finish(stream);
      return y.values();
    };
    const std::vector<double> whole = run(kSamples, counters.draw());
    const auto rows = [&](std::int64_t first, std::int64_t step, std::int64_t count) {
      std::vector<double> part;
      for (std::int64_t r = 0; r < count; ++r)
        part.insert(part.end(), whole.begin() + (first + r * step) * kElements,
                    whole.begin() + (first + r * step + 1) * kElements);
      return part;
    };
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      Draw draw = counters.draw();
      draw.first = 40 + rank * 4;
      EXPECT_EQ(run(4, draw), rows(rank * 4, 1, 4)) << "consecutive parts, rank " << rank;
      draw.first = 40 + rank;
      draw.stride = 3;
      EXPECT_EQ(run(4, draw), rows(rank, 3, 4)) << "every third sample, rank " << rank;
    }
  });
}

/// Every part of a key or counter changes the mask, and steps are read when the kernel runs.
TEST(Dropout, DependsOnSeedLayerStepAndSample) {
  constexpr std::int64_t kElements = 64;
  const TypedArray ones(DType::f32, std::vector<double>(kElements, 1.0));
  for_each_variant(kernel_set().dropout, DType::f32, [&](const Variant& variant, Stream& stream) {
    std::vector<std::vector<double>> masks;
    Counters counters;
    const auto run = [&](const Draw& draw) {
      TypedArray y = TypedArray::unwritten(DType::f32, kElements);
      variant.run(stream, {.samples = 1, .elements = kElements, .x = ones.data(), .y = y.data(), .draw = draw});
      finish(stream);
      masks.push_back(y.values());
    };
    const Draw draw = counters.draw();
    run(draw);
    run(counters.draw(12));
    run(counters.draw(11, 3));
    ++counters.step;
    run(draw);
    ++counters.first;
    run(counters.draw());
    for (std::size_t i = 0; i < masks.size(); ++i)
      for (std::size_t j = 0; j < i; ++j) EXPECT_NE(masks[i], masks[j]) << i << ", " << j;
  });
}

TEST(Dropout, DropsAShareOfPAndKeepsTheMean) {
  constexpr std::int64_t kElements = 20'000;
  const Counters counters;
  const TypedArray ones(DType::f32, std::vector<double>(kElements, 1.0));
  for (double p : {0.1, 0.5, 0.8})
    for_each_variant(kernel_set().dropout, DType::f32, [&](const Variant& variant, Stream& stream) {
      TypedArray y = TypedArray::unwritten(DType::f32, kElements);
      variant.run(
          stream,
          {.samples = 1, .elements = kElements, .x = ones.data(), .y = y.data(), .p = p, .draw = counters.draw()});
      finish(stream);
      const std::vector<double> values = y.values();
      const double dropped = static_cast<double>(std::ranges::count(values, 0.0)) / kElements;
      EXPECT_NEAR(dropped, p, 5 * std::sqrt(p * (1 - p) / kElements));  // five standard deviations
      EXPECT_NEAR(std::accumulate(values.begin(), values.end(), 0.0) / kElements, (1 - dropped) / (1 - p), 1e-6);
    });
}

TEST(Dropout, ShowsNaNAndInfinityAlsoWhereItDrops) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Counters counters;
  for_each_variant(kernel_set().dropout, DType::f32, [&](const Variant& variant, Stream& stream) {
    std::vector<double> values(64, nan);
    std::fill(values.begin() + 32, values.end(), infinity);
    TypedArray y(DType::f32, values);
    variant.run(stream,
                {.samples = 1, .elements = 64, .x = y.data(), .y = y.data(), .p = 0.5, .draw = counters.draw()});
    finish(stream);
    EXPECT_EQ(std::ranges::count_if(y.values(), [](double value) { return std::isfinite(value); }), 0);
  });
}

TEST(Dropout, RejectsOtherProbabilitiesNullPartialOverlapAndOtherTypes) {
  float data[4] = {};
  const Counters counters;
  const Args good{.samples = 1, .elements = 2, .x = data, .y = data, .draw = counters.draw()};
  const auto expect_rejected = [&](auto change) {
    Args args = good;
    change(args);
    EXPECT_THROW(check_args(args), InvalidArgument);
  };
  EXPECT_NO_THROW(check_args(good));
  expect_rejected([](Args& args) { args.samples = -1; });
  expect_rejected([](Args& args) { args.p = 1; });
  expect_rejected([](Args& args) { args.p = -0.1; });
  expect_rejected([](Args& args) { args.p = std::numeric_limits<double>::quiet_NaN(); });
  expect_rejected([](Args& args) { args.x = nullptr; });
  expect_rejected([&](Args& args) { args.y = data + 1; });
  expect_rejected([](Args& args) { args.draw.step = nullptr; });
  expect_rejected([](Args& args) { args.draw.layer = -1; });
  expect_rejected([](Args& args) { args.dtype = DType::i32; });
}

}  // namespace
}  // namespace gradring::kernels::dropout
