// SPDX-License-Identifier: Apache-2.0
#include "nn/models/model.h"

#include <gmock/gmock.h>

#include "kernels/base/error.h"
#include "nn/layers/layer.h"

namespace gradring::nn {
namespace {

using testing::ElementsAre;

Model read(const std::string& text) { return read_model({"models/net.toml", text}, {8, 8, 3}, 10); }

/// The message without "models/net.toml:".
std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const InvalidArgument& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("models/net.toml:")) << message;
    return message.substr(message.find(':') + 1);
  }
  return "no error";
}

/// "conv1 Conv2d(3, 8, 3, stride=1, padding=1)", with what it reads if that is not the one before.
std::vector<std::string> layers_of(const Model& model) {
  std::vector<std::string> lines;
  for (const auto& [name, layer, inputs] : model.layers) {
    std::string line = name + " " + std::visit([](const auto& one) { return one.torch_module(); }, layer);
    for (const std::string& input : inputs) line += " " + input;
    lines.push_back(line);
  }
  return lines;
}

constexpr const char* kResidual = R"(
layers = [
  { conv2d = "conv1", out = "width", kernel = 3, padding = 1 },
  { relu = "relu" },
  { block = "layer1", of = "basic", repeat = 2, out = "in" },
  { block = "layer2", of = "down", out = "2 * in" },
  { max_pool2d = "pool", kernel = 2 },
  { flatten = "flatten" },
  { linear = "fc", out = "classes" },
]

[parameters]
width = 4

[blocks.basic]
parameters = ["out"]
layers = [
  { conv2d = "conv1", out = "out", kernel = 3, padding = 1 },
  { relu = "relu1" },
  { conv2d = "conv2", out = "out", kernel = 3, padding = 1 },
  { add = "add", inputs = ["conv2", "input"] },
  { relu = "relu2" },
]

[blocks.down]
parameters = ["out"]
layers = [
  { conv2d = "downsample.0", out = "out", kernel = 1, stride = 2 },
  { conv2d = "conv1", out = "out * in / in", kernel = 3, stride = 2, padding = 1, inputs = ["input"] },
  { add = "add", inputs = ["conv1", "downsample.0"] },
  { block = "last", of = "basic", out = "out" },
]
)";

TEST(ModelFile, ExpandsBlocksUnderTheirNames) {
  const Model model = read(kResidual);
  EXPECT_EQ(model.name, "net");
  EXPECT_EQ(model.classes, 10);
  EXPECT_THAT(layers_of(model),
              ElementsAre("conv1 Conv2d(3, 4, 3, stride=1, padding=1)", "relu ReLU()",
                          "layer1.0.conv1 Conv2d(4, 4, 3, stride=1, padding=1)", "layer1.0.relu1 ReLU()",
                          "layer1.0.conv2 Conv2d(4, 4, 3, stride=1, padding=1)",
                          "layer1.0.add x + residual layer1.0.conv2 relu", "layer1.0.relu2 ReLU()",
                          "layer1.1.conv1 Conv2d(4, 4, 3, stride=1, padding=1)", "layer1.1.relu1 ReLU()",
                          "layer1.1.conv2 Conv2d(4, 4, 3, stride=1, padding=1)",
                          "layer1.1.add x + residual layer1.1.conv2 layer1.0.relu2", "layer1.1.relu2 ReLU()",
                          "layer2.downsample.0 Conv2d(4, 8, 1, stride=2, padding=0)",
                          "layer2.conv1 Conv2d(4, 8, 3, stride=2, padding=1) layer1.1.relu2",
                          "layer2.add x + residual layer2.conv1 layer2.downsample.0",
                          "layer2.last.conv1 Conv2d(8, 8, 3, stride=1, padding=1)", "layer2.last.relu1 ReLU()",
                          "layer2.last.conv2 Conv2d(8, 8, 3, stride=1, padding=1)",
                          "layer2.last.add x + residual layer2.last.conv2 layer2.add", "layer2.last.relu2 ReLU()",
                          "pool MaxPool2d(2, stride=2)", "flatten Flatten()", "fc Linear(32, 10)"));
}

TEST(ModelFile, KindsOfLayersReadTheirKeys) {
  const Model model = read(R"(
[[layers]]
conv2d = "a"
out = 6
kernel = 3
stride = 2
padding = 2
[[layers]]
max_pool2d = "b"
kernel = 3
stride = 1
[[layers]]
relu = "c"
[[layers]]
flatten = "d"
[[layers]]
linear = "e"
out = "classes")");
  EXPECT_THAT(layers_of(model), ElementsAre("a Conv2d(3, 6, 3, stride=2, padding=2)", "b MaxPool2d(3, stride=1)",
                                            "c ReLU()", "d Flatten()", "e Linear(54, 10)"));
}

TEST(ModelFile, FrozenNamesParametersThatAreNotTrained) {
  const Model model = read(R"(
layers = [
  { conv2d = "conv", out = 4, kernel = 3, frozen = ["weight"] },
  { block = "two", of = "norm", repeat = 2 },
  { flatten = "flatten" },
  { linear = "fc", out = "classes", frozen = ["weight", "bias"] },
]

[blocks.norm]
layers = [{ batch_norm2d = "bn", frozen = ["bias"] }]
)");
  std::vector<std::string> frozen;
  for (const Parameter& parameter : parameters_of(model))
    if (parameter.frozen) frozen.push_back(parameter.name);
  EXPECT_THAT(frozen, ElementsAre("conv.weight", "two.0.bn.bias", "two.1.bn.bias", "fc.weight", "fc.bias"));
  EXPECT_EQ(describe_layers(model).front(), "conv: Conv2d(3, 4, 3, stride=1, padding=0) of input, weight frozen");
  EXPECT_THAT(describe_layers(model).back(), testing::EndsWith(", weight and bias frozen"));
}

TEST(Freeze, MarksAParameterOfTheModelByItsName) {
  Model model = convnet({28, 28, 1}, 10);
  freeze(model, "conv_layers.0.bias");
  EXPECT_FALSE(parameters_of(model)[0].frozen);
  EXPECT_TRUE(parameters_of(model)[1].frozen);
  EXPECT_THROW(freeze(model, "conv_layers.0"), InvalidArgument);
}

TEST(ModelFile, GivenNamesAreThoseOfTheImagesAndOfWhatIsRead) {
  const Model model = read(R"(
layers = [
  { conv2d = "a", out = "image_channels * 2", kernel = "image_height / 4" },
  { conv2d = "b", out = "in + 1", kernel = "image_width - 7" },
  { flatten = "c" },
  { linear = "d", out = "in / 7" },
  { linear = "e", out = "classes" },
])");
  EXPECT_THAT(layers_of(model),
              ElementsAre("a Conv2d(3, 6, 2, stride=1, padding=0)", "b Conv2d(6, 7, 1, stride=1, padding=0)",
                          "c Flatten()", "d Linear(343, 49)", "e Linear(49, 10)"));
}

struct BadFile {
  std::string text;
  std::string message;  ///< without the name of the file
};

/// The layers, then a head that fits them.
std::string with_head(const std::string& layers) {
  return "layers = [\n" + layers + R"(
  { flatten = "flatten" },
  { linear = "fc", out = "classes" },
])";
}

TEST(ModelFile, ErrorsOfStructureNameTheLine) {
  const BadFile cases[] = {
      {"", "1: 'layers' is missing, expected a list of layers"},
      {"layers = []", "1: 'layers' is empty, expected at least one layer"},
      {"\nlayers = 3", "2: 'layers' is 3, expected a list of layers"},
      {"layers = [", "1: invalid TOML: the file ends in a list, expected ]"},
      {"\n\nlayers = [[[", "3: invalid TOML: the file ends in a list, expected ]"},
      {"layers = [{relu = 'a'}]\nlayer = []",
       "2: 'layer' is unknown, expected one of parameters, blocks, layers."
       " Did you mean 'layers'?"},
      {"layers = [\n3]", "2: a layer is 3, expected a table such as { relu = \"relu1\" }"},
      {"layers = [\n{}]",
       "2: a layer has no kind, expected one of conv2d, batch_norm2d, relu, gelu, silu, scale, max_pool2d, "
       "avg_pool2d, global_avg_pool2d, dropout, flatten, linear, add, block."},
      {"layers = [\n{out = 3}]",
       "2: 'out' is no kind of layer, expected one of conv2d, batch_norm2d, relu, gelu, silu, scale, max_pool2d, "
       "avg_pool2d, global_avg_pool2d, dropout, flatten, linear, add, block."},
      {"layers = [{conv2 = 'a', kernel = 3}]",
       "1: 'conv2' is no kind of layer, expected one of conv2d, batch_norm2d, relu, "
       "gelu, silu, scale, max_pool2d, avg_pool2d, global_avg_pool2d, dropout, flatten, linear, add, block. Did you "
       "mean 'conv2d'?"},
      {"layers = [{conv2d = 'a', relu = 'b'}]",
       "1: a layer is both conv2d and relu, expected one kind; separate layers by },"},
      {"layers = [{relu = 3}]", "1: 'relu' is 3, expected its name in quotes"},
      {"layers = [{relu = 'a', inputs = 'b'}]", "1: a: 'inputs' is 'b', expected a list of names"},
      {"layers = [{relu = 'a', inputs = []}]", "1: a: 'inputs' is empty, expected names of layers, or input"},
      {"layers = [{relu = 'a', inputs = [\n3]}]", "2: a: 'inputs' has 3, expected names in quotes"},
      {"parameters = 3\nlayers = [{relu = 'a'}]", "1: 'parameters' is 3, expected a table"},
      {"layers = [{relu = 'a'}]\n[parameters]\nw = 1.5", "3: the parameter 'w' is 1.5, expected an integer"},
      {"layers = [{relu = 'a'}]\n[parameters]\nclasses = 3",
       "3: 'classes' has a value already, a given one or that of [parameters]: choose another name"},
      {"layers = [{relu = 'a'}]\n[parameters]\n'a-b' = 3",
       "3: 'a-b' is no name: expected letters, digits and _, not a digit first"},
      {"layers = [{relu = 'a'}]\n[blocks]\nb = 3", "3: the block 'b' is 3, expected a table [blocks.b]"},
      {"layers = [{relu = 'a'}]\n[blocks.b]\nlayers = []",
       "3: block b: 'layers' is empty, expected at least one layer"},
      {"layers = [{relu = 'a'}]\n[blocks.b]\nlayers = [3]\nparams = []",
       "4: block b: 'params' is unknown, expected one of layers, parameters."},
      {"layers = [{relu = 'a'}]\n[blocks.b]\nlayers = [3]\nparameters = ['repeat']",
       "4: 'repeat' is a key of each use of a block: choose another name"},
      {"layers = [{relu = '\xff'}]", "1: invalid TOML: a character is not UTF-8"},
      {std::string("\0\1\2", 3), "1: invalid TOML: "},
  };
  for (const BadFile& bad : cases) EXPECT_THAT(error_of(bad.text), testing::StartsWith(bad.message)) << bad.text;
}

TEST(ModelFile, ErrorsOfLayersNameTheirLineAndWhatIsAccepted) {
  const BadFile cases[] = {
      {"{ conv2d = 'a', out = 4 },",
       "2: a: 'kernel' is missing, expected an integer, or an expression such as "
       "\"2 * width\""},
      {"{ conv2d = 'a', out = 4, kernel = 3, pading = 1 },",
       "2: a: 'pading' is unknown, expected one of conv2d, inputs, out, kernel, stride, padding, groups, bias, init, "
       "frozen. Did you mean 'padding'?"},
      {"{ relu = 'a', out = 3 },", "2: a: 'out' is unknown, expected one of relu, inputs."},
      {"{ conv2d = 'a', out = 0, kernel = 3 },", "2: a: 'out' is 0, expected 1 or more"},
      {"{ conv2d = 'a', out = -4, kernel = 3 },", "2: a: 'out' is -4, expected 1 or more"},
      {"{ conv2d = 'a', out = 2147483648, kernel = 3 },", "2: a: 'out' is 2147483648, expected 1 to 2147483647"},
      {"{ conv2d = 'a', out = 4, kernel = 3, padding = -1 },", "2: a: 'padding' is -1, expected 0 or more"},
      {"{ conv2d = 'a', out = 4, kernel = 3, stride = 0 },", "2: a: 'stride' is 0, expected 1 or more"},
      {"{ conv2d = 'a', out = nan, kernel = 3 },", "2: a: 'out' is nan, expected an integer, or"},
      {"{ conv2d = 'a', out = 4.0, kernel = 3 },", "2: a: 'out' is 4.0, expected an integer, or"},
      {"{ conv2d = 'a', out = true, kernel = 3 },", "2: a: 'out' is true, expected an integer, or an expression"},
      {"{ conv2d = 'a', out = [4], kernel = 3 },", "2: a: 'out' is a list, expected an integer, or an expression"},
      {"{ conv2d = 'a', out = 'clases', kernel = 3 },",
       "2: a: 'out' = 'clases': 'clases' has no value, expected one of classes, image_channels, image_height, "
       "image_width, in. Did you mean 'classes'?"},
      {"{ conv2d = 'a', out = '7 / 2', kernel = 3 },", "2: a: 'out' = '7 / 2': 7 / 2 leaves a remainder"},
      {"{ dropout = 'a', p = 1 },", "2: a: 'p' is 1, expected a number from 0 to 0.999"},
      {"{ batch_norm2d = 'a', eps = 0.0 },", "2: a: 'eps' is 0.0, expected a number from 1e-30 to 1"},
      {"{ dropout = 'a', p = -0.5 },", "2: a: 'p' is -0.5, expected a number from 0 to 0.999"},
      {"{ max_pool2d = 'a', kernel = 17 },",
       "2: a reads input: max_pool2d has windows of at most 16 x 16, but 'kernel' is 17"},
      {"{ conv2d = 'a', out = 2147483647, kernel = 2147483647 },",
       "2: a reads input: conv2d has input [n, 8, 8, 3], "
       "expected an image of at least 2147483647 x 2147483647 for windows of 2147483647 x 2147483647"},
      {"{ conv2d = 'a', out = 2147483647, kernel = 2147483647, padding = 2147483647 },",
       "2: a reads input: a shape has too many elements: expected fewer than 2^63"},
      {"{ conv2d = 'a', out = 2147483647, kernel = 8 },\n{ conv2d = 'b', out = 2147483647, kernel = 1 },",
       "3: b has a weight of 4611686014132420609 elements, expected at most 1099511627776"},
      {"{ conv2d = 'a', out = 4, kernel = 9 },",
       "2: a reads input: conv2d has input [n, 8, 8, 3], expected an image of at least 9 x 9 for windows of 9 x 9"},
      {"{ flatten = 'a' },\n{ conv2d = 'b', out = 4, kernel = 1 },",
       "3: b reads a: conv2d has input [n, 192], expected [n, h, w, c]"},
      {"{ linear = 'a', out = 4 },", "2: a reads input: linear has input [n, 8, 8, 3], expected [n, features]"},
      {"{ conv2d = 'a', out = 4, kernel = 3 },\n{ add = 'b', inputs = ['a', 'input'] },",
       "3: b reads [n, 6, 6, 4] (a) and [n, 8, 8, 3] (input), expected equal shapes"},
      // Their order is [h, w, c] here, and [c, h, w] in PyTorch and ONNX.
      {"{ flatten = 'f' },\n{ linear = 'a', out = 'in' },\n{ add = 'b', inputs = ['f', 'a'] },",
       "4: b reads [n, 192] (f) and [n, 192] (a), expected equal shapes before flatten, too"},
      {"{ add = 'a' },", "2: a has 1 input, expected 2 for add: add inputs = [\"NAME\", \"NAME\"]"},
      {"{ relu = 'a', inputs = ['input', 'input'] },", "2: a has 2 inputs, expected 1 for relu"},
      {"{ relu = 'a', inputs = ['b'] },\n{ relu = 'b' },",
       "2: a: 'inputs' has 'b', expected input, or the name of a layer before this one in the same list."},
      {"{ relu = 'relu1' },\n{ relu = 'b', inputs = ['rleu1'] },",
       "3: b: 'inputs' has 'rleu1', expected input, or the name of a layer before this one in the same list. Did you "
       "mean "
       "'relu1'?"},
      {"{ relu = 'a', inputs = ['a'] },", "2: a: 'inputs' has 'a', expected input"},
      {"{ relu = 'a' },\n{ relu = 'b', inputs = ['input'] },",
       "2: the output of a, [n, 8, 8, 3], is unused, expected a layer that reads it"},
      {"{ relu = 'a' },\n{ relu = 'a' },", "3: the name 'a' is used twice"},
      {"{ relu = 'images' },", "2: the name 'images' is reserved"},
      {"{ relu = 'logits' },", "2: the name 'logits' is reserved"},
      {"{ relu = 'input' },", "2: the name 'input' is reserved"},
      {"{ relu = 'preprocessing.cast' },", "2: the name 'preprocessing.cast' is reserved"},
      {"{ relu = 'module' },", "2: the name 'module' is reserved: PyTorch's wrappers insert 'module' into names"},
      {"{ relu = 'a._orig_mod.b' },", "2: the name 'a._orig_mod.b' is reserved: PyTorch's wrappers"},
      {"{ relu = '' },", "2: 'relu' is '', expected a name: letters, digits and _, with dots between"},
      {"{ relu = '.a' },", "2: 'relu' is '.a', expected a name: letters, digits and _, with dots between"},
      {"{ relu = 'a..b' },", "2: 'relu' is 'a..b', expected a name: letters, digits and _, with dots between"},
      {"{ relu = 'a/b' },", "2: 'relu' is 'a/b', expected a name: letters, digits and _, with dots between"},
      {"{ relu = \"a\\u0000\" },", "2: 'relu' is 'a\\x00', expected a name: letters, digits and _, with dots between"},
      {"{ relu = 'é' },", "2: 'relu' is 'é', expected a name: letters, digits and _, with dots between"},
      {"{ relu = '" + std::string(201, 'a') + "' },", "2: the name 'aaaa"},
      {"{ conv2d = 'a', out = 4, kernel = 1 },\n{ relu = 'a.weight' },",
       "3: the name 'a.weight' is that of a tensor of another layer"},
      {"{ linear = 'a', out = 4, bias = false, frozen = ['bias'] },", "2: a reads input: linear has input"},
      {"{ conv2d = 'a', out = 4, kernel = 3, bias = false, frozen = ['bias'] },",
       "2: frozen has 'bias', expected parameters of a: weight."},
      {"{ batch_norm2d = 'a', frozen = ['weigth'] },",
       "2: frozen has 'weigth', expected parameters of a: weight, bias. Did you mean 'weight'?"},
      {"{ batch_norm2d = 'a', frozen = true },", "2: a: 'frozen' is true, expected a list of names"},
      {"{ relu = 'a', frozen = ['weight'] },", "2: a: 'frozen' is unknown, expected one of relu, inputs."},
      {"{ block = 'a', of = 'b' },", "2: a: there is no block 'b', expected one of [blocks.NAME]"},
      {"{ block = 'a' },", "2: a: 'of' is missing, expected the name of a block in quotes"},
  };
  for (const BadFile& bad : cases)
    EXPECT_THAT(error_of(with_head(bad.text)), testing::StartsWith(bad.message)) << bad.text;
}

TEST(ModelFile, ErrorsOfTheWholeModelNameTheLastLayer) {
  const BadFile cases[] = {
      {"layers = [{ relu = 'a' }]", "1: the last layer, a, gives [n, 8, 8, 3], expected [n, classes]: [n, 10]"},
      {"layers = [{ flatten = 'f' },\n{ linear = 'a', out = 9 }]",
       "2: the last layer, a, gives [n, 9], expected [n, classes]: [n, 10]"},
  };
  for (const BadFile& bad : cases) EXPECT_EQ(error_of(bad.text), bad.message) << bad.text;
  try {
    read_model({"f.toml", "layers = [{ conv2d = 'a', out = 5, kernel = 1 },\n{ flatten = 'f' }]"}, {1, 2, 1}, 10);
    ADD_FAILURE() << "logits in another order than PyTorch's";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(),
                 "f.toml:2: the last layer, f, gives a flattened image as logits, expected a linear layer or "
                 "global_avg_pool2d");
  }
  try {
    read_model({"f.toml", "layers = [{ flatten = 'f' }]"}, {1, 2, 5}, 10);
    ADD_FAILURE() << "a model without parameters";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "f.toml:1: the model has no parameters, expected a layer with weights");
  }
}

TEST(ModelFile, ErrorsOfBlocksNameTheLine) {
  const std::string block =
      "\n[blocks.b]\nparameters = ['out']\nlayers = [{ conv2d = 'conv', out = 'out', kernel = 3 }]";
  const BadFile cases[] = {
      {"{ block = 'a', of = 'c', out = 3 },", "2: a: there is no block 'c', expected one of b."},
      {"{ block = 'a', of = 'b' },", "2: a: 'out' is missing, expected an integer"},
      {"{ block = 'a', of = 'b', out = 3, kernel = 3 },",
       "2: a: 'kernel' is unknown, expected one of block, inputs, of, repeat, out."},
      {"{ block = 'a', of = 'b', out = 3, repeat = 0 },", "2: a: 'repeat' is 0, expected 1 to 1024"},
      {"{ block = 'a', of = 'b', out = 3, repeat = 1025 },", "2: a: 'repeat' is 1025, expected 1 to 1024"},
      {"{ block = 'a', of = 'b', out = 3, repeat = 4 },",
       "8: a.3.conv reads a.2.conv: conv2d has input [n, 2, 2, 3], expected an image of at least 3 x 3 for windows of "
       "3 x 3"},
      {"{ block = 'a', of = 'b', out = -1 },", "8: a.conv: 'out' = 'out' is -1, expected 1 or more"},
      {"{ block = 'a', of = 'b', out = 3, inputs = ['input', 'input'] },", "2: a: a block reads one input, found 2"},
      {"{ block = 'a.conv', of = 'b', out = 3 },\n{ block = 'a', of = 'b', out = 3 },\n{ relu = 'a.conv.conv' },",
       "4: the name 'a.conv.conv' is used twice"},
  };
  for (const BadFile& bad : cases)
    EXPECT_THAT(error_of(with_head(bad.text) + block), testing::StartsWith(bad.message)) << bad.text;
}

TEST(ModelFile, RejectsBlocksThatContainThemselvesAndEndlessOnes) {
  const std::string use = "layers = [{ block = 'x', of = 'a' }]\n";
  EXPECT_EQ(error_of(use + "[blocks.a]\nlayers = [{ block = 'y', of = 'a' }]"),
            "3: the block 'a' contains itself: a, a");
  EXPECT_EQ(error_of(use + "[blocks.a]\nlayers = [{ block = 'y', of = 'b' }]\n[blocks.b]\n"
                           "layers = [\n{ block = 'z', of = 'a' }]"),
            "6: the block 'a' contains itself: a, b, a");
  std::string doubling = "layers = [{ block = 'x', of = 'b0' }]\n";  // 2^30 layers
  for (int i = 0; i < 30; ++i)
    doubling += "[blocks.b" + std::to_string(i) + "]\nlayers = [{ block = 'x', of = 'b" + std::to_string(i + 1) +
                "', repeat = 2 }]\n";
  EXPECT_EQ(error_of(doubling + "[blocks.b30]\nlayers = [{ relu = 'r' }]"), "63: more than 1024 layers");
  std::string deep = "layers = [{ block = 'x', of = 'b0' }]\n";
  for (int i = 0; i < 40; ++i)
    deep += "[blocks.b" + std::to_string(i) + "]\nlayers = [{ block = 'x', of = 'b" + std::to_string(i + 1) + "' }]\n";
  EXPECT_THAT(error_of(deep + "[blocks.b40]\nlayers = [{ relu = 'r' }]"),
              testing::EndsWith("more than 32 nested blocks"));
}

TEST(ModelFile, ManyLayersAreReadQuickly) {
  std::string text = "layers = [\n";
  for (int i = 0; i < 1000; ++i) text += "{ relu = 'relu" + std::to_string(i) + "' },\n";
  EXPECT_EQ(read(text + "{ flatten = 'flatten' },\n{ linear = 'fc', out = 'classes' }]").layers.size(), 1002u);
}

}  // namespace
}  // namespace gradring::nn
