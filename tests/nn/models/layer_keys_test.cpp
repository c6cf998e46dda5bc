// SPDX-License-Identifier: Apache-2.0
// Keys of single layers in model files.
#include "nn/layers/layer_keys.h"

#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "nn/models/model.h"

namespace gradring::nn {
namespace {

/// The model of these layers, from line 2 on, and a head that fits them.
Model read_layers(const std::string& layers) {
  const std::string head = "{ flatten = 'flatten' }, { linear = 'fc', out = 'classes' }]";
  return read_model({"net.toml", "layers = [\n" + layers + "\n" + head}, {8, 8, 3}, 10);
}

/// The message without "net.toml:".
std::string message_of(const std::string& layers) {
  try {
    read_layers(layers);
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    return message.substr(message.find(':') + 1);
  }
  return "no error";
}

TEST(LayerKeys, ScaleMultipliesByAFactorAndDivides) {
  const auto factor_of = [](const std::string& keys) {
    return std::get<Scale>(read_layers("{ scale = 'a', " + keys + " },").layers[0].layer).factor;
  };
  EXPECT_EQ(factor_of("factor = -1.5"), -1.5f);
  EXPECT_EQ(factor_of("divisor = '2 * 128'"), 0.00390625f);
  EXPECT_EQ(factor_of("factor = 3, divisor = 8"), 0.375f);
  EXPECT_EQ(message_of("{ scale = 'a', divisor = 0 },"), "2: a: 'divisor' is 0, expected 1 or more");
}

TEST(LayerKeys, InitIsAmongThoseOfTheLayer) {
  const std::vector<Parameter> parameters = parameters_of(read_layers(R"(
  { conv2d = "a", out = 24, kernel = 2, init = "whitening" },
  { conv2d = "b", out = 30, kernel = 3, init = "dirac" },)"));
  EXPECT_EQ(parameters[0].init, Init::whitening);
  EXPECT_EQ(parameters[1].init, Init::standard) << "the bias";
  EXPECT_EQ(parameters[2].init, Init::dirac);
}

TEST(LayerKeys, RejectInitialWeightsThatTheLayerCannotHave) {
  EXPECT_EQ(
      message_of("{ conv2d = 'a', out = 4, kernel = 1, init = 'dirca' },"),
      "2: a: 'init' is 'dirca', expected one of standard, dirac, unit_variance, whitening. Did you mean 'dirac'?");
  EXPECT_EQ(message_of("{ flatten = 'f' },\n{ linear = 'a', out = 4, init = 'dirac' },"),
            "3: a: 'init' is 'dirac', expected one of standard, unit_variance.");
  EXPECT_EQ(message_of("{ conv2d = 'a', out = 4, kernel = 1, init = 3 },"), "2: a: 'init' is 3, expected a string");
  EXPECT_EQ(message_of("{ conv2d = 'a', out = 6, kernel = 1, groups = 3, init = 'dirac' },"),
            "2: a reads input: the initial weights are not for 3 groups, expected 1");
  EXPECT_EQ(message_of("{ conv2d = 'a', out = 16, kernel = 2, init = 'whitening' },"),
            "2: a reads input: whitening has 2 * kernel * kernel * in = 24 filters, but 'out' is 16");
  EXPECT_EQ(message_of("{ conv2d = 'a', out = 16, kernel = 5, init = 'whitening' },"),
            "2: a reads input: whitening has kernels of at most 4, but 'kernel' is 5");
  EXPECT_EQ(message_of("{ relu = 'r' },\n{ conv2d = 'a', out = 6, kernel = 1, init = 'whitening' },"),
            "3: a: 'init' is 'whitening', which is of images, but it reads r, expected input");
}

}  // namespace
}  // namespace gradring::nn
