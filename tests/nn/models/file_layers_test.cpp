// SPDX-License-Identifier: Apache-2.0
// What a file says before sizes are known: nn/models/file_layers.h.
#include <gmock/gmock.h>

#include <utility>

#include "kernels/base/error.h"
#include "nn/models/model.h"

namespace gradring::nn {
namespace {

Model read_file(const std::string& text) { return read_model({"net.toml", text}, {8, 8, 3}, 10); }

/// The message without "net.toml:".
std::string file_error(const std::string& text) {
  try {
    read_file(text);
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("net.toml:")) << message;
    return message.substr(message.find(':') + 1);
  }
  return "no error";
}

TEST(FileLayers, OfBlocksThatNothingUsesAreChecked) {
  const std::string model =
      "layers = [{ flatten = 'f' }, { linear = 'fc', out = 'classes' }]\n[blocks.b]\nparameters = ['n']\nlayers = [\n";
  const std::pair<std::string, std::string> cases[] = {
      {"{ conv2 = 'x' }]", "5: 'conv2' is no kind of layer"},
      {"{ conv2d = 'x', out = 'n', kernal = 3 }]", "5: x: 'kernal' is unknown. Did you mean 'kernel'?"},
      {"{ conv2d = 'x', out = 'n', kernel = 1.5 }]", "5: x: 'kernel' is 1.5, expected an integer"},
      {"{ linear = 'x', out = 'n', bias = 1 }]", "5: x: 'bias' is 1, expected true or false"},
      {"{ conv2d = 'x', out = 'n', kernel = 1, init = 'whiten' }]", "5: x: 'init' is 'whiten', expected one of"},
      {"{ batch_norm2d = 'x', frozen = ['bias', 'bias'] }]", "5: x: 'frozen' has 'bias' twice"},
      {"{ add = 'x', inputs = ['input', 'y'] }]", "5: x: 'inputs' has 'y', expected input"},
      {"{ relu = 'x' },\n{ relu = 'x' }]", "6: the name 'x' is used twice"},
      {"{ block = 'x', of = 'c' }]", "5: x: there is no block 'c', expected one of b."},
      {"{ block = 'x', of = 'b' }]", "5: x: 'n' is missing, expected an integer"},
  };
  for (const auto& [layers, message] : cases)
    EXPECT_THAT(file_error(model + layers), testing::StartsWith(message)) << layers;
  // What depends on sizes is not known: 'kernel' may be 4, and 'padding' 2.
  EXPECT_NO_THROW(read_file(model + "{ max_pool2d = 'x', kernel = 'n', padding = 2 }]"));
  EXPECT_NO_THROW(read_file(model + "{ conv2d = 'x', out = 'n', kernel = 4, groups = 8, init = 'whitening' }]"));
  EXPECT_NO_THROW(read_file(model + "{ flatten = 'x' },\n{ linear = 'y', out = 'n', frozen = ['weight'] }]"));
}

TEST(FileLayers, SuggestTheKindThatPyTorchCallsSo) {
  const std::pair<std::string, std::string> cases[] = {{"Conv2d", "conv2d"},
                                                       {"conv", "conv2d"},
                                                       {"conv1", "conv2d"},
                                                       {"BatchNorm2d", "batch_norm2d"},
                                                       {"bn2", "batch_norm2d"},
                                                       {"ReLU", "relu"},
                                                       {"GELU", "gelu"},
                                                       {"AdaptiveAvgPool2d", "global_avg_pool2d"},
                                                       {"pool", "max_pool2d"},
                                                       {"SiLU", "silu"},
                                                       {"Linear", "linear"},
                                                       {"avgpool", "global_avg_pool2d"},
                                                       {"AvgPool2d", "avg_pool2d"},
                                                       {"fc", "linear"},
                                                       {"dropout2", "dropout"}};
  for (const auto& [torch, kind] : cases)
    EXPECT_THAT(file_error("layers = [{ out = 8, " + torch + " = 'a' }]"),
                testing::AllOf(testing::StartsWith("1: '" + torch + "' is no kind of layer"),
                               testing::EndsWith(" Did you mean '" + kind + "'?")));
  EXPECT_THAT(file_error("layers = [{ sequential = 'a', out = 8 }]"),
              testing::AllOf(testing::StartsWith("1: 'sequential' is no kind"), testing::EndsWith("add, block.")));
}

TEST(FileLayers, MessagesAreShortAndPrintable) {
  const std::string many(100'000, 'x');
  const std::string cases[] = {"layers = [{ relu = '" + many + "' }]",
                               "layers = [{ " + many + " = 1 }]",
                               "layers = [{ relu = 'a' }]\n" + many + " = 3",
                               "layers = [{ relu = 'a', inputs = ['" + many + "'] }]",
                               "layers = [{ linear = 'a', out = '" + many + "' }]",
                               "layers = [{ relu = 'a' }]\n[parameters]\n" + many + " = 3",
                               "layers = [{ relu = 'a' }]\n[blocks." + many + "]\nlayers = []",
                               "layers = [{ relu = \"a\\u202eb\\n\" }]"};
  for (const std::string& text : cases) {
    const std::string message = file_error(text);
    EXPECT_LT(message.size(), 1100u) << message;
    EXPECT_NE(message, "no error");
    EXPECT_EQ(message.find_first_of("\n\u202e"), std::string::npos) << message;
  }
  std::string names;
  for (int i = 0; i < 200; ++i) names += "[blocks.block_" + std::to_string(i) + "]\nlayers = [{ relu = 'a' }]\n";
  EXPECT_THAT(file_error("layers = [{ block = 'a', of = 'c' }]\n" + names), testing::EndsWith("..."));
}

}  // namespace
}  // namespace gradring::nn
