// SPDX-License-Identifier: Apache-2.0
// Trains a small network of its own on drawn spirals, on two ranks: the example of docs/cpp_api.md.
#include <gradring/gradring.h>

#include <cmath>
#include <cstdio>
#include <random>

// Images of 16 x 16 with a spiral: class 0 turns to the left, class 1 to the right.
class Spirals : public gradring::Dataset {
 public:
  Spirals(std::int64_t size, unsigned seed) : size_(size), seed_(seed) {}

  std::string name() const override { return "spirals"; }
  std::int64_t size() const override { return size_; }
  gradring::ImageShape shape() const override { return {.height = 16, .width = 16}; }
  int classes() const override { return 2; }

  int read(std::int64_t index, std::span<std::uint8_t> pixels) const override {
    std::mt19937 random(seed_ * 1000003u + static_cast<unsigned>(index));
    const int label = static_cast<int>(random() % 2);
    const double start = random() % 628 / 100.0, turn = label == 0 ? 1 : -1;
    for (double t = 0; t < 7; t += 0.05) {
      const double angle = start + turn * t;
      const int row = static_cast<int>(8 + t * std::sin(angle)), col = static_cast<int>(8 + t * std::cos(angle));
      pixels[static_cast<std::size_t>(16 * row + col)] = 255;
    }
    for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(pixel / 2 + random() % 100);
    return label;
  }

 private:
  std::int64_t size_;
  unsigned seed_;
};

int main() try {
  gradring::Model model;
  model.add("conv2d", "conv1", {{"out", 8}, {"kernel", 5}, {"padding", 2}})
      .add("relu", "relu1")
      .add("max_pool2d", "pool1", {{"kernel", 2}})
      .add("conv2d", "conv2", {{"out", "2 * in"}, {"kernel", 3}})
      .add("relu", "relu2")
      .add("flatten", "flatten")
      .add("linear", "fc", {{"out", "classes"}});

  gradring::Options options;
  options.set("nprocs", 2).set("epochs", 4).set("batch-size", 32).set("lr", 0.003);

  gradring::Observer observer;
  observer.step = [](const gradring::StepReport& step) {
    std::printf("step %ld: loss %.9g\n", static_cast<long>(step.step), step.loss);
  };
  observer.evaluation = [](const gradring::EvaluationReport& found) {
    std::printf("epoch %ld: accuracy %.4f\n", static_cast<long>(found.epoch), found.accuracy);
  };

  const Spirals train_set(2000, 1), test_set(500, 2);
  const gradring::Result result = gradring::fit(model, train_set, test_set, options, observer);
  if (result.rank != 0) return 0;  // of several processes

  const std::string weights = result.run_dir + "/spirals.safetensors";
  gradring::save_weights(result.run_dir, weights);
  const gradring::Evaluation unseen = gradring::evaluate(weights, model, Spirals(500, 3));
  std::printf("%d ranks, %.0f samples a second, checkpoint %s\n", result.ranks, result.samples_per_second,
              result.checkpoint.c_str());
  std::printf("accuracy %.4f on the test set, %.4f on unseen spirals\n", result.accuracy, unseen.accuracy);
} catch (const gradring::Error& error) {
  return gradring::report(error);
}
