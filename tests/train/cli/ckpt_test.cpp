// SPDX-License-Identifier: Apache-2.0
// gradring ckpt and export, on a run of the program that was built.
#include <gmock/gmock.h>

#include <fstream>

#include "tests/train/cli/support/trained.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using tests::ProgramEnd;
using tests::Words;

class Ckpt : public tests::Trained {
 protected:
  void flip_a_bit(const std::string& file) const {
    std::fstream stream(place_.path(file), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(-100, std::ios::end);
    const char byte = static_cast<char>(stream.get() ^ 4);
    stream.seekp(-100, std::ios::end);
    stream.put(byte);
  }
};

TEST_F(Ckpt, LsShowsTheNewestFirst) {
  const json list = json_of({"ckpt", "ls", "run"});
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0]["step"], 40);
  EXPECT_EQ(list[0]["latest"], true);
  EXPECT_EQ(list[0]["best"], true);
  EXPECT_EQ(list[0]["score"], json::parse(tests::text_of(place_.path("run/summary.json")))["accuracy"]);
  EXPECT_EQ(list[1]["score"], nullptr);
  EXPECT_EQ(json_of({"ckpt", "ls", "run/checkpoints"}), list);
  const ProgramEnd end = place_.run({"ckpt", "ls", "run"});
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.out, AllOf(HasSubstr("latest, best"), HasSubstr("readable"), HasSubstr("date (UTC)")));
}

TEST_F(Ckpt, VerifyNamesEveryProblem) {
  const ProgramEnd sound = place_.run({"ckpt", "verify", "run", "run/checkpoints/step-20/model.safetensors"});
  EXPECT_EQ(sound.code, 0) << sound.err;
  flip_a_bit("run/checkpoints/step-20/model.safetensors");
  std::filesystem::resize_file(place_.path("run/checkpoints/step-20/state.safetensors"), 50);
  const ProgramEnd end = place_.run({"ckpt", "verify", "run"});
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(end.out, AllOf(HasSubstr("ok   run/checkpoints/step-40"),
                             HasSubstr("BAD  run/checkpoints/step-20/model.safetensors: the bytes of '"),
                             HasSubstr("BAD  run/checkpoints/step-20/state.safetensors")));
  EXPECT_THAT(end.err, StartsWith("gradring ckpt: run: 1 of 2 are not as they should be"));
  const json list = json_of({"ckpt", "verify", "run", "nowhere"});
  EXPECT_EQ(list[1]["problems"].size(), 2u);
  EXPECT_THAT(list[2]["problems"][0], HasSubstr("nowhere: is not there"));
}

TEST_F(Ckpt, DiffEndsLikeCmp) {
  ASSERT_EQ(train("again").code, 0);
  const ProgramEnd same = place_.run({"ckpt", "diff", "run", "again"});
  EXPECT_EQ(same.code, 0) << same.out;
  EXPECT_THAT(same.out, HasSubstr("equal: 24 tensors"));

  const ProgramEnd other = place_.run({"ckpt", "diff", "run/checkpoints/step-20", "run"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.out, AllOf(HasSubstr("'fc_layers.2.bias'  F32 [10]: 10 elements differ"), HasSubstr("cosine 0.9"),
                               HasSubstr("step  20 in A, 40 in B")));
  const json weights = json_of({"ckpt", "diff", "run/checkpoints/step-20/model.safetensors", "run"});
  EXPECT_EQ(weights["tensors"].size(), 8u) << "a file is compared with the weights alone";
  EXPECT_THAT(weights["meta"], IsEmpty());
  EXPECT_GT(weights["tensors"][0]["max_abs"], 0);

  ASSERT_EQ(train("settings", {"--keep-best", "3"}).code, 0);
  EXPECT_EQ(place_.run({"ckpt", "diff", "run", "settings"}).code, 1);
  EXPECT_EQ(place_.run({"ckpt", "diff", "run", "settings", "--tensors-only"}).code, 0);
  EXPECT_EQ(place_.run({"ckpt", "diff", "run", "nowhere"}).code, 4);
  EXPECT_EQ(place_.run({"ckpt", "diff", "run"}).code, 2);
}

TEST_F(Ckpt, InspectShowsTensorsOfAnyFile) {
  const json all = json_of({"ckpt", "inspect", "run"});
  EXPECT_EQ(all["step"], 40);
  EXPECT_EQ(all["tensors"].size(), 24u);
  EXPECT_EQ(all["about"]["progress"]["steps"], 40);
  for (const json& tensor : all["tensors"]) EXPECT_EQ(tensor["non_finite"], 0);
  const json one =
      json_of({"ckpt", "inspect", "run/checkpoints/step-20/model.safetensors", "--tensor", "fc_layers.2.bias"});
  ASSERT_EQ(one["tensors"].size(), 1u);
  EXPECT_EQ(one["tensors"][0]["shape"], json({10}));
  const ProgramEnd nearest = place_.run({"ckpt", "inspect", "run", "--tensor", "fc_layers.2.bais"});
  EXPECT_EQ(nearest.code, 2);
  EXPECT_THAT(nearest.err, HasSubstr("Did you mean 'fc_layers.2.bias'?"));
  std::ofstream(place_.path("hostile.safetensors")) << "\xff\xff\xff\xff\xff\xff\xff\x7f{}";
  EXPECT_EQ(place_.run({"ckpt", "inspect", "hostile.safetensors"}).code, 4);
  const std::string text = place_.run({"ckpt", "inspect", "run"}).out;
  EXPECT_THAT(text, HasSubstr("[\"conv_layers.0\",")) << "what computed the layers";
  EXPECT_THAT(text, HasSubstr(" by \""));
}

TEST_F(Ckpt, PruneTakesWhatItSaid) {
  const ProgramEnd dry = place_.run({"ckpt", "prune", "run", "--keep-last", "1", "--dry-run"});
  EXPECT_EQ(dry.out, "would remove run/checkpoints/step-20\n");
  EXPECT_TRUE(std::filesystem::exists(place_.path("run/checkpoints/step-20")));
  EXPECT_EQ(place_.run({"ckpt", "prune", "run"}).code, 2) << "how many?";
  const ProgramEnd end = place_.run({"ckpt", "prune", "run", "--keep-last", "1"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_FALSE(std::filesystem::exists(place_.path("run/checkpoints/step-20")));
  EXPECT_EQ(place_.run({"ckpt", "prune", "run", "--keep-last", "1"}).out, "nothing to remove\n");
}

TEST_F(Ckpt, PruneNeverTakesTheLastSoundOne) {
  flip_a_bit("run/checkpoints/step-40/model.safetensors");
  const ProgramEnd end = place_.run({"ckpt", "prune", "run", "--keep-last", "1"});
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(end.err, AllOf(HasSubstr("step-40: is damaged"), HasSubstr("step-20 is the newest sound")));
  EXPECT_TRUE(std::filesystem::exists(place_.path("run/checkpoints/step-20")));
}

TEST_F(Ckpt, ExportsWhatItReadsBack) {
  for (const char* file : {"w.pt", "w.safetensors"}) {
    const ProgramEnd end = place_.run({"export", "--checkpoint", "run", "--output", file});
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_EQ(place_.run({"ckpt", "diff", file, "run"}).code, 0) << file;
  }
  EXPECT_EQ(json_of({"ckpt", "inspect", "w.pt"})["tensors"][0]["name"], "conv_layers.0.weight") << "PyTorch's order";
  EXPECT_EQ(
      place_.run({"export", "--checkpoint", "run", "--tensor", "exp_avg.fc_layers.2.bias", "--output", "m.npy"}).code,
      0);
  EXPECT_EQ(json_of({"ckpt", "inspect", "m.npy"})["tensors"][0]["shape"], json({10}));

  EXPECT_EQ(place_.run({"export", "--checkpoint", "run", "--output", "w.pt"}).code, 2) << "it is there already";
  const ProgramEnd many = place_.run({"export", "--checkpoint", "run", "--output", "many.npy"});
  EXPECT_EQ(many.code, 2);
  EXPECT_THAT(many.err, HasSubstr("name one by --tensor"));
  EXPECT_EQ(place_.run({"export", "--checkpoint", "run", "--output", "w.onnx"}).code, 2);
  EXPECT_EQ(place_.run({"export", "--checkpoint", "run", "--output", "none/w.pt"}).code, 3);
  for (const std::string& name : place_.left()) EXPECT_THAT(name, Not(HasSubstr("partial")));
}

TEST(CkptHelp, IsThereForEveryAction) {
  const tests::Workplace place;
  for (const char* action : {"ls", "verify", "diff", "inspect", "prune"}) {
    const ProgramEnd end = place.run({"ckpt", action, "--help"});
    EXPECT_EQ(end.code, 0);
    EXPECT_THAT(end.out, StartsWith("gradring ckpt " + std::string(action) + ": "));
  }
  const ProgramEnd nearest = place.run({"ckpt", "prnue"});
  EXPECT_EQ(nearest.code, 2);
  EXPECT_THAT(nearest.err, HasSubstr("Did you mean 'prune'?"));
  EXPECT_EQ(place.run({"ckpt", "ls", "data"}).code, 4) << "no checkpoints there";
  EXPECT_EQ(place.run({"ckpt", "ls"}).code, 2);
}

}  // namespace
}  // namespace gradring
