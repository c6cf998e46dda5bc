// SPDX-License-Identifier: Apache-2.0
#include "tests/data/support/linear_model.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/loader/normalize.h"
#include "data/loader/sampler.h"

namespace gradring::tests {
namespace {

/// Pixels as floats, each sample followed by a constant 1 for the bias.
struct Samples {
  explicit Samples(const data::Dataset& dataset)
      : width(static_cast<std::size_t>(dataset.shape().elements()) + 1),
        labels(static_cast<std::size_t>(dataset.size())) {
    x.resize(labels.size() * width, 1.0f);
    const data::Normalize normalize;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const data::Sample sample = dataset.get(static_cast<std::int64_t>(i));
      normalize.apply(sample.pixels, {x.data() + i * width, width - 1});
      labels[i] = static_cast<std::size_t>(sample.label);
    }
  }

  std::size_t width;
  std::vector<float> x;
  std::vector<std::size_t> labels;
};

class LinearModel {
 public:
  LinearModel(std::size_t classes, std::size_t width) : width_(width), w_(classes * width), y_(classes) {}

  /// The class with the largest score; the scores stay in y_.
  std::size_t predict(const float* x) {
    for (std::size_t c = 0; c < y_.size(); ++c) {
      float sum = 0;
      for (std::size_t j = 0; j < width_; ++j) sum += w_[c * width_ + j] * x[j];
      y_[c] = sum;
    }
    return static_cast<std::size_t>(std::max_element(y_.begin(), y_.end()) - y_.begin());
  }

  void learn(const float* x, std::size_t label, float rate) {
    const float largest = y_[predict(x)];
    float sum = 0;
    for (float& score : y_) sum += score = std::exp(score - largest);
    for (std::size_t c = 0; c < y_.size(); ++c) {
      const float step = rate * (y_[c] / sum - (c == label ? 1.0f : 0.0f));
      for (std::size_t j = 0; j < width_; ++j) w_[c * width_ + j] -= step * x[j];
    }
  }

 private:
  std::size_t width_;
  std::vector<float> w_, y_;
};

double accuracy(LinearModel& model, const Samples& samples) {
  std::size_t right = 0;
  for (std::size_t i = 0; i < samples.labels.size(); ++i)
    right += model.predict(&samples.x[i * samples.width]) == samples.labels[i];
  return static_cast<double>(right) / static_cast<double>(samples.labels.size());
}

}  // namespace

double best_linear_accuracy(const data::Dataset& train, const data::Dataset& test, const LinearSpec& spec) {
  const Samples train_samples(train), test_samples(test);
  LinearModel model(static_cast<std::size_t>(train.classes()), train_samples.width);
  double best = 0;
  int best_epoch = 0;
  for (int epoch = 0; epoch < spec.most_epochs && epoch - best_epoch < spec.patience; ++epoch) {
    const float rate = spec.learning_rate / (1.0f + 0.25f * static_cast<float>(epoch));
    for (std::int64_t index : data::torch_permutation(train.size(), spec.seed + static_cast<std::uint64_t>(epoch))) {
      const auto i = static_cast<std::size_t>(index);
      model.learn(&train_samples.x[i * train_samples.width], train_samples.labels[i], rate);
    }
    if (const double now = accuracy(model, test_samples); now > best) {
      best = now;
      best_epoch = epoch;
    }
  }
  return best;
}

}  // namespace gradring::tests
