// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <tuple>

#include "kernels/runtime/error.h"
#include "train/checkpoint/file_io.h"
#include "train/checkpoint/safetensors.h"

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;

void check_tensor(const TensorRecord& tensor) {
  const auto why = unfit_name(tensor.name);
  check(why.empty(), "the tensor name " + in_quotes(tensor.name) + " " + std::string(why));
  check(byte_size(tensor.type, tensor.shape) == tensor.bytes.size(),
        in_quotes(tensor.name) + " has " + std::to_string(tensor.bytes.size()) + " bytes, which are not " +
            shape_text(tensor.shape) + " of " + std::string(names_of(tensor.type).safetensors));
}

std::vector<const TensorRecord*> in_order(std::span<const TensorRecord> tensors) {
  std::vector<const TensorRecord*> order;
  for (const TensorRecord& tensor : tensors) order.push_back(&tensor);
  std::ranges::sort(order, [](const TensorRecord* a, const TensorRecord* b) {
    const unsigned a_bits = names_of(a->type).bits, b_bits = names_of(b->type).bits;
    return std::tie(b_bits, a->name) < std::tie(a_bits, b->name);
  });
  return order;
}

/// N, the JSON, and spaces up to a multiple of 8.
std::string framed(std::string json) {
  json.resize((json.size() + 7) / 8 * 8, ' ');
  const std::uint64_t header_bytes = json.size();
  std::string head(sizeof header_bytes, '\0');
  std::memcpy(head.data(), &header_bytes, sizeof header_bytes);
  return head + json;
}

/// The header's JSON; names that are not UTF-8 cannot be written.
std::string dumped(const Json& header) {
  try {
    return header.dump();
  } catch (const Json::type_error&) {
    throw InvalidArgument("a tensor's name, or its file's metadata, is not UTF-8");
  }
}

}  // namespace

SafetensorsPlan plan_safetensors(std::span<const TensorRecord> tensors,
                                 const std::map<std::string, std::string>& metadata) {
  SafetensorsPlan plan{.order = in_order(tensors), .head = {}};
  Json header = Json::object();
  header["__metadata__"] = metadata;
  header["__metadata__"]["format"] = "pt";  // what PyTorch's tools ask for
  std::uint64_t offset = 0;
  for (const TensorRecord* tensor : plan.order) {
    check_tensor(*tensor);
    check(!header.contains(tensor->name), "two tensors are called " + in_quotes(tensor->name));
    const std::uint64_t end = offset + tensor->bytes.size();
    header[tensor->name] = {
        {"dtype", names_of(tensor->type).safetensors}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  plan.head = framed(dumped(header));
  check(plan.head.size() <= kLargestHeaderBytes, "so many tensors do not fit one safetensors file");
  return plan;
}

void write_safetensors(FileSystem& files, const std::filesystem::path& path, const SafetensorsPlan& plan) {
  const auto file = files.create(path);
  write_all(*file, path, bytes_of(plan.head));
  for (const TensorRecord* tensor : plan.order) write_all(*file, path, tensor->bytes);
  file->sync();
  file->close();
}

}  // namespace gradring::train
