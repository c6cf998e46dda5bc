// SPDX-License-Identifier: Apache-2.0
// `gradring cuda run` and `gradring cuda nvcc`, as a person calls them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "kernels/base/file.h"
#include "kernels/simulated_gpu/run_options.h"
#include "tests/train/app/commands/support/workplace.h"
#include "train/app/cuda/cuda_program.h"

namespace gradring::tests {
namespace {

namespace fs = std::filesystem;
using simulated_gpu::RunOptions;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kSource = GRADRING_RACE;

class CudaCommand : public testing::Test {
 protected:
  ProgramEnd run(const Words& words, const Workplace::Variables& variables = {}) const {
    return place_.run(joined({"cuda", "run"}, words), variables);
  }

  /// An executable file; returns its path.
  std::string script(const std::string& name, const std::string& text) const {
    std::ofstream(place_.path(name)) << text;
    fs::permissions(place_.path(name), fs::perms::owner_all);
    return place_.path(name);
  }

  ProgramEnd nvcc(const Words& words) const {
    return run_program({.command = joined({GRADRING_NVCC}, words), .folder = place_.path("")});
  }

  void need_library() const {
    if (!fs::exists(fs::path(GRADRING_BINARY).parent_path() / "cuda_program/libcudart.so.13"))
      GTEST_SKIP() << "this build has no simulated GPUs for CUDA programs";
  }

  Workplace place_;
};

TEST_F(CudaCommand, RejectsOptionsThatCannotBe) {
  const std::pair<Words, std::string> cases[] = {{{}, "expected a program"},
                                                 {{"--"}, "expected a program"},
                                                 {{"--gpu", "gtx580", "true"}, "--gpu is 'gtx580', but must be "},
                                                 {{"--gpu", "none.card", "true"}, "none.card"},
                                                 {{"--gpus", "0", "true"}, "--gpus"},
                                                 {{"--kernel", "[", "true"}, "regular expression"},
                                                 {{"--error-exitcode", "256", "true"}, "--error-exitcode"},
                                                 {{"--time-limit", "soon", "true"}, "--time-limit"},
                                                 {{"--suppressions", "none.txt", "true"}, "there is no such file"},
                                                 {{"--suppressions", "wrong", "true"}, "'kind=none' is not valid"},
                                                 {{"--json", "none/report.json", "true"}, "there is no folder"},
                                                 {{"--gpuz", "h100", "true"}, "Did you mean '--gpu"}};
  std::ofstream(place_.path("wrong")) << "kind=none\n";
  for (const auto& [words, message] : cases) {
    SCOPED_TRACE(testing::PrintToString(words));
    const ProgramEnd end = run(words);
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.err, AllOf(StartsWith("gradring cuda: "), HasSubstr(message)));
  }
  EXPECT_THAT(run({"--gpu", "gtx580", "true"}).err, AllOf(HasSubstr("a100"), HasSubstr("h100"), HasSubstr("t4")));
}

TEST_F(CudaCommand, NamesAProgramThatCannotBeExecuted) {
  EXPECT_EQ(run({"./none"}).code, 127);
  EXPECT_THAT(run({"no-such-program"}).err, HasSubstr("there is no program no-such-program"));
  EXPECT_EQ(run({"./data"}).code, 126);
  std::ofstream(place_.path("text")) << "echo\n";
  need_library();
  if (IsSkipped()) return;
  EXPECT_EQ(run({"./text"}).code, 126);
}

TEST_F(CudaCommand, GivesScriptsTheEnvironmentAndReturnsTheirExitCode) {
  need_library();
  if (IsSkipped()) return;
  const std::string show = script("show", "echo \"$LD_LIBRARY_PATH\"; echo \"$GRADRING_SIMULATED_GPU\"; exit 7\n");
  const ProgramEnd end =
      run({"--gpu=a100", "--gpus", "2", "--seed", "3", "-t", "2", "--counters", "--kernel", "^sum", "--time-limit",
           "1m", "--json", "r.json", "--error-exitcode", "9", "--formal", "--", show},
          {{"LD_LIBRARY_PATH", "/before"}});
  EXPECT_EQ(end.code, 7) << end.err;
  const std::size_t line = end.out.find('\n');
  EXPECT_EQ(end.out.substr(0, line), (fs::path(GRADRING_BINARY).parent_path() / "cuda_program").string() + ":/before");
  const RunOptions expected{.gpu = "a100",
                            .gpus = 2,
                            .seed = 3,
                            .threads = 2,
                            .counters = true,
                            .kernel = "^sum",
                            .time_limit_s = 60,
                            .error_exitcode = 9,
                            .formal = true};
  RunOptions found = simulated_gpu::run_options_from(end.out.substr(line + 1));
  EXPECT_THAT(std::exchange(found.record, ""), ContainsRegex("^/proc/[0-9]+/fd/[0-9]+$"));
  EXPECT_EQ(found, expected);
}

/// Whether the process is there, other than as one that nobody has waited for.
bool is_alive(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return !text.empty() && text.find(") Z ") == text.npos;
}

TEST_F(CudaCommand, LeavesNothingOfAProgramBehind) {
  need_library();
  if (IsSkipped()) return;
  const std::string leaves = script("leaves", "#!/bin/sh\nsetsid sleep 300 >&2 & echo $!\n");
  const ProgramEnd ended = run({leaves});
  EXPECT_EQ(ended.code, 0);
  EXPECT_FALSE(is_alive(ended.out.substr(0, ended.out.find('\n')))) << ended.out;
  EXPECT_THAT(ended.err, HasSubstr("killed 1 process that the program left"));
  const ProgramEnd late = run({"--time-limit", "1s", "sh", "-c", "setsid sleep 300 & echo $!; sleep 300"});
  EXPECT_EQ(late.code, 124);
  EXPECT_THAT(late.err, HasSubstr("the time limit of 1 s is over"));
  EXPECT_FALSE(is_alive(late.out.substr(0, late.out.find('\n')))) << late.out;
}

TEST_F(CudaCommand, ReturnsTheCodeOfASignal) {
  need_library();
  if (IsSkipped()) return;
  EXPECT_EQ(run({"sh", "-c", "kill -SEGV $$"}).code, 139);
  EXPECT_EQ(run({"sh", "-c", "kill -TERM $PPID; sleep 300"}).code, 143) << "which it passes on";
}

TEST_F(CudaCommand, FindsProgramsAlongPathAndPassesArgumentsOn) {
  need_library();
  if (IsSkipped()) return;
  script("print-words", "#!/bin/sh\nprintf '<%s>' \"$@\"\n");
  const ProgramEnd end =
      run({"print-words", "--gpu", "--", "a b", ""}, {{"PATH", place_.path("").string() + ":/usr/bin:/bin"}});
  EXPECT_EQ(end.out, "<--gpu><--><a b><>") << end.err;
}

TEST_F(CudaCommand, AddsFlagsToNvccWithoutReadingItsOptions) {
  const std::string fake = script("fake", "#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 5\n");
  need_library();
  if (IsSkipped()) return;
  const ProgramEnd end = place_.run({"cuda", "nvcc", "-arch=sm_90", "--", "-o", "a b", "--gpu"}, {{"CUDACXX", fake}});
  EXPECT_EQ(end.code, 5);
  EXPECT_THAT(end.out, StartsWith("<-arch=sm_90><--><-o><a b><--gpu><-cudart><shared><-lineinfo><-L><"));
  const ProgramEnd missing = place_.run({"cuda", "nvcc"}, {{"CUDACXX", "/nowhere/nvcc"}});
  EXPECT_EQ(missing.code, 127);
  EXPECT_THAT(missing.err, HasSubstr("CUDACXX is /nowhere/nvcc"));
}

class CudaProgram : public CudaCommand {
 protected:
  void SetUp() override {
    if (std::string_view(GRADRING_NVCC).empty()) GTEST_SKIP() << "this build has no nvcc";
  }

  /// docs/cuda/reverse.cu as a program.
  fs::path compiled(const std::string& name, const Words& options) const {
    const ProgramEnd end = nvcc(joined({kSource, "-o", name}, options));
    EXPECT_EQ(end.code, 0) << end.err;
    return place_.path(name);
  }
};

TEST_F(CudaProgram, WithTheRuntimeInsideIsRejectedWithWhatToDo) {
  const fs::path program = compiled("static", {"-cudart", "static"});
  EXPECT_TRUE(train::read_program(program).has_static_runtime);
  const fs::path stripped = compiled("stripped", {"-cudart", "static", "-Xlinker", "--strip-all"});
  EXPECT_TRUE(train::read_program(stripped).has_static_runtime);
  need_library();
  if (IsSkipped()) return;
  for (const char* name : {"./static", "./stripped"}) {
    const ProgramEnd end = run({name});
    EXPECT_EQ(end.code, 2);
    EXPECT_THAT(end.err, AllOf(HasSubstr(std::string(name) + " contains the CUDA runtime"),
                               HasSubstr("-cudart shared -lineinfo"), HasSubstr("NVCC_APPEND_FLAGS")));
  }
}

TEST_F(CudaProgram, IsRecognisedByItsDynamicSection) {
  const train::ProgramFile shared = train::read_program(compiled("shared", {"-cudart", "shared"}));
  EXPECT_TRUE(shared.is_elf);
  EXPECT_FALSE(shared.has_static_runtime);
  EXPECT_THAT(shared.needed, Contains("libcudart.so.13"));
  EXPECT_EQ(shared.rpath, "");
  const Words old_tags = {"-cudart", "shared", "-Xlinker", "-rpath=/a:/b", "-Xlinker", "--disable-new-dtags"};
  EXPECT_EQ(train::read_program(compiled("rpath", old_tags)).rpath, "/a:/b");
  EXPECT_FALSE(train::read_program(kSource).is_elf);
}

TEST_F(CudaProgram, ThatFindsNvidiasRuntimeByItselfIsRejected) {
  compiled("rpath", {"-cudart", "shared", "-Xlinker", "-rpath=/a:$ORIGIN/lib", "-Xlinker", "--disable-new-dtags"});
  need_library();
  if (IsSkipped()) return;
  EXPECT_NE(run({"./rpath"}).code, 2) << "there is no library";
  fs::create_directory(place_.path("lib"));
  std::ofstream(place_.path("lib/libcudart.so.13")) << "";
  const ProgramEnd end = run({"./rpath"});
  EXPECT_EQ(end.code, 2);
  EXPECT_THAT(end.err, AllOf(HasSubstr("takes libcudart.so.13 from "), HasSubstr("DT_RPATH")));
}

TEST_F(CudaProgram, ThatIsDamagedIsReadOrRejected) {
  const fs::path program = compiled("whole", {"-cudart", "shared"});
  std::ifstream file(program, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  const fs::path damaged = place_.path("damaged");
  for (std::size_t size = 0; size < whole.size(); size += whole.size() / 100) {
    std::ofstream(damaged, std::ios::binary | std::ios::trunc) << whole.substr(0, size);
    try {
      train::read_program(damaged);
      EXPECT_LT(size, 64u) << "the section table is at the end";
    } catch (const ReadError&) {
    }
  }
  for (std::size_t byte = 16; byte < 64; ++byte) {
    std::string flipped = whole;
    flipped[byte] ^= '\x80';
    std::ofstream(damaged, std::ios::binary | std::ios::trunc) << flipped;
    try {
      train::read_program(damaged);
    } catch (const ReadError&) {
    }
  }
}

/// On simulated GPUs.
class RaceProgram : public CudaProgram {
 protected:
  void SetUp() override {
    CudaProgram::SetUp();
    if (IsSkipped()) return;
    need_library();
    if (IsSkipped()) return;
    Words options = {"-cudart", "shared", "-lineinfo"};
    if (*GRADRING_COMPRESSION) options.emplace_back(GRADRING_COMPRESSION);  // that is read without libzstd
    compiled("race", options);
  }
};

TEST_F(RaceProgram, GetsAFindingWithFileAndLine) {
  const ProgramEnd end = run({"./race"});
  EXPECT_EQ(end.code, 0);
  EXPECT_THAT(end.out, HasSubstr("first "));
  EXPECT_THAT(end.err, AllOf(HasSubstr("race in shared memory"), HasSubstr("in reverse, "), HasSubstr("reverse.cu:9")));
}

TEST_F(RaceProgram, IsToldWhichFunctionsOfTheHostLaunchedTheKernel) {
  EXPECT_THAT(run({"./race"}).err, HasSubstr("\n   called by main+0x"));
}

TEST_F(RaceProgram, CountsWhatItsKernelsExecute) {
  const ProgramEnd counted = run({"--counters", "./race"});
  EXPECT_THAT(counted.err, AllOf(HasSubstr("instruct."), ContainsRegex("\n  reverse +1 "),
                                 ContainsRegex("lines with most warp instructions:\n +[0-9]+  .*reverse.cu:[89]\n")));
  EXPECT_THAT(run({"--counters", "--kernel", "^other", "./race"}).err, Not(HasSubstr("\n  reverse ")));
}

TEST_F(RaceProgram, HasNoFindingsThatAreSuppressed) {
  std::ofstream(place_.path("known")) << "# both sides\nfile=reverse.cu\n";
  const ProgramEnd end = run({"--suppressions", "known", "--error-exitcode", "9", "./race"});
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_THAT(end.err, Not(HasSubstr("race in shared memory")));
}

TEST_F(RaceProgram, EndsWithTheExitCodeThatIsAskedFor) {
  EXPECT_EQ(run({"--error-exitcode", "9", "./race"}).code, 9);
  const ProgramEnd fixed = run({"--error-exitcode", "9", "sh", "-c", "exit 3"});
  EXPECT_EQ(fixed.code, 3);
}

TEST_F(RaceProgram, WritesItsFindingsAsJson) {
  const ProgramEnd end = run({"--counters", "--json", "report.json", "./race"});
  ASSERT_EQ(end.code, 0) << end.err;
  const ProgramEnd check = run_program({.command = {"/usr/bin/env", "python3", GRADRING_CHECK_REPORT,
                                                    GRADRING_REPORT_SCHEMA, place_.path("report.json")},
                                        .folder = place_.path("")});
  if (check.code == 77) GTEST_SKIP() << check.out;
  EXPECT_EQ(check.code, 0) << check.out << check.err;
  EXPECT_THAT(check.out,
              AllOf(HasSubstr("shared-race reverse "), HasSubstr("reverse.cu:9"), HasSubstr("\n1 launches")));
}

/// Ends in the way that its argument says, after blocks have stored different values to one word.
constexpr const char* kEnds = R"(#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>
__global__ void race(int* data) { *data = blockIdx.x; }
void launch() {
  int* data;
  cudaMalloc(&data, 4);
  race<<<2, 1>>>(data);
  cudaDeviceSynchronize();
  cudaFree(data);
}
int main(int, char** arguments) {
  const char how = arguments[1][0];
  if (how == 'f') {
    if (fork() == 0) {
      launch();
      _exit(0);
    }
    wait(nullptr);
    return 0;
  }
  launch();
  if (how == 'a') abort();
  if (how == 'q') _exit(0);
  if (how == 'k') kill(getpid(), SIGKILL);
})";

class ProgramThatEnds : public RaceProgram {
 protected:
  void SetUp() override {
    RaceProgram::SetUp();
    if (IsSkipped()) return;
    std::ofstream(place_.path("ends.cu")) << kEnds;
    const ProgramEnd end = nvcc({place_.path("ends.cu"), "-o", "ends", "-cudart", "shared", "-lineinfo"});
    ASSERT_EQ(end.code, 0) << end.err;
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(place_.path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(ProgramThatEnds, IsJudgedHoweverItEnds) {
  const std::pair<const char*, int> cases[] = {{"abort", 134}, {"quit", 9}, {"kill", 137}, {"fork", 9}, {"main", 9}};
  for (const auto& [how, code] : cases) {
    SCOPED_TRACE(how);
    const ProgramEnd end = run({"--error-exitcode", "9", "--json", "report.json", "./ends", how});
    EXPECT_EQ(end.code, code);
    EXPECT_THAT(end.err, AllOf(HasSubstr("race in global memory"), ContainsRegex("1 error,|errors: 1,")));
    EXPECT_THAT(text_of("report.json"),
                AllOf(HasSubstr("\"errors\": 1"), HasSubstr("\"kind\": \"block-race\""), HasSubstr("ends.cu")));
  }
}

TEST_F(ProgramThatEnds, HasAReportForEachProcessThatIsStarted) {
  const Words both = {"sh", "-c", "./ends main & ./ends abort; wait; exit 0"};
  EXPECT_EQ(run(joined({"--json", "all.json"}, both)).code, 0);
  EXPECT_THAT(text_of("all.json"), HasSubstr("\"errors\": 2"));
  EXPECT_EQ(run(joined({"--error-exitcode", "9", "--json", "one-%p.json"}, both)).code, 9);
  std::size_t reports = 0;
  for (const auto& entry : fs::directory_iterator(place_.path("")))
    if (const std::string name = entry.path().filename(); name.starts_with("one-")) {
      ++reports;
      EXPECT_EQ(name.find('%'), name.npos);
      EXPECT_THAT(text_of(name), HasSubstr("\"errors\": 1"));
    }
  EXPECT_EQ(reports, 2u);
}

}  // namespace
}  // namespace gradring::tests
