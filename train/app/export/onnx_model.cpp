// SPDX-License-Identifier: Apache-2.0
#include "train/app/export/exported_model.h"

#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "data/files/protobuf_writer.h"
#include "train/core/trainer/parameter_tensors.h"

namespace gradring::train {
namespace {

using Message = data::ProtobufWriter;
using Names = std::vector<std::string>;

// The numbers of onnx.proto, by message.
namespace proto {
// clang-format off
namespace model {
enum : std::uint32_t {
  ir_version = 1, producer_name = 2, producer_version = 3, graph = 7, opset_import = 8, metadata_props = 14
};
}
namespace entry { enum : std::uint32_t { key = 1, value = 2 }; }
namespace opset { enum : std::uint32_t { domain = 1, version = 2 }; }
namespace graph { enum : std::uint32_t { node = 1, name = 2, initializer = 5, input = 11, output = 12 }; }
namespace node { enum : std::uint32_t { input = 1, output = 2, name = 3, op_type = 4, attribute = 5 }; }
namespace attribute { enum : std::uint32_t { name = 1, f = 2, i = 3, ints = 8, type = 20 }; }
namespace tensor { enum : std::uint32_t { dims = 1, data_type = 2, name = 8, raw_data = 9 }; }
namespace value_info { enum : std::uint32_t { name = 1, type = 2 }; }
namespace type {
enum : std::uint32_t { tensor_type = 1, elem_type = 1, shape = 2, dim = 1, dim_value = 1, dim_param = 2 };
}
// clang-format on
constexpr std::int64_t kFloat = 1, kUint8 = 2;          // TensorProto.DataType
constexpr std::int64_t kReal = 1, kInt = 2, kInts = 7;  // AttributeProto.AttributeType
constexpr std::int64_t kIrVersion = 8, kOpset = 17;     // of ONNX 1.12, which introduced opset 17
}  // namespace proto

constexpr const char* kInput = "images";
constexpr const char* kOutput = "logits";
constexpr const char* kBatch = "N";

Message attribute(std::string_view name, const nn::OnnxNode::Value& value) {
  Message message;
  message.text(proto::attribute::name, name);
  if (const auto* one = std::get_if<std::int64_t>(&value))
    return message.integer(proto::attribute::i, *one).integer(proto::attribute::type, proto::kInt);
  if (const auto* one = std::get_if<float>(&value))
    return message.real(proto::attribute::f, *one).integer(proto::attribute::type, proto::kReal);
  for (const std::int64_t each : std::get<std::vector<std::int64_t>>(value))
    message.integer(proto::attribute::ints, each);
  return message.integer(proto::attribute::type, proto::kInts);
}

/// `shape` behind the number of images.
Message value_info(std::string_view name, std::int64_t element, std::span<const std::int64_t> shape) {
  Message dims, tensor, type, info;
  dims.message(proto::type::dim, Message().text(proto::type::dim_param, kBatch));
  for (const std::int64_t extent : shape)
    dims.message(proto::type::dim, Message().integer(proto::type::dim_value, extent));
  tensor.integer(proto::type::elem_type, element).message(proto::type::shape, dims);
  type.message(proto::type::tensor_type, tensor);
  return info.text(proto::value_info::name, name).message(proto::value_info::type, type);
}

/// Appends nodes, each of which takes the output of the one before.
class GraphBuilder {
 public:
  explicit GraphBuilder(std::string_view name) { graph_.text(proto::graph::name, name); }

  void constant(const std::string& name, std::span<const std::int64_t> shape, std::span<const float> values) {
    Message tensor;
    for (const std::int64_t extent : shape) tensor.integer(proto::tensor::dims, extent);
    tensor.integer(proto::tensor::data_type, proto::kFloat).text(proto::tensor::name, name);
    static_assert(std::endian::native == std::endian::little, "raw_data is little-endian");
    const auto bytes = std::as_bytes(values);
    tensor.text(proto::tensor::raw_data, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    graph_.message(proto::graph::initializer, tensor);
  }

  /// A node whose output has its name, but the graph's has that of the graph's output.
  void node(std::string_view op, const std::string& name, const Names& inputs,
            const std::vector<Message>& attributes = {}, bool last = false) {
    Message node;
    for (const std::string& input : inputs) node.text(proto::node::input, input);
    node.text(proto::node::output, last ? kOutput : name).text(proto::node::name, name).text(proto::node::op_type, op);
    for (const Message& each : attributes) node.message(proto::node::attribute, each);
    graph_.message(proto::graph::node, node);
  }

  Message& graph() { return graph_; }

 private:
  Message graph_;
};

/// The operations of data::Normalize, then [n, h, w, c] -> [n, c, h, w]. Returns the name of the result.
std::string add_preprocessing(GraphBuilder& builder, const ModelFacts& facts) {
  const std::int64_t channels[] = {std::ssize(facts.mean)};
  constexpr float kWhite[] = {255};
  builder.constant("preprocessing.white", {}, kWhite);
  builder.constant("preprocessing.mean", channels, facts.mean);
  builder.constant("preprocessing.std", channels, facts.std);
  builder.node("Cast", "preprocessing.cast", {kInput}, {attribute("to", proto::kFloat)});
  builder.node("Div", "preprocessing.scale", {"preprocessing.cast", "preprocessing.white"});
  builder.node("Sub", "preprocessing.center", {"preprocessing.scale", "preprocessing.mean"});
  builder.node("Div", "preprocessing.normalize", {"preprocessing.center", "preprocessing.std"});
  builder.node("Transpose", "preprocessing.transpose", {"preprocessing.normalize"},
               {attribute("perm", std::vector<std::int64_t>{0, 3, 1, 2})});
  return "preprocessing.transpose";
}

/// `inputs`: names of what the layer reads, of shape `input`; its parameters and buffers follow them.
void add_layer(GraphBuilder& builder, const nn::NamedLayer& layer, Names inputs, const nn::Activations& input,
               bool last) {
  std::visit(
      [&](const auto& one) {
        for (const auto& tensors : {one.parameters(input), one.buffers(input)})
          for (const nn::Parameter& tensor : tensors) inputs.push_back(layer.name + "." + tensor.name);
        const std::vector<nn::OnnxNode> nodes = one.onnx();
        const auto name_of = [&](std::size_t node) {
          return node + 1 == nodes.size() ? layer.name : layer.name + "/" + std::to_string(node);
        };
        for (std::size_t i = 0; i < nodes.size(); ++i) {
          Names operands;
          for (const nn::OnnxNode::Operand& operand : nodes[i].operands) {
            if (const auto* node = std::get_if<int>(&operand)) {
              operands.push_back(*node == nn::kLayerInput ? inputs[0] : name_of(static_cast<std::size_t>(*node)));
            } else {
              const float value[] = {std::get<float>(operand)};
              operands.push_back(layer.name + "/" + std::to_string(i) + "/" + std::to_string(operands.size()));
              builder.constant(operands.back(), {}, value);
            }
          }
          std::vector<Message> attributes;
          for (const auto& [key, value] : nodes[i].attributes) attributes.push_back(attribute(key, value));
          const bool is_output = last && i + 1 == nodes.size();
          builder.node(nodes[i].op, name_of(i), operands.empty() ? inputs : operands, attributes, is_output);
        }
      },
      layer.layer);
}

struct Tensor {
  nn::Shape shape;
  std::vector<float> values;
};
using Tensors = std::map<std::string, Tensor>;

Tensors read_weights(const nn::Model& model, std::span<const TensorRecord> weights, const std::filesystem::path& from) {
  const std::vector<nn::Parameter> tensors = nn::tensors_of(model);
  auto values = parameter_values(weights, from, tensors);
  Tensors all;
  for (std::size_t i = 0; i < values.size(); ++i)
    all[tensors[i].name] = {.shape = tensors[i].torch_shape, .values = std::move(values[i])};
  return all;
}

/// For each layer that is a batch normalization of a convolution which nothing else reads, that convolution.
std::vector<std::optional<std::size_t>> foldable(const nn::Model& model,
                                                 const std::vector<std::vector<std::size_t>>& reads) {
  std::vector<int> readers(model.layers.size() + 1);
  for (const auto& each : reads)
    for (const std::size_t read : each) ++readers[read];
  std::vector<std::optional<std::size_t>> all(model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const std::size_t read = reads[i].front();
    if (std::holds_alternative<nn::BatchNorm2d>(model.layers[i].layer) && read > 0 && readers[read] == 1 &&
        std::holds_alternative<nn::Conv2d>(model.layers[read - 1].layer))
      all[i] = read - 1;
  }
  return all;
}

/// Replaces the weights of a convolution and of its batch normalization by those of one convolution, which has a bias.
///
/// Source    torch/nn/utils/fusion.py, fuse_conv_bn_weights.
void fold(Tensors& weights, const std::string& conv, const nn::NamedLayer& norm) {
  const auto take = [&](const std::string& name) { return weights.extract(norm.name + "." + name).mapped().values; };
  const std::vector<float> weight = take("weight"), bias = take("bias"), mean = take("running_mean"),
                           var = take("running_var");
  const double eps = std::get<nn::BatchNorm2d>(norm.layer).eps;
  std::vector<float>& w = weights.at(conv + ".weight").values;
  Tensor& b = weights[conv + ".bias"];
  b.shape = {std::ssize(mean)};
  b.values.resize(mean.size());
  const std::size_t fan_in = w.size() / mean.size();
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const double scale = weight[c] / std::sqrt(var[c] + eps);
    b.values[c] = static_cast<float>((double{b.values[c]} - mean[c]) * scale + bias[c]);
    for (std::size_t i = c * fan_in; i < (c + 1) * fan_in; ++i) w[i] = static_cast<float>(w[i] * scale);
  }
}

}  // namespace

std::string onnx_model(const ModelFacts& facts, std::span<const TensorRecord> weights,
                       const std::filesystem::path& from) {
  const nn::Model& model = facts.model;
  GraphBuilder builder(model.name);
  Names values = {add_preprocessing(builder, facts)};  // what layers read, by number
  const std::vector<std::vector<std::size_t>> reads = nn::reads_of(model);
  const std::vector<nn::Activations> shapes = nn::inputs_of(model);
  Tensors tensors = read_weights(model, weights, from);
  std::vector<nn::NamedLayer> layers = model.layers;
  const std::vector<std::optional<std::size_t>> folded = foldable(model, reads);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!folded[i]) continue;
    fold(tensors, layers[*folded[i]].name, layers[i]);
    std::get<nn::Conv2d>(layers[*folded[i]].layer).bias = true;
  }
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Names inputs;
    for (const std::size_t read : reads[i]) inputs.push_back(values[read]);
    values.push_back(folded[i] ? inputs.front() : layers[i].name);
    if (!folded[i]) add_layer(builder, layers[i], inputs, shapes[i], i + 1 == layers.size());
  }
  for (const auto& [name, tensor] : tensors) builder.constant(name, tensor.shape.extents(), tensor.values);
  const std::int64_t classes[] = {model.classes};
  builder.graph()
      .message(proto::graph::input, value_info(kInput, proto::kUint8, model.sample.extents()))
      .message(proto::graph::output, value_info(kOutput, proto::kFloat, classes));
  Message file;
  file.integer(proto::model::ir_version, proto::kIrVersion)
      .text(proto::model::producer_name, "gradring")
      .text(proto::model::producer_version, GRADRING_VERSION)
      .message(proto::model::graph, builder.graph())
      .message(proto::model::opset_import,
               Message().text(proto::opset::domain, "").integer(proto::opset::version, proto::kOpset));
  for (const auto& [key, value] : to_texts(facts, ModelInput::bytes))
    file.message(proto::model::metadata_props, Message().text(proto::entry::key, key).text(proto::entry::value, value));
  return file.bytes();
}

}  // namespace gradring::train
