// SPDX-License-Identifier: Apache-2.0
#include "nn/layers/layer.h"

#include <array>
#include <optional>

namespace gradring::nn {
namespace {

template <class Variant>
struct Kinds;

template <class... L>
struct Kinds<std::variant<L...>> {
  static constexpr std::array<std::string_view, sizeof...(L)> kNames = {L::kKind...};

  static std::optional<Layer> read(std::string_view kind, LayerKeys& keys, const Activations& input) {
    std::optional<Layer> layer;
    ((L::kKind == kind ? void(layer = L::read(keys, input)) : void()), ...);
    return layer;
  }
};

}  // namespace

std::span<const std::string_view> layer_kinds() { return Kinds<Layer>::kNames; }

Layer read_layer(std::string_view kind, LayerKeys& keys, const Activations& input) {
  const std::optional<Layer> layer = Kinds<Layer>::read(kind, keys, input);
  if (!layer) throw InvalidArgument("'" + std::string(kind) + "' is not a kind of layer");
  return *layer;
}

}  // namespace gradring::nn
