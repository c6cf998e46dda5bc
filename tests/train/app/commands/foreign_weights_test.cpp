// SPDX-License-Identifier: Apache-2.0
// Files of weights that other programs wrote, or that a training ruined, by the program that was built.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <span>

#include "tests/train/app/commands/support/trained.h"
#include "tests/train/support/text_of.h"
#include "train/records/checkpoint/checkpoint.h"
#include "train/records/checkpoint/safetensors.h"
#include "train/records/checkpoint/tensor_file.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using tests::ProgramEnd;
using tests::Words;
using train::TensorRecord;

constexpr const char* kCheckpoint = "run/checkpoints/step-40";

class ForeignWeights : public tests::Trained {
 protected:
  /// Writes the weights of the run to a new file, after `change`.
  void write(const std::string& name, const std::function<void(std::vector<TensorRecord>&)>& change) const {
    train::PosixFileSystem files;
    auto tensors = train::read_safetensors(files, place_.path(std::string(kCheckpoint) + "/model.safetensors"));
    change(tensors);
    write_safetensors(files, place_.path(name), train::plan_safetensors(tensors));
  }

  static std::span<float> floats(std::vector<TensorRecord>& tensors, const std::string& name) {
    auto& bytes = std::ranges::find(tensors, name, &TensorRecord::name)->bytes;
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }
};

TEST_F(ForeignWeights, EndWith5IfTheyAreNotFinite) {
  write("nan.safetensors", [](auto& tensors) {
    floats(tensors, "fc_layers.2.bias")[3] = std::numeric_limits<float>::quiet_NaN();
    floats(tensors, "conv_layers.0.weight")[0] = std::numeric_limits<float>::infinity();
  });
  const Words commands[] = {
      {"eval", "nan.safetensors", "--dataset", "digits"},
      {"eval", "nan.safetensors", "--dataset", "digits", "--json"},
      {"train", "--dataset", "digits", "--weights", "nan.safetensors", "--steps", "1", "--run-dir", "x"}};
  for (const Words& command : commands) {
    const ProgramEnd end = place_.run(command);
    EXPECT_EQ(end.code, 5) << command[0];
    EXPECT_THAT(end.err,
                AllOf(HasSubstr("nan.safetensors: 1 of the "), HasSubstr(" is NaN or infinite, and values of 1 more "
                                                                         "tensor")))
        << command[0];
    EXPECT_THAT(end.out, AllOf(Not(HasSubstr("nan ")), Not(HasSubstr("Accuracy")), Not(HasSubstr("Loss"))));
  }
  const ProgramEnd exported = place_.run({"export", "nan.safetensors", "--model", "convnet", "--dataset", "digits",
                                          "--output", "nan.onnx", "--card", "nan.md"});
  EXPECT_EQ(exported.code, 0) << exported.err;
  EXPECT_THAT(exported.err, HasSubstr("is NaN or infinite"));
  EXPECT_THAT(tests::text_of(place_.path("nan.md")), HasSubstr("* The model does not work: 1 of the "));
}

/// Not as "the test loss is NaN: lower --lr" after a step.
TEST_F(ForeignWeights, EndWith5IfTheOptimizersStateIsNotFinite) {
  train::PosixFileSystem files;
  const std::filesystem::path folder = place_.path(kCheckpoint);
  train::Checkpoint checkpoint = train::read_checkpoint(files, folder);
  floats(checkpoint.state, "exp_avg_sq.fc_layers.2.bias")[3] = -1;
  std::filesystem::remove_all(folder);
  files.make_folder(folder);
  train::write_checkpoint(files, folder, checkpoint);
  ASSERT_EQ(place_.run({"export", kCheckpoint, "--optimizer", "--output", "o.pt"}).code, 0);
  ASSERT_EQ(place_.run({"export", kCheckpoint, "--output", "w.pt"}).code, 0);
  for (const auto& [from, options] :
       {std::pair(std::string(kCheckpoint), Words{"--resume", kCheckpoint}),
        std::pair(std::string("o.pt"), Words{"--weights", "w.pt", "--optimizer-state", "o.pt"})}) {
    const ProgramEnd end = train("x-" + options[0], options);
    EXPECT_EQ(end.code, 5) << end.err;
    EXPECT_THAT(end.err, HasSubstr(from + ": 1 of the 10 values of 'exp_avg_sq.fc_layers.2.bias' is NaN or negative;"));
  }
}

TEST_F(ForeignWeights, EndWith5IfTheirOutputsOverflow) {
  write("large.safetensors", [](auto& tensors) {
    for (const char* name : {"fc_layers.0.bias", "fc_layers.2.weight"})
      for (float& value : floats(tensors, name)) value = 1e30f;
  });
  const ProgramEnd end = place_.run({"eval", "large.safetensors", "--dataset", "digits"});
  EXPECT_EQ(end.code, 5) << end.out;
  EXPECT_THAT(end.err, HasSubstr("the outputs for 2000 of 2000 samples are NaN or infinite in fp32"));
}

TEST_F(ForeignWeights, EndWith5IfTheLossOverflows) {
  write("large.safetensors", [](auto& tensors) {
    for (float& value : floats(tensors, "fc_layers.2.weight")) value = 0;
    const auto bias = floats(tensors, "fc_layers.2.bias");
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = i == 0 ? 3e38f : -3e38f;
  });
  const ProgramEnd end = place_.run({"eval", "large.safetensors", "--dataset", "digits"});
  EXPECT_EQ(end.code, 5) << end.out;
  EXPECT_THAT(end.err, HasSubstr("large.safetensors: the loss on the test set is infinite"));
}

TEST_F(ForeignWeights, DifferInNonFiniteElements) {
  write("nan.safetensors", [](auto& tensors) {
    floats(tensors, "fc_layers.2.bias")[3] = std::numeric_limits<float>::quiet_NaN();
    floats(tensors, "fc_layers.2.bias")[4] += 0.5f;
    for (float& value : floats(tensors, "fc_layers.0.bias")) value = std::numeric_limits<float>::quiet_NaN();
  });
  const ProgramEnd end = place_.run({"ckpt", "diff", kCheckpoint, "nan.safetensors"});
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(
      end.out,
      HasSubstr("'fc_layers.2.bias'  F32 [10]: 2 elements differ, 1 of them NaN or infinite, the others by 0.5 "));
  EXPECT_THAT(end.out, HasSubstr("'fc_layers.0.bias'  F32 [256]: 256 elements differ, all of them NaN or infinite\n"));
  const auto json = json_of({"ckpt", "diff", kCheckpoint, "nan.safetensors"});
  EXPECT_THAT(json["tensors"][0]["max_abs"].dump() + json["tensors"][0]["cosine"].dump(), "nullnull");
  EXPECT_THAT(place_.run({"ckpt", "inspect", "nan.safetensors", "--tensor", "fc_layers.0.bias"}).out,
              ::testing::ContainsRegex(" - +- +- +- +256\n"));
}

TEST_F(ForeignWeights, MayHaveAnyCommonPrefix) {
  const ProgramEnd own = place_.run({"eval", kCheckpoint});
  write("prefixed.safetensors", [](auto& tensors) {
    for (TensorRecord& tensor : tensors) tensor.name.insert(0, "model._orig_mod.");
  });
  const ProgramEnd prefixed = place_.run({"eval", "prefixed.safetensors", "--dataset", "digits"});
  EXPECT_EQ(prefixed.code, 0);
  EXPECT_THAT(prefixed.err,
              HasSubstr("prefixed.safetensors: stripped 'model._orig_mod.' from the names of the tensors"));
  EXPECT_EQ(prefixed.out.substr(prefixed.out.find("Accuracy")),
            own.out.substr(own.out.find("Accuracy"), own.out.find("Recorded") - own.out.find("Accuracy")));
  const ProgramEnd trained = place_.run(
      {"train", "--dataset", "digits", "--weights", "prefixed.safetensors", "--steps", "1", "--run-dir", "x"});
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_THAT(trained.out + trained.err, HasSubstr("stripped 'model._orig_mod.'"));
}

}  // namespace
}  // namespace gradring
