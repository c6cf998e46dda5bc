// SPDX-License-Identifier: Apache-2.0
// PyTorch and NumPy read our files, and we read theirs. Skipped if no python3 can import torch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "nn/models/model.h"
#include "tests/support/run_program.h"
#include "tests/support/temp_folder.h"
#include "tests/train/records/checkpoint/tensors.h"
#include "tests/train/support/host_arena.h"
#include "train/core/doctor/find_python.h"
#include "train/core/trainer/parameter_names.h"
#include "train/core/trainer/parameter_tensors.h"
#include "train/core/trainer/replica.h"
#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/safetensors.h"
#include "train/records/checkpoint/tensor_file.h"

namespace gradring::train {
namespace {

using testing::HasSubstr;
using tests::HostArena;
using Json = nlohmann::json;

class TorchFiles : public testing::Test {
 protected:
  static void SetUpTestSuite() { search_ = new PythonSearch(search_python_with_torch()); }
  static void TearDownTestSuite() { delete search_; }

  void SetUp() override {
    if (!search_->python) GTEST_SKIP() << search_->to_string();
  }

  std::string peer(const std::vector<std::string>& words) const {
    std::vector<std::string> command = {*search_->python, GRADRING_TORCH_PEER};
    command.insert(command.end(), words.begin(), words.end());
    const tests::ProgramEnd end = tests::run_program({.command = command, .folder = folder_.path(), .variables = {}});
    EXPECT_EQ(end.code, 0) << end.err;
    return end.out;
  }

  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }

  static PythonSearch* search_;
  const tests::TempFolder folder_;
  PosixFileSystem files_;
};

PythonSearch* TorchFiles::search_ = nullptr;

/// As torch_peer.py describes it.
Json description_of(const TensorRecord& tensor) {
  static const std::map<TensorType, std::string> names = {
      {TensorType::f32, "float32"},  {TensorType::f64, "float64"},   {TensorType::f16, "float16"},
      {TensorType::i64, "int64"},    {TensorType::bf16, "bfloat16"}, {TensorType::i32, "int32"},
      {TensorType::i16, "int16"},    {TensorType::i8, "int8"},       {TensorType::u8, "uint8"},
      {TensorType::boolean, "bool"}, {TensorType::c64, "complex64"}};
  return {{"name", tensor.name},
          {"dtype", "torch." + names.at(tensor.type)},
          {"shape", tensor.shape},
          {"sha256", sha256_hex(tensor.bytes)}};
}

Json descriptions_of(const std::vector<TensorRecord>& tensors) {
  Json all = Json::array();
  for (const TensorRecord& tensor : tensors) all.push_back(description_of(tensor));
  return all;
}

TEST_F(TorchFiles, PyTorchReadsOurPt) {
  auto tensors = awkward_tensors();
  tensors.push_back(counting("brain", TensorType::bf16, {5}));
  tensors.push_back(counting("complex", TensorType::c64, {2, 2}));
  tensors.push_back(counting("a name with \xc3\xa4", TensorType::f32, {2}));
  std::ranges::find(tensors, "bits", &TensorRecord::name)->bytes = std::vector<std::byte>(7, std::byte{1});
  write_pt(files_, file("ours.pt"), tensors);
  Json seen = Json::array();
  std::istringstream lines(peer({"describe", file("ours.pt")}));
  for (std::string line; std::getline(lines, line);) seen.push_back(Json::parse(line));
  EXPECT_EQ(seen, descriptions_of(tensors));
}

/// The hash of the ConvNet's weights in a file with any known names.
Sha256 hash_of_weights_in(PosixFileSystem& files, const std::string& path) {
  const nn::Model model = nn::make_model("convnet", {28, 28, 1}, 10);
  HostArena arena(model);
  auto tensors = read_tensor_file(files, path);
  ParameterNames(model).rename(tensors, path);
  load_parameters(tensors, path, arena.parameters(), arena.arena());
  return hash_weights(arena.parameters(), arena.arena());
}

TEST_F(TorchFiles, WeReadWhatPyTorchAndNumPyWrite) {
  peer({"write", folder_.path().string()});
  std::ifstream text(file("expected.json"));
  const Json expected = Json::parse(text);
  for (const auto& [name, tensors] : expected.items())
    EXPECT_EQ(descriptions_of(read_tensor_file(files_, file(name + ".pt"))), tensors) << name;

  HostArena drawn(nn::make_model("convnet", {28, 28, 1}, 10));
  drawn.draw(0);
  for (const char* spelling : {"convnet", "sequential", "attributes", "parallel"})
    EXPECT_EQ(hash_of_weights_in(files_, file(std::string(spelling) + ".pt")),
              hash_weights(drawn.parameters(), drawn.arena()))
        << spelling;

  for (const TensorTypeNames& type : tensor_types()) {
    if (type.npy.empty()) continue;
    const std::string name(type.npy.substr(1));
    const auto array = read_tensor_file(files_, file(name + ".npy"));
    EXPECT_EQ(array.at(0).type, type.type) << name;
    EXPECT_EQ(array.at(0).shape, (std::vector<std::int64_t>{2, 3})) << name;
  }
  EXPECT_EQ(read_tensor_file(files_, file("f4.npy"))[0].bytes, bytes_in(std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(read_tensor_file(files_, file("scalar.npy"))[0], tensor<float>("scalar", TensorType::f32, {}, {2}));
  EXPECT_EQ(read_tensor_file(files_, file("empty.npy"))[0], tensor<float>("empty", TensorType::f32, {0, 3}, {}));

  EXPECT_EQ(read_tensor_file(files_, file("fortran.npy"))[0],
            tensor<float>("fortran", TensorType::f32, {2, 3}, {0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(read_tensor_file(files_, file("big_endian.npy"))[0],
            tensor<float>("big_endian", TensorType::f32, {6}, {0, 1, 2, 3, 4, 5}));

  const std::pair<const char*, const char*> refused[] = {{"module.pt", "uses 'torch.nn.modules.module.Module'"},
                                                         {"optimizer.pt", "'state', which is not a tensor"},
                                                         {"script.pt", "is a TorchScript archive"},
                                                         {"sparse.pt", "which is sparse"},
                                                         {"objects.npy", "Python objects"}};
  for (const auto& [name, found] : refused)
    EXPECT_THAT(refusal([&] { read_tensor_file(files_, file(name)); }), HasSubstr(found));
}

TEST_F(TorchFiles, NumPyReadsOurNpy) {
  std::string script = "import numpy, sys\n";
  for (const TensorRecord& tensor : awkward_tensors()) {
    write_npy(files_, file(tensor.name + ".npy"), tensor);
    script += "a = numpy.load('" + file(tensor.name + ".npy") + "', allow_pickle=False)\n";
    std::string shape = shape_text(tensor.shape);
    script += "assert list(a.shape) == " + shape + " and a.dtype.str == '" + std::string(names_of(tensor.type).npy) +
              "' and a.tobytes().hex() == '";
    for (std::byte byte : tensor.bytes) {
      constexpr const char* kDigits = "0123456789abcdef";
      script += kDigits[std::to_integer<int>(byte) >> 4];
      script += kDigits[std::to_integer<int>(byte) & 15];
    }
    script += "', '" + tensor.name + "'\n";
  }
  const auto end =
      tests::run_program({.command = {*search_->python, "-c", script}, .folder = folder_.path(), .variables = {}});
  EXPECT_EQ(end.code, 0) << end.err;
}

TEST_F(TorchFiles, PyTorchComputesTheSameLogits) {
  HostArena arena(nn::make_model("convnet", {28, 28, 1}, 10));
  arena.draw(0);
  const auto tensors = save_parameters(arena.parameters(), arena.arena());
  write_pt(files_, file("model.pt"), tensors);
  write_safetensors(files_, file("model.safetensors"), plan_safetensors(tensors));
  const std::string golden = std::string(GRADRING_GOLDEN_DIR) + "/convnet_step_seed0.safetensors";
  const Json differences = Json::parse(peer({"logits", file("model.pt"), file("model.safetensors"), golden}));
  ASSERT_EQ(differences.size(), 2u);
  for (const Json& difference : differences) EXPECT_LT(difference.get<double>(), 1e-5);
}

}  // namespace
}  // namespace gradring::train
