// SPDX-License-Identifier: Apache-2.0
// The same command lines give workers the same environment under torchrun and under our launcher.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/support/run_program.h"
#include "tests/support/temp_folder.h"
#include "tests/train/support/text_of.h"
#include "train/core/doctor/find_python.h"
#include "train/launch/workers/host.h"

namespace gradring {
namespace {

using Words = std::vector<std::string>;
using Table = std::map<std::string, std::string>;
using Variables = std::vector<std::pair<std::string, std::string>>;

/// One command line, in which PORT is a free port and DIR the working folder.
struct Case {
  Words words;
  Variables variables{};
  int workers = 1;
  Words command = {"--no_python", "PROBE", "train", "dump=env"};
};

/// Limited to what torch 1.13 supports under Python 3.11: no 0 and 3 for -r and -t, no option names with dashes.
const std::vector<Case> kCases = {
    {{}},
    {{"--nproc_per_node=2"}, {}, 2},
    {{"--nproc_per_node", "3"}, {}, 3},
    {{"--nproc_per_node=12"}, {}, 12},
    {{"--nnodes=1"}},
    {{"--nnodes=1:1", "--nproc_per_node=2"}, {}, 2},
    {{"--node_rank=0"}},
    {{"--standalone"}},
    {{"--standalone", "--nproc_per_node=2"}, {}, 2},
    {{"--standalone", "--nnodes=1", "--nproc_per_node=3", "--role=r"}, {}, 3},
    {{"--rdzv_backend=c10d", "--rdzv_endpoint=localhost:PORT", "--rdzv_id=job"}},
    {{"--rdzv_backend=c10d", "--rdzv_endpoint=localhost:PORT", "--nproc_per_node=2"}, {}, 2},
    {{"--rdzv_backend=c10d", "--rdzv_endpoint=localhost:PORT", "--rdzv_conf=join_timeout=60,close_timeout=20"}},
    {{"--rdzv_backend=static", "--rdzv_endpoint=127.0.0.1:PORT"}},
    {{"--rdzv_endpoint=localhost:PORT", "--nproc_per_node=2"}, {}, 2},
    {{"--rdzv_conf=timeout=60"}},
    {{"--rdzv_id=x"}},
    {{"--rdzv_id", "a run"}},
    {{"--master_addr=localhost", "--master_port=PORT"}},
    {{"--master_addr", "127.0.0.1"}},
    {{"--master_port", "PORT", "--nproc_per_node=2"}, {}, 2},
    {{"--role=actor", "--nproc_per_node=2"}, {}, 2},
    {{"--max_restarts=3"}},
    {{"--start_method=fork"}},
    {{"--start_method", "forkserver"}},
    {{"--log_dir=DIR/logs"}},
    {{"-r", "0:1,1:1", "-t", "0:1", "--nproc_per_node=2"}, {}, 2},
    {{}, {{"PET_NPROC_PER_NODE", "2"}}, 2},
    {{}, {{"PET_ROLE", "critic"}}},
    {{"--role=actor"}, {{"PET_ROLE", "critic"}}},
    {{}, {{"PET_MASTER_PORT", "PORT"}}},
    {{}, {{"PET_RDZV_ID", "pet"}, {"PET_MAX_RESTARTS", "2"}}},
    {{}, {{"PET_STANDALONE", "1"}}},
    {{"--rdzv_id=y"}, {{"PET_STANDALONE", "0"}, {"PET_RDZV_ID", "z"}}},
    {{}, {{"PET_NO_PYTHON", "1"}}, 1, {"PROBE", "train", "dump=env"}},
    {{"--nproc_per_node=2"}, {{"OMP_NUM_THREADS", "3"}}, 2},
    {{"--nproc_per_node=2"}, {{"CUDA_VISIBLE_DEVICES", "1,0"}}, 2},
    {{}, {{"MINE", "a b=c"}}},
    {{"--max_restarts=1"}, {}, 1, {"--no_python", "PROBE", "train", "@0:exit=1", "dump=env"}},
    {{"--nproc_per_node=2"}, {}, 2, {"--no_python", "PROBE", "train", "dump=env", "say=${local_rank}"}},
    {{"--nproc_per_node=2"}, {}, 2, {"dump.py", "env"}},
    {{}, {}, 1, {"-m", "dump", "env"}},
};

constexpr const char* kDumpScript = R"(import os, sys
with open(f"{sys.argv[1]}.{os.environ['RANK']}", "w") as file:
    for name, value in os.environ.items():
        print(f"{name}={value}", file=file)
)";

std::string filled_in(std::string text, const std::string& folder, const std::string& port) {
  const std::pair<std::string, std::string> macros[] = {
      {"PORT", port}, {"DIR", folder}, {"PROBE", GRADRING_LAUNCH_PROBE}};
  for (const auto& [macro, value] : macros)
    if (const auto at = text.find(macro); at != std::string::npos && text != "PET_MASTER_PORT")
      text.replace(at, macro.size(), value);
  return text;
}

/// One case in its own folder.
struct Prepared {
  std::filesystem::path folder;
  Words words;
  Variables variables;
};

Prepared prepare(const Case& one, const std::filesystem::path& folder, const std::string& python,
                 const std::string& port) {
  Prepared ready{.folder = folder, .words = {"--monitor_interval=0.05"}};
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "dump.py") << kDumpScript;
  Words all = one.words;
  if (std::ranges::find(all, "-r") == all.end()) all.insert(all.begin(), {"-r", "1", "-t", "1"});
  all.insert(all.end(), one.command.begin(), one.command.end());
  for (const std::string& word : all) ready.words.push_back(filled_in(word, folder, port));
  for (const auto& [name, value] : one.variables) ready.variables.emplace_back(name, filled_in(value, folder, port));
  ready.variables.emplace_back("PYTHON_EXEC", python);  // not a wrapper that changes the environment
  ready.variables.emplace_back("TMPDIR", folder);
  return ready;
}

/// The environment that a worker dumped.
Table environment_in(const std::filesystem::path& file) {
  std::istringstream lines(tests::text_of(file));
  Table table;
  for (std::string line; std::getline(lines, line);)
    if (const auto sign = line.find('='); sign != std::string::npos)
      table[line.substr(0, sign)] = line.substr(sign + 1);
  return table;
}

/// Makes two environments comparable: for values that must differ, only their presence is compared.
void forgive(Table& table, const Case& one) {
  // Set by the shell, by Python, or by our launcher only.
  for (const char* name :
       {"_", "LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "TMPDIR", "GRADRING_STORE", "GRADRING_PROGRESS_FILE"})
    table.erase(name);
  // Renamed in torch 2.2.
  if (table.erase("NCCL_ASYNC_ERROR_HANDLING") > 0) table["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "1";
  const bool threads_given = std::ranges::any_of(one.variables, [](auto& it) { return it.first == "OMP_NUM_THREADS"; });
  if (!threads_given) table.erase("OMP_NUM_THREADS");  // torchrun: 1 for several workers; ours: a share of the cores
  table["TORCHELASTIC_ERROR_FILE"] = table.contains("TORCHELASTIC_ERROR_FILE") ? "there" : "";
  // torchrun's static agent serves a store at MASTER_PORT, ours opens no port.
  table.erase("TORCHELASTIC_USE_AGENT_STORE");
  const bool random_id = table["TORCHELASTIC_RUN_ID"].size() == 36;
  if (random_id) table["TORCHELASTIC_RUN_ID"] = "random";
}

/// Whether the command line leaves the port of a static rendezvous open. torchrun then takes 29500; from 2.15 on, it runs
/// as with --standalone.
bool is_without_port(const Case& one) {
  const auto gives_port = [](const std::string& word) {
    return word.starts_with("--master_port") || word.starts_with("--rdzv_endpoint");
  };
  return std::ranges::none_of(one.words, gives_port) &&
         std::ranges::none_of(one.variables, [](const auto& it) { return it.first == "PET_MASTER_PORT"; });
}

bool is_dynamic(const Case& one) {
  const auto has = [&](const std::string& word) { return std::ranges::find(one.words, word) != one.words.end(); };
  return has("--standalone") || has("--rdzv_backend=c10d") ||
         std::ranges::find(one.variables, std::pair<std::string, std::string>("PET_STANDALONE", "1")) !=
             one.variables.end();
}

/// "ours NAME=value", "theirs NAME=value"
std::vector<std::string> differences(const Table& ours, const Table& theirs) {
  std::vector<std::string> lines;
  const auto note = [&](const Table& some, const Table& others) {
    for (const auto& [name, value] : some)
      if (const auto it = others.find(name); it == others.end() || it->second != value)
        lines.push_back((&some == &ours ? "ours " : "theirs ") + name + "=" + value);
  };
  note(ours, theirs);
  note(theirs, ours);
  return lines;
}

void expect_equal(const Case& one, const Prepared& theirs, const Prepared& ours) {
  for (int rank = 0; rank < one.workers; ++rank) {
    Table expected = environment_in(theirs.folder / ("env." + std::to_string(rank)));
    Table found = environment_in(ours.folder / ("env." + std::to_string(rank)));
    EXPECT_FALSE(expected.empty()) << "torchrun's worker left nothing: "
                                   << tests::text_of(theirs.folder / "torchrun.log");
    if (!expected.contains("TORCHELASTIC_SIGNALS_TO_HANDLE"))
      found.erase("TORCHELASTIC_SIGNALS_TO_HANDLE");  // an old torch
    forgive(expected, one);
    forgive(found, one);
    if (is_dynamic(one) || is_without_port(one)) {  // free ports differ
      EXPECT_EQ(std::exchange(expected["MASTER_PORT"], "").empty(), std::exchange(found["MASTER_PORT"], "").empty());
    }
    if (is_without_port(one) && !is_dynamic(one) && expected["TORCHELASTIC_RUN_ID"] == "random") {  // torch 2.15
      for (const char* name : {"MASTER_ADDR", "TORCHELASTIC_RUN_ID"}) expected[name] = found[name];
    }
    EXPECT_THAT(differences(found, expected), testing::IsEmpty()) << "rank " << rank;
  }
}

/// Runs all cases by torchrun and returns its output.
std::string run_by_torchrun(const std::string& python, const tests::TempFolder& folder,
                            const std::vector<Prepared>& cases) {
  std::ofstream list(folder.path() / "cases.json");
  for (const Prepared& one : cases) {
    nlohmann::json variables = nlohmann::json::object();
    for (const auto& [name, value] : one.variables) variables[name] = value;
    list << nlohmann::json({{"words", one.words}, {"variables", variables}, {"folder", one.folder.string()}}) << "\n";
  }
  list.close();
  const auto end = tests::run_program(
      {.command = {python, GRADRING_TORCHRUN_MANY, (folder.path() / "cases.json").string()}, .folder = folder.path()});
  return end.out + end.err;
}

TEST(WorkersUnderTorchrun, HaveTheSameEnvironmentHere) {
  const auto python = train::search_python_with_torch();
  if (!python.python) GTEST_SKIP() << python.to_string();
  const tests::TempFolder folder;
  std::vector<Prepared> theirs, ours;
  for (std::size_t i = 0; i < kCases.size(); ++i) {
    const std::string port = std::to_string(train::free_tcp_port());  // cases run one after the other
    theirs.push_back(prepare(kCases[i], folder.path() / fmt::format("theirs_{}", i), *python.python, port));
    ours.push_back(prepare(kCases[i], folder.path() / fmt::format("ours_{}", i), *python.python, port));
  }
  const std::string said = run_by_torchrun(*python.python, folder, theirs);
  for (std::size_t i = 0; i < kCases.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i << ": " << testing::PrintToString(kCases[i].words)
                                    << testing::PrintToString(kCases[i].variables));
    tests::ProgramSpec spec{.command = {GRADRING_LAUNCH_PROBE, "launch"}, .folder = ours[i].folder};
    spec.variables.assign(ours[i].variables.begin(), ours[i].variables.end() - 1);  // run_program sets TMPDIR itself
    spec.command.insert(spec.command.end(), ours[i].words.begin(), ours[i].words.end());
    const auto end = tests::run_program(spec);
    EXPECT_EQ(end.code, 0) << end.err;
    expect_equal(kCases[i], theirs[i], ours[i]);
  }
  std::cout << kCases.size() << " command lines beside torch " << python.torch_version << "\n";
  EXPECT_GE(kCases.size(), 30u);
  if (HasFailure()) std::cout << said;
}

}  // namespace
}  // namespace gradring
