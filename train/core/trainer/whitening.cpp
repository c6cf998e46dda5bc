// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/whitening.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/base/error.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

/// A square matrix.
class Matrix {
 public:
  explicit Matrix(std::size_t n) : n_(n), values_(n * n) {}
  Matrix(std::span<const double> values, std::size_t n) : n_(n), values_(values.begin(), values.end()) {}

  double& operator()(std::size_t row, std::size_t col) { return values_[row * n_ + col]; }
  std::span<double> row(std::size_t row) { return std::span(values_).subspan(row * n_, n_); }
  std::span<const double> values() const { return values_; }

 private:
  std::size_t n_;
  std::vector<double> values_;
};

/// A rotation of the plane of coordinates p and q.
struct Rotation {
  double c, s;

  /// That which makes a(p, q) of a symmetric matrix 0, by the smaller angle.
  Rotation(Matrix& a, std::size_t p, std::size_t q) {
    const double theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
    const double t = (theta < 0 ? -1 : 1) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
    c = 1 / std::sqrt(t * t + 1);
    s = t * c;
  }
  void apply(double& x, double& y) const {
    const double old = x;
    x = c * old - s * y;
    y = s * old + c * y;
  }
};

/// One rotation for each element above the diagonal; the rows of `v` turn along. Returns whether there was any.
bool sweep(Matrix& a, Matrix& v, std::size_t n) {
  bool rotated = false;
  for (std::size_t p = 0; p + 1 < n; ++p)
    for (std::size_t q = p + 1; q < n; ++q) {
      // Too small to change its diagonal elements.
      if (std::fabs(a(p, q)) <= 1e-17 * std::sqrt(std::fabs(a(p, p)) * std::fabs(a(q, q)))) continue;
      const Rotation rotation(a, p, q);
      for (std::size_t i = 0; i < n; ++i) rotation.apply(a(i, p), a(i, q));
      for (std::size_t i = 0; i < n; ++i) rotation.apply(a(p, i), a(q, i));
      for (std::size_t i = 0; i < n; ++i) rotation.apply(v(p, i), v(q, i));
      rotated = true;
    }
  return rotated;
}

/// Adds p p^T for each patch p of an image, [channels, kernel, kernel] as in PyTorch; the upper triangle.
void add_patches(std::span<const float> image, const kernels::Shape& shape, std::int64_t kernel, Matrix& sums) {
  const auto at = [&](std::int64_t y, std::int64_t x, std::int64_t c) {
    return double{image[static_cast<std::size_t>((y * shape[1] + x) * shape[2] + c)]};
  };
  std::vector<double> patch(static_cast<std::size_t>(kernel * kernel * shape[2]));
  for (std::int64_t y = 0; y + kernel <= shape[0]; ++y)
    for (std::int64_t x = 0; x + kernel <= shape[1]; ++x) {
      auto next = patch.begin();
      for (std::int64_t c = 0; c < shape[2]; ++c)
        for (std::int64_t i = 0; i < kernel; ++i)
          for (std::int64_t j = 0; j < kernel; ++j) *next++ = at(y + i, x + j, c);
      for (std::size_t row = 0; row < patch.size(); ++row) {
        const std::span<double> to = sums.row(row);
        for (std::size_t col = row; col < patch.size(); ++col) to[col] += patch[row] * patch[col];
      }
    }
}

}  // namespace

Eigen eigen_of_symmetric(std::span<const double> matrix, std::size_t n) {
  check(matrix.size() == n * n, "the matrix is not square");
  Matrix a(matrix, n), v(n);
  for (std::size_t i = 0; i < n; ++i) v(i, i) = 1;
  constexpr int kMostSweeps = 60;  // about 8 are enough
  for (int i = 0; i < kMostSweeps && sweep(a, v, n); ++i) {
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return a(i, i); });
  Eigen eigen;
  for (const std::size_t i : order) {
    eigen.values.push_back(a(i, i));
    const std::span<double> vector = v.row(i);
    const double largest = *std::ranges::max_element(vector, {}, [](double x) { return std::fabs(x); });
    for (const double x : vector) eigen.vectors.push_back(largest < 0 ? -x : x);
  }
  return eigen;
}

std::vector<float> whitening_filters(const data::Dataset& images, const data::NormalizeSpec& normalize,
                                     const WhiteningSpec& spec) {
  const kernels::Shape shape = images.shape();
  check(shape[0] >= spec.kernel && shape[1] >= spec.kernel && images.size() > 0, "there are no patches to whiten");
  const data::Normalize normalized(normalize, shape[2]);
  const auto n = static_cast<std::size_t>(spec.kernel * spec.kernel * shape[2]);
  const std::int64_t count = std::min(spec.most_images, images.size());
  Matrix sums(n);
  std::vector<float> image(static_cast<std::size_t>(shape.elements()));
  for (std::int64_t i = 0; i < count; ++i) {
    normalized.apply(images.pixels(i), image);
    add_patches(image, shape, spec.kernel, sums);
  }
  const auto patches = static_cast<double>(count * (shape[0] - spec.kernel + 1) * (shape[1] - spec.kernel + 1));
  for (std::size_t row = 0; row < n; ++row)
    for (std::size_t col = row; col < n; ++col) sums(col, row) = sums(row, col) /= patches;
  const Eigen eigen = eigen_of_symmetric(sums.values(), n);
  if (spec.kernel > 1 && eigen.values[n - 2] <= 1e-12 * eigen.values.back())
    throw UsageError(fmt::format(
        "init = 'whitening' needs patches that differ, but those of {} x {} pixels in the first {} training "
        "images are all of one colour: use images, or another init",
        spec.kernel, spec.kernel, count));
  std::vector<float> filters;
  for (const double sign : {1.0, -1.0})
    for (std::size_t i = 0; i < n * n; ++i)
      filters.push_back(static_cast<float>(sign * eigen.vectors[i] / std::sqrt(eigen.values[i / n] + spec.eps)));
  return filters;
}

std::map<std::size_t, std::vector<float>> whitened_parameters(std::span<const nn::Parameter> parameters,
                                                              const data::Dataset& images,
                                                              const data::NormalizeSpec& normalize) {
  std::map<std::size_t, std::vector<float>> whitened;
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].init == nn::Init::whitening)
      whitened[i] = whitening_filters(images, normalize, {.kernel = parameters[i].torch_shape[2]});
  return whitened;
}

}  // namespace gradring::train
