// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/gather_batch/gather_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "data/loader/normalize.h"
#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/values.h"

namespace gradring::kernels::gather_batch {
namespace {

using namespace gradring::tests;

struct Extents {
  std::int64_t batch, pixels, channels;
};
constexpr Extents kCases[] = {{0, 4, 1}, {1, 1, 1}, {3, 1, 4}, {31, 33, 1}, {32, 7, 3}, {5, 341, 3}, {33, 31, 2}};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16};
constexpr std::int64_t kSamples = 11;

std::size_t size(std::int64_t extent) { return static_cast<std::size_t>(extent); }

struct Results {
  TypedArray y;
  std::vector<std::int32_t> labels;
};

/// A data set of kSamples images, and an order that names each more than once, with two positions before the batch.
struct Case {
  DType dtype;
  std::int64_t batch, elements, channels;
  std::vector<std::uint8_t> x;
  std::vector<std::int32_t> x_labels;
  std::vector<std::int64_t> order;
  std::int64_t first = 2;
  std::vector<float> mean, std;

  Case(const Extents& e, DType type)
      : dtype(type), batch(e.batch), elements(e.pixels * e.channels), channels(e.channels) {
    for (double value : random_values(size(kSamples * elements), 1, 0, 256))
      x.push_back(static_cast<std::uint8_t>(value));
    for (double value : random_values(size(batch + 3), 2, 0, kSamples))
      order.push_back(static_cast<std::int64_t>(value));
    x_labels.resize(size(kSamples));
    std::iota(x_labels.begin(), x_labels.end(), 100);
    for (std::int64_t c = 0; c < channels; ++c) {
      mean.push_back(0.1307f + 0.1f * static_cast<float>(c));
      std.push_back(0.3081f + 0.01f * static_cast<float>(c));
    }
  }

  Args args(Results& results) {
    return {.dtype = dtype,
            .samples = kSamples,
            .positions = static_cast<std::int64_t>(order.size()),
            .batch = batch,
            .elements = elements,
            .channels = channels,
            .x = x.data(),
            .x_labels = x_labels.data(),
            .order = order.data(),
            .first = &first,
            .mean = mean.data(),
            .std = std.data(),
            .y = results.y.data(),
            .labels = results.labels.data()};
  }

  /// Calls run(args) with everything filled in.
  template <class Run>
  Results call(Run run) {
    Results results{TypedArray::unwritten(dtype, size(batch * elements)), std::vector<std::int32_t>(size(batch), -7)};
    run(args(results));
    return results;
  }
};

/// What Case::call takes for a variant.
auto with(const Variant& variant, Stream& stream) {
  return [&](const Args& args) {
    variant.run(stream, args);
    finish(stream);
  };
}

void by_reference(const Args& args) { reference_run(args); }

TEST(GatherBatch, GivesTheReferencesBits) {
  for (DType dtype : kTypes)
    for (const Extents& extents : kCases) {
      Case c(extents, dtype);
      const Results expected = c.call(by_reference);
      for_each_variant(kernel_set().gather_batch, dtype, [&](const Variant& variant, Stream& stream) {
        const Results actual = c.call(with(variant, stream));
        expect_equal(actual.y.values(), expected.y.values());
        EXPECT_EQ(actual.labels, expected.labels);
      });
    }
}

/// Each row of order, first and epoch are read on the device; width and height differ.
TEST(GatherBatch, AugmentsWithTheReferencesBits) {
  const struct {
    std::int64_t batch, height, width, channels;
  } cases[] = {{0, 4, 4, 1}, {3, 2, 3, 1}, {31, 5, 33, 1}, {5, 32, 31, 3}, {33, 7, 4, 2}, {2, 64, 5, 4}};
  const Augmentation augmentations[] = {{.flip = Flip::random},
                                        {.flip = Flip::alternating},
                                        {.crop = 1},
                                        {.cutout = 1},
                                        {.flip = Flip::random, .crop = 1, .cutout = 4},
                                        {.flip = Flip::random, .area_min = 800, .area_max = 10000, .cutout = 2},
                                        {.mixup = 1000},
                                        {.cutmix = 1000},
                                        {.flip = Flip::random, .crop = 1, .cutout = 1, .mixup = 1000, .cutmix = 1000}};
  std::vector<std::int32_t> lambdas;
  for (int i = 0; i < 2 * kLambdas; ++i) lambdas.push_back(i % kLambdas * (kWholeWeight / kLambdas));
  for (DType dtype : kTypes)
    for (const auto& extents : cases)
      for (const Augmentation& augment : augmentations) {
        const std::int64_t epoch = 3;
        Case c({extents.batch, extents.height * extents.width, extents.channels}, dtype);
        std::vector<std::int32_t> labels_b(size(extents.batch), -7);
        std::vector<float> weights_b(size(extents.batch), -7);
        const auto augmented = [&](Args args) {
          args.augment = augment;
          args.width = extents.width;
          args.seed = 77;
          args.epoch = &epoch;
          args.lambdas = lambdas.data();
          args.labels_b = labels_b.data();
          args.weights_b = weights_b.data();
          return args;
        };
        const Results expected = c.call([&](const Args& args) { reference_run(augmented(args)); });
        const auto expected_labels_b = labels_b;
        const auto expected_weights_b = weights_b;
        for_each_variant(kernel_set().gather_batch, dtype, [&](const Variant& variant, Stream& stream) {
          const Results actual = c.call([&](const Args& args) { with(variant, stream)(augmented(args)); });
          expect_equal(actual.y.values(), expected.y.values());
          EXPECT_EQ(actual.labels, expected.labels);
          EXPECT_EQ(labels_b, expected_labels_b);
          EXPECT_EQ(weights_b, expected_weights_b);
        });
      }
}

/// Every byte in every channel, in the numbers that people normalise MNIST and CIFAR-10 with.
TEST(GatherBatch, GivesTheBitsOfTheLoader) {
  for (const data::NormalizeSpec& spec :
       {data::NormalizeSpec{}, data::NormalizeSpec{{0.1307f}, {0.3081f}},
        data::NormalizeSpec{{0.4914f, 0.4822f, 0.4465f}, {0.247f, 0.2435f, 0.2616f}}}) {
    const auto channels = static_cast<std::int64_t>(spec.mean.size());
    Case c({.batch = 3, .pixels = 256, .channels = channels}, DType::f32);
    c.mean = spec.mean;
    c.std = spec.std;
    for (std::size_t i = 0; i < c.x.size(); ++i) c.x[i] = static_cast<std::uint8_t>(i / size(channels));
    const data::Normalize normalize(spec, channels);
    std::vector<float> expected(size(c.batch * c.elements));
    for (std::size_t row = 0; row < size(c.batch); ++row)
      normalize.apply(std::span(c.x).subspan(size(c.order[row + 2] * c.elements), size(c.elements)),
                      std::span(expected).subspan(row * size(c.elements), size(c.elements)));
    for_each_variant(kernel_set().gather_batch, DType::f32, [&](const Variant& variant, Stream& stream) {
      const Results actual = c.call(with(variant, stream));
      EXPECT_EQ(std::memcmp(actual.y.data(), expected.data(), expected.size() * sizeof(float)), 0);
    });
  }
}

TEST(GatherBatch, MissingSamplesBecomeNaNWithoutALabel) {
  const auto expect_holes = [](Case& c, const std::vector<std::int32_t>& labels, auto run) {
    const Results results = c.call(run);
    EXPECT_EQ(results.labels, labels);
    const std::vector<double> y = results.y.values();
    for (std::size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(std::isnan(y[i]), labels[i / size(c.elements)] < 0) << "element " << i;
  };
  const auto expect_everywhere = [&](Case& c, const std::vector<std::int32_t>& labels) {
    expect_holes(c, labels, by_reference);
    for_each_variant(kernel_set().gather_batch, c.dtype,
                     [&](const Variant& variant, Stream& stream) { expect_holes(c, labels, with(variant, stream)); });
  };
  Case c({4, 3, 1}, DType::f16);
  c.order = {0, 5, kSamples, -1, 10, 6, 7};
  expect_everywhere(c, {-1, -1, 110, 106});
  c.first = 5;
  expect_everywhere(c, {106, 107, -1, -1});
  c.first = -2;
  expect_everywhere(c, {-1, -1, 100, 105});
}

TEST(GatherBatch, WalksThroughTheOrderByAdvancing) {
  for_each_variant(kernel_set().gather_batch, DType::f32, [&](const Variant& variant, Stream& stream) {
    Case c({2, 3, 1}, DType::f32);
    c.order = {4, 2, 9, 1, 3, 3};
    c.first = 0;
    std::vector<std::int32_t> labels(6);
    unsigned arrivals = 0;
    for (std::size_t step = 0; step < 3; ++step) {
      TypedArray y = TypedArray::unwritten(DType::f32, 6);
      Results results{y, {}};
      Args args = c.args(results);
      args.labels = labels.data() + 2 * step;
      args.arrivals = &arrivals;
      variant.run(stream, args);
      finish(stream);
      EXPECT_EQ(arrivals, 0u);
    }
    EXPECT_EQ(labels, (std::vector<std::int32_t>{104, 102, 109, 101, 103, 103}));
    EXPECT_EQ(c.first, 6);
  });
  Case c({2, 3, 1}, DType::f32);
  unsigned arrivals = 0;
  c.call([&](Args args) {
    args.arrivals = &arrivals;
    reference_run(args);
  });
  EXPECT_EQ(c.first, 4);
}

TEST(GatherBatch, RejectsNullBadExtentsAndOtherTypes) {
  Case c({2, 3, 2}, DType::f32);
  const auto refuse = [&](auto change) {
    c.call([&](Args args) {
      EXPECT_NO_THROW(check_args(args));
      change(args);
      EXPECT_THROW(check_args(args), InvalidArgument);
    });
  };
  refuse([](Args& args) { args.dtype = DType::u8; });
  refuse([](Args& args) { args.batch = -1; });
  refuse([](Args& args) { args.samples = -1; });
  refuse([](Args& args) { args.positions = -1; });
  refuse([](Args& args) { args.elements = 7; });
  refuse([](Args& args) { args.channels = 0; });
  refuse([](Args& args) { args.x = nullptr; });
  refuse([](Args& args) { args.order = nullptr; });
  refuse([](Args& args) { args.first = nullptr; });
  refuse([](Args& args) { args.std = nullptr; });
  refuse([](Args& args) { args.labels = nullptr; });
  const auto augmented = [&](auto change) {
    c.call([&](Args args) {
      const std::int64_t epoch = 0;
      args.augment = {.cutout = 1};
      args.width = 3;
      args.epoch = &epoch;
      EXPECT_NO_THROW(check_args(args));
      change(args);
      EXPECT_THROW(check_args(args), InvalidArgument);
    });
  };
  augmented([](Args& args) { args.width = 0; });
  augmented([](Args& args) { args.width = 2; });
  augmented([](Args& args) { args.augment.crop = 1; });
  augmented([](Args& args) { args.epoch = nullptr; });
  augmented([](Args& args) { args.augment.mixup = 1000; });  // without a table
  EXPECT_NO_THROW(check_args(Args{}));
}

}  // namespace
}  // namespace gradring::kernels::gather_batch
