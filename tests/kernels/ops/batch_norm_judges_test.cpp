// SPDX-License-Identifier: Apache-2.0
// Batch normalization against what is not its reference: one batch on several replicas, PyTorch, finite differences.

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "kernels/ops/kernel_set.h"
#include "tests/kernels/ops/batch_norm_batch.h"
#include "tests/support/expect_close.h"
#include "tests/support/kernel_variants.h"
#include "tests/support/safetensors.h"
#include "tests/support/values.h"

namespace gradring::kernels::batch_norm {
namespace {

/// A part of a batch: rows [begin, end).
Inputs part_of(const Inputs& whole, std::int64_t begin, std::int64_t end) {
  Inputs part = whole;
  part.shape.rows = end - begin;
  for (TypedArray Inputs::*each : {&Inputs::x, &Inputs::residual, &Inputs::dy}) {
    const std::vector<double> values = (whole.*each).values();
    part.*each =
        TypedArray(whole.dtype, std::span(values).subspan(size(begin * whole.shape.channels), part.elements()));
  }
  return part;
}

/// Appends the f32 values of an array to those of the replicas before.
void gather(std::vector<double>& all, const TypedArray& row) {
  const std::vector<double> values = row.values();
  all.insert(all.end(), values.begin(), values.end());
}

/// SyncBatchNorm: every replica has some rows of the batch, or none; a step of all is compared with the reference of
/// the whole batch.
void expect_replicas_agree(const Variant& variant, Stream& stream, const Inputs& whole, const Results& expected,
                           Options options, const std::vector<std::int64_t>& rows) {
  std::vector<Inputs> parts;
  std::vector<Results> results;
  std::vector<double> statistics, sums, y, dx;
  std::int64_t begin = 0;
  for (const std::int64_t count : rows) {
    parts.push_back(part_of(whole, begin, begin + count));
    results.emplace_back(parts.back());
    begin += count;
  }
  TypedArray workspace = floats(variant.workspace_bytes(whole.shape.rows, whole.shape.channels) / sizeof(float));
  for (std::size_t r = 0; r < parts.size(); ++r) {
    variant.statistics(stream, statistics_args(parts[r], results[r], workspace.data()));
    finish(stream);
    gather(statistics, results[r].statistics);
  }
  const TypedArray all_statistics(DType::f32, statistics);
  for (std::size_t r = 0; r < parts.size(); ++r) {
    variant.merge(stream, merge_args(whole.shape, all_statistics, results[r]));
    variant.normalize(stream, normalize_args(parts[r], options, results[r].saved, results[r].y));
    variant.backward_sums(stream, sums_args(parts[r], options, results[r], results[r], false, workspace.data()));
    finish(stream);
    gather(sums, results[r].sums);
    gather(y, results[r].y);
    expect_equal(results[r].saved.values(), results[0].saved.values());  // the same bits on every rank
    expect_merged(results[r], expected, 1e-6);
  }
  const TypedArray all_sums(DType::f32, sums);
  for (std::size_t r = 0; r < parts.size(); ++r) {
    variant.backward(stream, backward_args(parts[r], options, results[r], all_sums, results[r]));
    finish(stream);
    gather(dx, results[r].dx);
  }
  expect_close(y, expected.y.values(), [](std::size_t) { return 4e-6; });
  expect_close(dx, expected.dx.values(), [](std::size_t) { return 4e-6; });
}

TEST(BatchNorm, MergedReplicasEqualOneBatch) {
  const std::vector<std::vector<std::int64_t>> splits = {{120}, {1, 119}, {0, 120}, {50, 70, 0}, {33, 0, 1, 86}};
  for (const std::int64_t channels : {3, 24}) {
    const Options options{.residual = true, .relu = true};
    const Inputs whole(DType::f32, {120, channels}, 21);
    const Results expected = reference(whole, options);
    for (const auto& rows : splits)
      for_each_variant(kernel_set().batch_norm, DType::f32, [&](const Variant& variant, Stream& stream) {
        SCOPED_TRACE(std::to_string(rows.size()) + " replicas, the first with " + std::to_string(rows[0]) + " rows");
        expect_replicas_agree(variant, stream, whole, expected, options, rows);
      });
  }
}

TEST(BatchNorm, NoRowsAtAllLeaveRunningStatistics) {
  const Inputs in(DType::f32, {0, 3});
  const Results expected = reference(in, {});
  EXPECT_EQ(expected.running_mean.values(), Results(in).running_mean.values());
  for_each_variant(kernel_set().batch_norm, DType::f32, [&](const Variant& variant, Stream& stream) {
    const Results actual = run(variant, stream, in, {}, expected);
    expect_equal(actual.running_mean.values(), expected.running_mean.values());
    expect_equal(actual.running_var.values(), expected.running_var.values());
    expect_equal(actual.statistics.values(), std::vector<double>(7, 0.0));
    expect_equal(actual.sums.values(), std::vector<double>(6, 0.0));
  });
}

/// One case of tests/golden/make_batch_norm.py.
struct TorchCase {
  Inputs in{DType::f32, {24, 5}};
  Results expected{in};

  explicit TorchCase(const std::string& name) {
    const StoredTensors stored = read_golden("batch_norm");
    const auto fill = [&](const std::string& key, TypedArray& to) {
      const auto found = stored.find(key);
      if (found == stored.end()) return;
      if (found->second.dtype == "F64") {
        to = TypedArray(DType::f32, found->second.as<double>());
      } else {
        const std::vector<float> values = found->second.as<float>();
        to = TypedArray(DType::f32, std::vector<double>(values.begin(), values.end()));
      }
    };
    fill("x", in.x);
    fill("residual", in.residual);
    fill("dy", in.dy);
    fill("weight", in.weight);
    fill("bias", in.bias);
    fill("running_mean", running_mean);
    fill("running_var", running_var);
    fill(name + ".y", expected.y);
    fill(name + ".dx", expected.dx);
    fill(name + ".dresidual", expected.dresidual);
    fill(name + ".dweight", expected.dweight);
    fill(name + ".dbias", expected.dbias);
    fill(name + ".running_mean", expected.running_mean);
    fill(name + ".running_var", expected.running_var);
  }

  TypedArray running_mean = floats(5), running_var = floats(5);

  /// A training step from the first running statistics, or an evaluation with its gradients.
  template <class Variant>
  Results run(const Variant& variant, Stream& stream, Options options, bool training, float eps, float momentum) const {
    Results all(in);
    all.running_mean = running_mean;
    all.running_var = running_var;
    TypedArray workspace = floats(variant.workspace_bytes(24, 5) / sizeof(float));
    if (training) {
      variant.statistics(stream, statistics_args(in, all, workspace.data()));
      MergeArgs args = merge_args(in.shape, all.statistics, all);
      args.eps = eps;
      args.momentum = momentum;
      variant.merge(stream, args);
    } else {
      variant.from_running(stream, {.channels = 5,
                                    .running_mean = all.running_mean.as<float>(),
                                    .running_var = all.running_var.as<float>(),
                                    .eps = eps,
                                    .saved = all.saved.as<float>()});
    }
    variant.normalize(stream, normalize_args(in, options, all.saved, all.y));
    variant.backward_sums(stream, sums_args(in, options, all, all, false, workspace.data()));
    variant.backward(stream, backward_args(in, options, all, all.sums, all));
    finish(stream);
    return all;
  }

  void expect(const Results& actual, Options options, bool training) const {
    const auto expect_near = [](const TypedArray& found, const TypedArray& wanted) {
      const std::vector<double> values = wanted.values();
      expect_close(found.values(), values, [&](std::size_t i) { return 1e-5 * (1 + std::fabs(values[i])); });
    };
    expect_near(actual.y, expected.y);
    expect_near(actual.dx, expected.dx);
    if (options.residual) expect_near(actual.dresidual, expected.dresidual);
    if (options.affine) {
      expect_near(actual.dweight, expected.dweight);
      expect_near(actual.dbias, expected.dbias);
    }
    if (!training) return;
    expect_near(actual.running_mean, expected.running_mean);
    expect_near(actual.running_var, expected.running_var);
  }
};

/// The reference in the form of a variant.
constexpr Variant kReference = {
    .name = "reference",
    .statistics = [](Stream&, const StatisticsArgs& args) { reference_statistics(args); },
    .merge = [](Stream&, const MergeArgs& args) { reference_merge(args); },
    .from_running = [](Stream&, const FromRunningArgs& args) { reference_from_running(args); },
    .fold = [](Stream&, const FoldArgs& args) { reference_fold(args); },
    .normalize = [](Stream&, const NormalizeArgs& args) { reference_normalize(args); },
    .backward_sums = [](Stream&, const BackwardSumsArgs& args) { reference_backward_sums(args); },
    .backward = [](Stream&, const BackwardArgs& args) { reference_backward(args); },
    .workspace_bytes = [](std::int64_t, std::int64_t) { return std::size_t{0}; },
    .supports = nullptr,
    .computes = nullptr};

TEST(BatchNorm, MatchesPyTorch) {
  struct Case {
    const char* name;
    Options options;
    bool training;
    float eps, momentum;
  };
  for (const Case& c : {Case{"relu", {.residual = true, .relu = true}, true, 1e-5f, 0.1f},
                        Case{"plain", {.affine = false}, true, 1e-3f, 0.3f}, Case{"eval", {}, false, 1e-5f, 0.1f}}) {
    SCOPED_TRACE(c.name);
    const TorchCase torch(c.name);
    for_each_variant(kernel_set().batch_norm, DType::f32, [&](const Variant& variant, Stream& stream) {
      torch.expect(torch.run(variant, stream, c.options, c.training, c.eps, c.momentum), c.options, c.training);
      torch.expect(torch.run(kReference, stream, c.options, c.training, c.eps, c.momentum), c.options, c.training);
    });
  }
}

TEST(BatchNorm, ReferenceGradientsMatchFiniteDifferences) {
  for (const Options options : {Options{}, Options{.residual = true, .relu = true}}) {
    const Inputs in(DType::f32, {9, 4}, 81);
    const std::vector<double> dy = in.dy.values();
    const auto loss_of = [&](TypedArray Inputs::*which) {
      return [&, which](std::span<const double> at) {
        Inputs moved = in;
        moved.*which = TypedArray(DType::f32, at);
        const std::vector<double> y = reference(moved, options).y.values();
        return std::inner_product(y.begin(), y.end(), dy.begin(), 0.0);
      };
    };
    const Results all = reference(in, options);
    const double step = 1.0 / 512;
    expect_gradient(loss_of(&Inputs::x), in.x.values(), all.dx.values(), step, 1e-3);
    expect_gradient(loss_of(&Inputs::weight), in.weight.values(), all.dweight.values(), step, 1e-3);
    expect_gradient(loss_of(&Inputs::bias), in.bias.values(), all.dbias.values(), step, 1e-3);
    if (options.residual)
      expect_gradient(loss_of(&Inputs::residual), in.residual.values(), all.dresidual.values(), step, 1e-3);
  }
}

}  // namespace
}  // namespace gradring::kernels::batch_norm
