// SPDX-License-Identifier: Apache-2.0
// gradring ckpt and export, on a run of the program that was built.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <thread>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/trained.h"
#include "tests/train/support/text_of.h"
#include "train/core/setup/run_lock.h"

namespace gradring {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
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
  EXPECT_EQ(list[0]["score"], tests::parse_json(tests::text_of(place_.path("run/summary.json")))["accuracy"]);
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
                             HasSubstr("BAD  run/checkpoints/step-20/model.safetensors is corrupt: tensor '"),
                             HasSubstr("BAD  run/checkpoints/step-20/state.safetensors")));
  EXPECT_THAT(end.err, StartsWith("gradring ckpt: run has 1 corrupt of 2 checked"));
  const json list = json_of({"ckpt", "verify", "run", "nowhere"});
  EXPECT_EQ(list[1]["problems"].size(), 2u);
  EXPECT_THAT(list[2]["problems"][0], HasSubstr("nowhere: does not exist"));
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
  EXPECT_THAT(end.err, AllOf(HasSubstr("step-40 is damaged"),
                             HasSubstr("the newest valid checkpoint, run/checkpoints/step-20, would be removed")));
  EXPECT_TRUE(std::filesystem::exists(place_.path("run/checkpoints/step-20")));
}

/// The trainer saves and removes a checkpoint each step.
TEST_F(Ckpt, WorksBesideARun) {
  const fs::path checkpoints = place_.path("long/checkpoints");
  tests::RunningProgram trainer(place_.gradring(
      {"train",   "--dataset",          "digits", "--batch-size", "8",   "--steps",     "1000000", "--epochs",
       "1000000", "--save-every-steps", "1",      "--keep-last",  "2",   "--keep-best", "0",       "--progress",
       "none",    "--device",           "cpu",    "--run-dir",    "long"}));
  while (!fs::exists(checkpoints / "latest")) std::this_thread::yield();
  for (int i = 0; i < 20; ++i)
    for (const Words& words :
         {Words{"ckpt", "ls", "long"}, Words{"ckpt", "verify", "long"},
          Words{"ckpt", "prune", "long", "--keep-last", "1"}, Words{"ckpt", "verify", "long/checkpoints/latest"}}) {
      const ProgramEnd end = place_.run(words);
      EXPECT_EQ(end.code, 0) << words[1] << ": " << end.out << end.err;
      EXPECT_THAT(end.out, AllOf(Not(HasSubstr("BAD")), Not(HasSubstr("DAMAGED"))));
    }
  ::kill(trainer.pid(), SIGTERM);
  const ProgramEnd end = trainer.wait();
  EXPECT_EQ(end.code, 143);
  EXPECT_THAT(end.err, Not(HasSubstr("cannot")));
  EXPECT_EQ(place_.run({"ckpt", "verify", "long"}).code, 0);
}

TEST_F(Ckpt, SaysWhatIsInProgress) {
  for (const char* name : {"step-60.partial", "step-10.removing", "abandoned-step-50"})
    fs::create_directory(place_.path("run/checkpoints") / name);
  const auto states = [&] {
    std::map<int, std::string> by_step;
    for (const json& listed : json_of({"ckpt", "ls", "run"})) by_step[listed["step"]] = listed["state"];
    return by_step;
  };
  EXPECT_THAT(states(), ElementsAre(Pair(10, "half removed"), Pair(20, "readable"), Pair(40, "readable"),
                                    Pair(50, "abandoned"), Pair(60, "never finished")));
  const train::RunLock lock(place_.path("run"), {});
  EXPECT_THAT(states(), ElementsAre(Pair(10, "being removed"), Pair(20, "readable"), Pair(40, "readable"),
                                    Pair(50, "abandoned"), Pair(60, "being saved")));
  const ProgramEnd end = place_.run({"ckpt", "verify", "run/checkpoints/"});
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.out, HasSubstr("skip run/checkpoints/step-60.partial: being saved\n"));
}

TEST_F(Ckpt, ShowsTheOthersWhereOneIsOdd) {
  const fs::path checkpoints = place_.path("run/checkpoints");
  fs::remove(checkpoints / "step-20" / "model.safetensors");
  ASSERT_EQ(::mkfifo((checkpoints / "step-20" / "model.safetensors").c_str(), 0600), 0);
  fs::create_directory(checkpoints / "step-40" / "notes");
  std::ofstream(checkpoints / "step-5") << "a file";
  fs::create_symlink("nowhere", checkpoints / "step-6");
  fs::create_symlink(std::string(300, 'x'), checkpoints / "step-7");
  const json list = json_of({"ckpt", "ls", "run"});
  ASSERT_EQ(list.size(), 5u);
  EXPECT_EQ(list[0]["state"], "readable");
  EXPECT_EQ(list[1]["state"], "readable") << "of the files, only meta.json is read";
  EXPECT_EQ(list[2]["state"], "UNREADABLE");
  EXPECT_EQ(list[3]["date"], nullptr);
  EXPECT_EQ(place_.run({"ckpt", "ls", "run"}).code, 0);
  const ProgramEnd end = place_.run({"ckpt", "verify", "run"});
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(end.out, AllOf(HasSubstr("ok   run/checkpoints/step-40\n"),
                             HasSubstr("step-20/model.safetensors is not a regular file"),
                             HasSubstr("BAD  run/checkpoints/step-5/meta.json is missing"),
                             HasSubstr("ERR  cannot open run/checkpoints/step-7/meta.json: File name too long")));
}

TEST_F(Ckpt, VerifyTellsReadErrorsFromDamage) {
  const fs::path file = place_.path("run/checkpoints/step-20/state.safetensors");
  fs::remove(file);
  fs::create_symlink(std::string(300, 'x'), file);
  const ProgramEnd end = place_.run({"ckpt", "verify", "run"});
  EXPECT_EQ(end.code, 3);
  EXPECT_THAT(end.out, AllOf(HasSubstr("ok   run/checkpoints/step-40\n"),
                             HasSubstr("ERR  cannot open run/checkpoints/step-20/state.safetensors")));
  EXPECT_THAT(end.err, StartsWith("gradring ckpt: run: 1 of 2 could not be read"));
  EXPECT_THAT(json_of({"ckpt", "verify", "run"})[1]["error"], HasSubstr("File name too long"));
}

TEST_F(Ckpt, PruneRemovesWhatWasAbandonedWhereItIsAsked) {
  fs::rename(place_.path("run/checkpoints/step-20"), place_.path("run/checkpoints/abandoned-step-20"));
  EXPECT_EQ(place_.run({"ckpt", "prune", "run", "--keep-last", "1"}).out, "nothing to remove\n");
  EXPECT_EQ(place_.run({"ckpt", "prune", "run", "--abandoned", "--dry-run"}).out,
            "would remove run/checkpoints/abandoned-step-20\n");
  EXPECT_EQ(place_.run({"ckpt", "prune", "run", "--abandoned"}).out, "removed run/checkpoints/abandoned-step-20\n");
  EXPECT_FALSE(fs::exists(place_.path("run/checkpoints/abandoned-step-20")));
  EXPECT_TRUE(fs::exists(place_.path("run/checkpoints/step-40")));
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

  EXPECT_EQ(place_.run({"export", "--checkpoint", "run", "--output", "w.pt"}).code, 2) << "it already exists";
  const ProgramEnd many = place_.run({"export", "--checkpoint", "run", "--output", "many.npy"});
  EXPECT_EQ(many.code, 2);
  EXPECT_THAT(many.err, HasSubstr("name one with --tensor"));
  EXPECT_EQ(place_.run({"export", "--checkpoint", "run", "--output", "w.h5"}).code, 2);
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
