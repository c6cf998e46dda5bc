// SPDX-License-Identifier: Apache-2.0
// What a person can get wrong, by the program that was built: the exit code, one clear message, nothing half-written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/data/support/written_idx.h"
#include "tests/train/app/commands/support/workplace.h"

namespace gradring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using tests::ProgramEnd;
using tests::short_training;
using tests::Words;
using tests::Workplace;

struct BadInput {
  std::string name;
  Words options;  ///< beside those of a short training, which they override
  int code = 0;
  Words said;  ///< what the message must hold
  Workplace::Variables variables{};
  std::function<void(const tests::TempFolder&)> prepare = [](const tests::TempFolder&) {};
};

void PrintTo(const BadInput& input, std::ostream* out) { *out << input.name; }

void put_data(const tests::TempFolder& folder, const std::string& name, const tests::Bytes& bytes) {
  folder.write(std::filesystem::path("data") / name, bytes);
}

/// A good .gz in place of the plain training images, but for its last bytes.
void truncate_gzip(const tests::TempFolder& folder) {
  tests::Bytes bytes = tests::gzipped(tests::idx_bytes({64, 28, 28}, tests::counting(64 * 28 * 28)));
  bytes.resize(bytes.size() / 2);
  std::filesystem::remove(folder.path() / "data" / tests::kTrainImages);
  put_data(folder, std::string(tests::kTrainImages) + ".gz", bytes);
}

/// Images of 4 TB by their header, in a sparse .gz that could hold them.
void promise_much(const tests::TempFolder& folder) {
  const std::string name = std::string(tests::kTrainImages) + ".gz";
  std::filesystem::remove(folder.path() / "data" / tests::kTrainImages);
  put_data(folder, name, tests::gzipped(tests::idx_bytes({64, 1u << 18, 1u << 18}, tests::counting(1000))));
  std::filesystem::resize_file(folder.path() / "data" / name, std::uint64_t{5} << 30);
}

void put_config(const tests::TempFolder& folder, std::string_view text) {
  folder.write("F.toml", tests::Bytes(text.begin(), text.end()));
}

std::vector<BadInput> bad_inputs() {
  return {
      {"MissingDataFolder",
       {"--data-dir", "nowhere"},
       4,
       {"nowhere: ", "download them: gradring data fetch mnist --data-dir nowhere", "name the folder that has them"}},
      {"TestImagesOfAnotherSize",
       {},
       4,
       {"data: ", "training samples of [28, 28, 1] in 10 classes, but test samples of [14, 14, 1]",
        "use files of one data set"},
       {},
       [](const tests::TempFolder& folder) {
         put_data(folder, std::string(tests::kTestImages),
                  tests::idx_bytes({32, 14, 14}, tests::counting(32 * 14 * 14)));
       }},
      {"NcclWithoutGpus", {"--comm", "nccl"}, 2, {"--comm nccl", "for GPUs", "leave them out"}},
      {"DirectSumsOverTcp",
       {"--comm", "tcp", "--allreduce", "direct"},
       2,
       {"--allreduce direct", "leave out --comm tcp"}},
      {"UnknownPrecision", {"--precision", "fp8"}, 2, {"--precision", "bf16"}},
      {"NothingToAccumulate", {"--accumulate", "0"}, 2, {"--accumulate", "1"}},
      {"StepsOfNoSize", {"--schedule", "step"}, 2, {"--schedule-step-size"}},
      {"LeastRateOfAConstant", {"--min-lr", "1e-4"}, 2, {"--min-lr", "cosine"}},
      {"FallOfAConstant", {"--schedule-gamma", "0.5"}, 2, {"--schedule-gamma", "--schedule step"}},
      {"TwoWarmUps", {"--schedule", "one-cycle", "--warmup-steps", "2"}, 2, {"leave out --warmup-steps"}},
      {"WarmUpWithoutEnd", {"--warmup-steps", "1000000"}, 2, {"--warmup-steps 1000000", "lower it"}},
      {"ClippedToNothing", {"--clip-norm", "1e-50"}, 2, {"--clip-norm"}},
      {"HalvesOnTheWireOfFp32", {"--wire-dtype", "fp16"}, 2, {"--wire-dtype fp16", "--precision fp16"}},
      {"LossScaleOfNothing", {"--loss-scale", "0"}, 2, {"--loss-scale"}},
      {"LossScaleBeyondFp32",
       {"--precision", "fp16", "--loss-scale", "1e39"},
       2,
       {"--loss-scale is '1e39', but must be a number from 1.18e-38 to 3.4e+38"}},
      {"HomeOfAUser", {"--trace=~else/t.json"}, 2, {"--trace is '~else/t.json'", "write it in full"}},
      {"PointerInsteadOfImages",
       {},
       4,
       {"train-images-idx3-ubyte: is a Git LFS pointer to a file", "git lfs pull"},
       {},
       [](const auto& folder) {
         const std::string_view pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1727\n";
         put_data(folder, std::string(tests::kTrainImages), tests::Bytes(pointer.begin(), pointer.end()));
       }},
      {"NoDataFolderGiven",
       {"--data-dir="},
       2,
       {"mnist is read from files", "--data-dir", "gradring data fetch mnist"}},
      {"TruncatedGzip", {}, 4, {"train-images-idx3-ubyte.gz: ends in the middle"}, {}, truncate_gzip},
      {"MoreThanTheMemoryHolds",
       {},
       4,
       {"train-images-idx3-ubyte.gz: the 4398046511104 bytes that its header promises need 4194304 MiB of memory, but"},
       {},
       promise_much},
      {"WrongMagic",
       {},
       4,
       {"train-labels-idx1-ubyte: starts with"},
       {},
       [](const auto& folder) { put_data(folder, tests::kTrainLabels, tests::Bytes(72, 7)); }},
      {"CountsThatDiffer",
       {},
       4,
       {"train-labels-idx1-ubyte: ", "63", "64"},
       {},
       [](const auto& folder) { put_data(folder, tests::kTrainLabels, tests::idx_bytes({63}, tests::Bytes(63, 1))); }},
      {"LabelsOutOfRange",
       {},
       4,
       {"t10k-labels-idx1-ubyte: ", "label 10 in sample 0, but mnist has the classes 0 to 9",
        "use the labels of mnist"},
       {},
       [](const auto& folder) { put_data(folder, tests::kTestLabels, tests::idx_bytes({32}, tests::Bytes(32, 10))); }},
      {"UnknownOption", {"--batch-sise", "3"}, 2, {"unknown option --batch-sise. Did you mean '--batch-size'?"}},
      {"UnknownDataset", {"--dataset", "fashon-mnist"}, 2, {"one of ", "Did you mean 'fashion-mnist'?"}},
      {"UnknownKey",
       {"--config", "F.toml"},
       2,
       {"F.toml:2: 'epoch' is not an option. Did you mean 'epochs'?"},
       {},
       [](const auto& folder) { put_config(folder, "lr = 0.1\nepoch = 3\n"); }},
      {"BadToml",
       {"--config", "F.toml"},
       2,
       {"F.toml:1: invalid TOML"},
       {},
       [](const auto& folder) { put_config(folder, "lr = = 0.1\n"); }},
      {"UnknownVariable", {}, 2, {"GRADRING_EPOCH ", "Did you mean 'GRADRING_EPOCHS'?"}, {{"GRADRING_EPOCH", "3"}}},
      {"UnknownAugmentation", {"--augment", "flp"}, 2, {"unknown augmentation 'flp'", "Did you mean 'flip'?"}},
      {"AugmentationBeyondTheImages", {"--augment", "crop=28"}, 2, {"augmentation 'crop=28' for images of 28 x 28"}},
      {"AlphaOfNoMixture", {"--augment", "mixup=0"}, 2, {"'mixup=0': expected the alpha of a Beta distribution"}},
      {"SmoothingOfAllWeight", {"--label-smoothing", "1"}, 2, {"--label-smoothing must be below 1"}},
      {"NoBatch", {"--batch-size", "0"}, 2, {"--batch-size is '0', but must be a whole number from 1"}},
      {"BatchBeyondTheData", {"--batch-size", "65"}, 2, {"--batch-size is 65, but mnist has 64 training samples"}},
      {"NoNumber", {"--lr", "fast"}, 2, {"--lr is 'fast', but must be a finite number"}},
      {"MissingValue", {"--lr"}, 2, {"--lr needs a value"}},
      {"NothingToDo", {"--steps", "0", "--epochs", "0"}, 2, {"nothing to do"}},
      {"SimulatedGpuOnACpu", {"--simulate-gpu", "h100"}, 2, {"--simulate-gpu h100 requires --device cuda, found cpu"}},
      {"NoSuchCard", {"--simulate-gpu", "v100"}, 2, {"--simulate-gpu is 'v100'", "h100"}},
      {"NoGpu", {"--device", "cuda"}, 3, {"cannot use cuda:", "use --device cpu"}},
      {"RunDirectoryThatIsThere",
       {},
       2,
       {"run holds precious, expected an empty directory: choose another, such as ", "run/run"},
       {},
       [](const auto& folder) { folder.write("run/precious", {}); }},
      {"RunDirectoryThatIsAFile",
       {"--run-dir", "file"},
       2,
       {"file is not a directory, expected an empty directory: choose another\n"},
       {},
       [](const auto& folder) { folder.write("file", {}); }},
      {"RunDirectoryThatIsALinkToNothing",
       {"--run-dir", "link"},
       2,
       {"link is a link to nowhere, which does not exist, expected an empty directory: choose another\n"},
       {},
       [](const auto& folder) { std::filesystem::create_symlink("nowhere", folder.path() / "link"); }},
      {"EmptyRunDirectory", {"--run-dir", ""}, 2, {"--run-dir is empty: give the path of a directory"}},
      {"RunDirectoryThatCannotBe",
       {"--run-dir", "file/run"},
       3,
       {"cannot create the run directory", "choose another"},
       {},
       [](const auto& folder) { folder.write("file", {}); }},
  };
}

/// Of ranks that nobody launched.
std::vector<BadInput> bad_places() {
  return {
      {"RankOutsideTheWorld", {}, 2, {"RANK=5 is outside WORLD_SIZE=2"}, {{"RANK", "5"}, {"WORLD_SIZE", "2"}}},
      {"RankWithoutAWorld", {}, 2, {"RANK is set but WORLD_SIZE is not"}, {{"RANK", "0"}}},
      {"RanksWithinARank",
       {"--nprocs", "2"},
       2,
       {"this process is a rank already"},
       {{"RANK", "0"}, {"WORLD_SIZE", "1"}}},
      {"RanksWithinARankOfMpirun",
       {"--nprocs", "2"},
       2,
       {"--nprocs is 2, but this process is a rank already, rank 1 of 2, started by mpirun: leave --nprocs out"},
       {{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}},
      {"RanksThatNeverCome",
       {"--timeout", "1s"},
       162,
       {"rank 0 waited", "for rank 1, 2 of a world of 3", "timeout"},
       {{"RANK", "0"}, {"WORLD_SIZE", "3"}}},
      {"RankZeroThatNeverComes",
       {"--timeout", "1s"},
       162,
       {"rank 1 of 2 waited for rank 0, which did not connect"},
       {{"RANK", "1"}, {"WORLD_SIZE", "2"}}},
  };
}

class BadInputTest : public ::testing::TestWithParam<BadInput> {
 protected:
  /// Runs gradring and holds it to its promises; `title` begins the line on stderr.
  void expect_refused(const Words& words, const std::string& title) {
    const BadInput& input = GetParam();
    input.prepare(place_.folder());
    const auto before = place_.left();
    const ProgramEnd end = place_.run(words, input.variables);
    EXPECT_EQ(end.code, input.code);
    EXPECT_THAT(end.err, StartsWith(title));
    EXPECT_EQ(tests::reasons_in(end.err), 1) << end.err;
    for (const std::string& text : input.said) EXPECT_THAT(end.err, HasSubstr(text));
    EXPECT_THAT(end.err, Not(HasSubstr(".cpp"))) << "where it was thrown is nothing to a person";
    EXPECT_THAT(end.out, IsEmpty());
    EXPECT_EQ(place_.left(), before) << "nothing half-written";
  }

  Workplace place_;
};

TEST_P(BadInputTest, IsRejected) { expect_refused(short_training(GetParam().options), "gradring train: "); }

std::string name_of(const ::testing::TestParamInfo<BadInput>& test) { return test.param.name; }
INSTANTIATE_TEST_SUITE_P(Inputs, BadInputTest, ::testing::ValuesIn(bad_inputs()), name_of);
INSTANTIATE_TEST_SUITE_P(Places, BadInputTest, ::testing::ValuesIn(bad_places()), name_of);

class LaunchedBadInputTest : public BadInputTest {};

TEST_P(LaunchedBadInputTest, IsRejectedOnce) {
  expect_refused(tests::launched(short_training(GetParam().options)), "gradring launch: rank ");
}

INSTANTIATE_TEST_SUITE_P(Inputs, LaunchedBadInputTest, ::testing::ValuesIn(bad_inputs()), name_of);

TEST(Spawn, SaysOnceWhatItsRanksCannotDo) {
  const Workplace place;
  const ProgramEnd end = place.run(short_training({"--nprocs", "2", "--data-dir", "nowhere"}));
  EXPECT_EQ(end.code, 4);
  EXPECT_THAT(end.err, AllOf(StartsWith("gradring: rank "), HasSubstr("nowhere: ")));
  EXPECT_EQ(tests::reasons_in(end.err), 1) << end.err;
  EXPECT_THAT(place.left(), IsEmpty());
}

TEST(Command, ThatIsNoneIsTold) {
  const Workplace place;
  const ProgramEnd end = place.run({"trian"});
  EXPECT_EQ(end.code, 2);
  EXPECT_EQ(end.err, "gradring: there is no command 'trian'. Did you mean 'train'? Try gradring --help\n");
  EXPECT_EQ(place.run({"ckpt", "list"}).err,
            "gradring ckpt: there is no action 'list'. Did you mean 'ls'? Try gradring ckpt --help\n");
  EXPECT_EQ(place.run({"data", "download"}).err,
            "gradring data: there is no action 'download', expected one of fetch, verify, info, cache. "
            "Try gradring data --help\n");
}

}  // namespace
}  // namespace gradring
