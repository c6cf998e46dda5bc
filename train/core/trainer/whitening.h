// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/loader/normalize.h"
#include "nn/layers/parameter.h"

namespace gradring::train {

/// Eigenvalues of a symmetric matrix in ascending order, and the eigenvector of each: of length 1, its component of largest
/// magnitude positive.
struct Eigen {
  std::vector<double> values;
  std::vector<double> vectors;  ///< one after another
};

/// `matrix`: [n, n], symmetric.
///
/// Algorithm  rotations of Jacobi, row by row, until nothing is left beside the diagonal.
/// Cost       about 50 n^3 multiplications.
/// Source     Golub and Van Loan, "Matrix Computations", 4th edition, 8.5.
Eigen eigen_of_symmetric(std::span<const double> matrix, std::size_t n);

struct WhiteningSpec {
  std::int64_t kernel = 0;
  std::int64_t most_images = 5000;  ///< the first ones of the data set
  double eps = 5e-4;                ///< added to eigenvalues
};

/// Filters of a convolution whose outputs, on the patches of these images, are uncorrelated and of one size: for each
/// eigenvector v of E[p p^T] over all patches p, in the order of eigenvalues l, v / sqrt(l + eps); then their negatives.
///
/// Returns   [2 * kernel^2 * channels, channels, kernel, kernel].
/// Errors    UsageError if all patches are multiples of one, as those of images of one colour.
/// Numerics  in f64; the same bits on the same program and machine.
/// Cost      images * patches * (kernel^2 * channels)^2 / 2 multiplications.
/// Source    Keller Jordan, airbench94_muon.py (2025), init_whiten; after tysam-code/hlb-CIFAR10 (2023).
/// Example   tests/train/core/trainer/whitening_test.cpp
std::vector<float> whitening_filters(const data::Dataset& images, const data::NormalizeSpec& normalize,
                                     const WhiteningSpec& spec);

/// The first values of those parameters that whiten the images of a training (nn::Init::whitening), by their numbers.
std::map<std::size_t, std::vector<float>> whitened_parameters(std::span<const nn::Parameter> parameters,
                                                              const data::Dataset& images,
                                                              const data::NormalizeSpec& normalize);

}  // namespace gradring::train
