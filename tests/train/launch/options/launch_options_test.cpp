// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/train/launch/options/parsed.h"

namespace gradring::train {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kFreePort = 0;  // a free one in each attempt

TEST(ParseLaunch, TrainIsThisProgram) {
  const auto options = parse({"--nproc-per-node", "2", "train", "--nproc-per-node", "x"});
  EXPECT_EQ(options.nproc_per_node, 2);
  EXPECT_EQ(options.program, "/bin/gradring");
  EXPECT_THAT(options.arguments, ElementsAre("train", "--nproc-per-node", "x"));
}

TEST(ParseLaunch, AfterTwoDashesAnyProgram) {
  const auto options = parse({"--", "python3", "-u", "--", "x.py"});
  EXPECT_EQ(options.program, "python3");
  EXPECT_THAT(options.arguments, ElementsAre("-u", "--", "x.py"));
  EXPECT_EQ(options.nproc_per_node, 1);
}

TEST(ParseLaunch, KnowsBothSpellingsAndBothForms) {
  for (const Words& words : {Words{"--nproc-per-node", "3"}, Words{"--nproc_per_node", "3"},
                             Words{"--nproc-per-node=3"}, Words{"--nproc_per_node=3"}, Words{"--nproc_per-node=3"}}) {
    Words all = words;
    all.push_back("train");
    EXPECT_EQ(parse(all).nproc_per_node, 3);
  }
}

TEST(ParseLaunch, AutoIsTheNumberOfCores) {
  EXPECT_EQ(parse({"--nproc-per-node=auto", "train"}).nproc_per_node, 6);
  EXPECT_EQ(parse({"--nproc-per-node=cpu", "train"}).nproc_per_node, 6);
}

TEST(ParseLaunch, VariablesStandBetweenCommandLineAndDefaults) {
  const std::map<std::string, std::string> variables = {
      {"PET_NPROC_PER_NODE", "4"}, {"PET_STANDALONE", "1"}, {"PET_RDZV_ID", "job"}, {"PET_KILL_GRACE", "2.5"}};
  const auto options = parse({"--nproc-per-node=2", "train"}, variables);
  EXPECT_EQ(options.nproc_per_node, 2);
  EXPECT_EQ(options.run_id, "job");
  EXPECT_EQ(options.master_addr, "localhost");
  EXPECT_EQ(options.kill_grace, std::chrono::milliseconds(2500));
  EXPECT_EQ(parse({"train"}, {{"PET_STANDALONE", "0"}}).master_addr, "127.0.0.1");
}

TEST(ParseLaunch, TakesTheGraceInAnyUnit) {
  const std::vector<std::pair<std::string, int>> cases = {
      {"30", 30'000}, {"0.1", 100}, {"30s", 30'000}, {"1.5s", 1500}, {"500ms", 500}, {"2m", 120'000}, {"0", 0}};
  for (const auto& [text, milliseconds] : cases)
    EXPECT_EQ(parse({"--kill-grace", text, "train"}).kill_grace, std::chrono::milliseconds(milliseconds)) << text;
}

TEST(ParseLaunch, StandaloneHasAnIdAndAPortOfItsOwnUnlessTheyAreGiven) {
  const auto alone = parse({"--standalone", "train"});
  EXPECT_EQ(alone.run_id, "random");
  EXPECT_EQ(alone.master_addr, "localhost");
  EXPECT_EQ(alone.master_port, kFreePort);
  const auto given = parse({"--master-port=7", "--standalone", "--rdzv-id=x", "--master-addr=h", "train"});
  EXPECT_EQ(given.run_id, "x");
  EXPECT_EQ(given.master_addr, "h");
  EXPECT_EQ(given.master_port, 7);
}

TEST(ParseLaunch, AcceptsWhatOneNodeMeans) {
  EXPECT_EQ(fault_of({"--nnodes=1", "--node-rank=0", "--max-restarts=0", "train"}), "");
  EXPECT_EQ(fault_of({"--nnodes", "1:1", "train"}), "");
}

TEST(ParseLaunch, CountsGpusAsTorchrunDoes) {
  EXPECT_EQ(parse({"--nproc-per-node=auto", "train"}, {}, 4).nproc_per_node, 4);
  EXPECT_EQ(parse({"--nproc-per-node=gpu", "train"}, {}, 4).nproc_per_node, 4);
  EXPECT_EQ(parse({"--nproc-per-node=cpu", "train"}, {}, 4).nproc_per_node, 6);
  EXPECT_EQ(parse({"--nproc-per-node=gpu", "--devices=3,5", "train"}, {}, 4).nproc_per_node, 2);
}

TEST(ParseLaunch, OneWorkerADeviceUnlessTheNumberIsGiven) {
  EXPECT_EQ(parse({"train"}).nproc_per_node, 1);
  EXPECT_EQ(parse({"--devices=3,5", "train"}).nproc_per_node, 2);
  EXPECT_EQ(parse({"--devices=3,5", "--nproc-per-node=1", "train"}).nproc_per_node, 1);
  EXPECT_THAT(parse({"--devices=3,5", "train"}).devices, ElementsAre("3", "5"));
}

TEST(ParseLaunch, VirtualRanksHaveADeviceEach) {
  EXPECT_THAT(parse({"--virtual-local-rank", "--nproc-per-node=2", "train"}).devices, ElementsAre("0", "1"));
  EXPECT_THAT(parse({"--virtual-local-rank", "--nproc-per-node=2", "train"}, {{"CUDA_VISIBLE_DEVICES", "4,7"}}).devices,
              ElementsAre("4", "7"));
}

TEST(ParseLaunch, RunsPythonAsTorchrunDoes) {
  const auto script = parse({"train.py", "--nproc-per-node", "x"});
  EXPECT_EQ(script.program, "python3");
  EXPECT_THAT(script.arguments, ElementsAre("-u", "train.py", "--nproc-per-node", "x"));
  EXPECT_THAT(parse({"-m", "pkg.train", "a"}).arguments, ElementsAre("-u", "-m", "pkg.train", "a"));
  EXPECT_THAT(parse({"--run-path", "script"}).arguments, ElementsAre("-u", "script"));
  EXPECT_EQ(parse({"-m", "pkg"}, {{"PYTHON_EXEC", "/opt/python"}}).program, "/opt/python");
  EXPECT_THAT(parse({"train"}, {{"PET_MODULE", "1"}}).arguments, ElementsAre("-u", "-m", "train"));
}

TEST(ParseLaunch, WithNoPythonTheWordIsTheProgram) {
  for (const Words& words : {Words{"--no-python", "train", "-x"}, Words{"--no_python", "--", "train", "-x"}}) {
    EXPECT_EQ(parse(words).program, "train");
    EXPECT_THAT(parse(words).arguments, ElementsAre("-x"));
  }
}

TEST(ParseLaunch, RestartsAndTheirRules) {
  const auto rules = parse({"--max-restarts=3", "--backoff=2s..1m", "--min-progress-steps=50", "--", "x"}).restarts;
  EXPECT_EQ(rules.most, 3);
  EXPECT_EQ(rules.first_backoff, std::chrono::seconds(2));
  EXPECT_EQ(rules.longest_backoff, std::chrono::minutes(1));
  EXPECT_EQ(rules.min_progress_steps, 50);
  EXPECT_TRUE(rules.final_codes.empty());
  EXPECT_EQ(parse({"--backoff=4", "train"}).restarts.longest_backoff, std::chrono::seconds(4));
  EXPECT_EQ(parse({"train"}).restarts.min_progress_steps, 1);
  EXPECT_FALSE(parse({"--", "x"}).restarts.min_progress_steps);
  EXPECT_THAT(parse({"train"}).restarts.final_codes, ElementsAre(2, 4, 5, 143, 130, 131));
}

TEST(ParseLaunch, TheGraceHasTorchrunsNameToo) {
  EXPECT_EQ(parse({"--shutdown-timeout=7", "train"}).kill_grace, std::chrono::seconds(7));
  EXPECT_EQ(parse({"train"}).kill_grace, std::chrono::seconds(30));
  EXPECT_EQ(parse({"train"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "9"}}).kill_grace, std::chrono::seconds(9));
  EXPECT_EQ(parse({"--kill-grace=1", "train"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "9"}}).kill_grace,
            std::chrono::seconds(1));
}

TEST(ParseLaunch, HandlesTheSignalsThatItIsTold) {
  EXPECT_THAT(parse({"train"}).handled_signals, ElementsAre(SIGTERM, SIGINT, SIGHUP, SIGQUIT));
  EXPECT_THAT(parse({"--signals-to-handle=SIGINT,SIGTERM", "train"}).handled_signals, ElementsAre(SIGINT, SIGTERM));
  for (const char* name : {"--signals-to-handle", "--signals_to_handle"})
    EXPECT_THAT(parse({name, "SIGTERM, SIGUSR1,SIGUSR2", "train"}).handled_signals,
                ElementsAre(SIGTERM, SIGUSR1, SIGUSR2));
  EXPECT_THAT(parse({"train"}, {{"PET_SIGNALS_TO_HANDLE", "SIGHUP"}}).handled_signals, ElementsAre(SIGHUP));
}

TEST(ParseLaunch, ShortOptionsTakeTheirValueInAnyForm) {
  for (const Words& words : {Words{"-r", "3", "train"}, Words{"-r3", "train"}, Words{"-r=3", "train"},
                             Words{"--redirects", "3", "train"}, Words{"--redirects=3", "train"}})
    EXPECT_TRUE(parse(words).logs.redirects.has(0, Stream::err));
  EXPECT_TRUE(parse({"train"}, {{"PET_TEE", "1"}}).logs.tee.has(0, Stream::out));
}

TEST(ParseLaunch, LogsGoWhereTheyAreSent) {
  const auto logs =
      parse({"--log-dir=/x", "--local-ranks-filter=0,2", "--log-prefix=${rank}|", "--nproc-per-node=3", "train"}).logs;
  EXPECT_EQ(logs.folder, "/x");
  EXPECT_THAT(logs.shown, ElementsAre(0, 2));
  EXPECT_EQ(logs.prefix, "${rank}|");
  EXPECT_EQ(parse({"train"}, {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "t"}}).logs.prefix, "t");
}

TEST(ParseLaunch, TheEndpointIsTheMaster) {
  const auto options = parse({"--rdzv-endpoint=[::1]:7", "--rdzv-backend=static", "train"});
  EXPECT_EQ(options.master_addr, "::1");
  EXPECT_EQ(options.master_port, 7);
  EXPECT_EQ(fault_of({"--rdzv-endpoint=[::1]:7", "--master-addr=::1", "train"}), "");
  EXPECT_EQ(parse({"--rdzv-endpoint=[fe80::1%eth0]:7", "train"}).master_addr, "fe80::1%eth0");
  EXPECT_EQ(parse({"--master-addr=[::1]", "train"}).master_addr, "::1");
  EXPECT_EQ(fault_of({"--rdzv-endpoint=a:1", "--master-port=1", "train"}), "");
  EXPECT_EQ(parse({"--rdzv-endpoint=", "train"}).master_port, kFreePort);
}

TEST(ParseLaunch, OneNodeHasAFreePortUnlessOneIsGiven) {
  EXPECT_EQ(parse({"train"}).master_port, kFreePort);
  EXPECT_EQ(parse({"--master-port=29500", "train"}).master_port, 29500);
  EXPECT_EQ(parse({"train"}, {{"PET_MASTER_PORT", "4000"}}).master_port, 4000);
  EXPECT_EQ(parse({"train"}, {{"MASTER_PORT", "4000"}}).master_port, 4000);
  EXPECT_EQ(parse({"--master-port=7", "train"}, {{"MASTER_PORT", "4000"}}).master_port, 7);
  const VariableTable of_a_worker = {{"MASTER_PORT", "4000"}, {"TORCHELASTIC_RUN_ID", "outer"}};
  EXPECT_EQ(parse({"train"}, of_a_worker).master_port, kFreePort) << "that port is in use by the outer run";
  EXPECT_EQ(parse({"--nnodes=2", "--master-addr=h", "train"}, {{"MASTER_PORT", "4000"}}).master_port, 29500);
}

TEST(ParseLaunch, TheLeaderListensEverywhereUnlessRestricted) {
  EXPECT_EQ(parse({"--nnodes=2", "--master-addr=h", "train"}).listen, "");
  EXPECT_EQ(parse({"--nnodes=2", "--master-addr=h", "--listen=[::1]", "train"}).listen, "::1");
  EXPECT_EQ(parse({"--nnodes=2", "--master-addr=h", "train"}, {{"PET_LISTEN", "10.0.0.1"}}).listen, "10.0.0.1");
}

TEST(ParseLaunch, IsHostDecidesWhoLeads) {
  const auto is_host = [](const std::string& conf) {
    return parse({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=h", "--rdzv-conf=" + conf, "train"}).is_host;
  };
  EXPECT_EQ(is_host("timeout=1"), std::nullopt);
  for (const char* yes : {"1", "True", "yes"}) EXPECT_EQ(is_host(std::string("is_host=") + yes), true) << yes;
  for (const char* no : {"0", "false", "N"}) EXPECT_EQ(is_host(std::string("is_host=") + no), false) << no;
}

TEST(ParseLaunch, C10dChoosesAPortOfItsOwn) {
  const auto options = parse({"--rdzv-backend=c10d", "--rdzv-endpoint=host:1", "--rdzv-id=x", "train"});
  EXPECT_EQ(options.master_addr, "localhost");
  EXPECT_EQ(options.master_port, kFreePort);
  EXPECT_EQ(options.run_id, "x");
  EXPECT_EQ(parse({"--rdzv-backend=c10d", "--local-addr=10.0.0.1", "train"}).master_addr, "10.0.0.1");
}

TEST(ParseLaunch, APodIsANode) {
  const VariableTable pod = {{"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
                             {"RANK", "2"},
                             {"WORLD_SIZE", "3"},
                             {"MASTER_ADDR", "job-master-0"},
                             {"MASTER_PORT", "23456"}};
  const auto options = parse({"--nproc-per-node=4", "train"}, pod);
  EXPECT_EQ(options.nnodes.most, 3);
  EXPECT_EQ(options.node_rank, 2);
  EXPECT_EQ(options.nproc_per_node, 4);
  EXPECT_EQ(options.master_addr, "job-master-0");
  EXPECT_EQ(options.master_port, 23456);
  EXPECT_EQ(parse({"--nnodes=1", "train"}, pod).nnodes.most, 1);
  EXPECT_EQ(parse({"--standalone", "train"}, pod).nnodes.most, 1);
}

TEST(ParseLaunch, SeveralNodesHaveAnEndpointAndDeadlines) {
  const auto options = parse({"--nnodes=2:4", "--rdzv-backend=c10d", "--rdzv-endpoint=host",
                              "--rdzv-conf=join_timeout=5,last_call_timeout=2", "--local-addr=10.0.0.7", "train"},
                             {{"GRADRING_TOKEN", "sixteen letters."}});
  EXPECT_EQ(options.nnodes.least, 2);
  EXPECT_EQ(options.nnodes.most, 4);
  EXPECT_EQ(options.master_addr, "host");
  EXPECT_EQ(options.master_port, 29400);
  EXPECT_EQ(options.join_timeout, std::chrono::seconds(5));
  EXPECT_EQ(options.last_call, std::chrono::seconds(2));
  EXPECT_EQ(options.local_addr, "10.0.0.7");
  EXPECT_EQ(options.token, "sixteen letters.");
}

TEST(ParseLaunch, AnEndpointOfIpv6NeedsBracketsOnlyBeforeAPort) {
  const std::pair<std::string, int> cases[] = {{"::1", 29400}, {"[::1]", 29400}, {"[::1]:7", 7}};
  for (const auto& [endpoint, port] : cases) {
    const auto options = parse({"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=" + endpoint, "train"});
    EXPECT_EQ(options.master_addr, "::1") << endpoint;
    EXPECT_EQ(options.master_port, port) << endpoint;
  }
}

TEST(ParseLaunch, AcceptsEveryFlagOfTorchrun) {
  EXPECT_EQ(fault_of({"--nnodes=1:1",
                      "--nproc_per_node=1",
                      "--rdzv_backend=c10d",
                      "--rdzv_endpoint=localhost:29400",
                      "--rdzv_id=a",
                      "--rdzv_conf=timeout=900,join_timeout=600",
                      "--standalone",
                      "--max_restarts=0",
                      "--monitor_interval=0.1",
                      "--start_method=fork",
                      "--event_log_handler=null",
                      "--role=default",
                      "--log_dir=/tmp/x",
                      "--redirects=0",
                      "--tee=0",
                      "--local_ranks_filter=",
                      "--node_rank=0",
                      "--master_addr=127.0.0.1",
                      "--master_port=29500",
                      "--local_addr=localhost",
                      "--logs_specs=default",
                      "--signals_to_handle=SIGTERM",
                      "--shutdown_timeout=30",
                      "--virtual_local_rank",
                      "--run_path",
                      "x.py"}),
            "");
}

TEST(ParseLaunch, HelpNamesEveryOption) {
  EXPECT_TRUE(parse_launch(Words{"--help"}, world_with({})).help);
  EXPECT_TRUE(parse_launch(Words{"--standalone", "-h", "train"}, world_with({})).help);
  EXPECT_FALSE(parse_launch(Words{"train", "--help"}, world_with({})).help);
  for (const char* name : {"--nproc-per-node N", "--devices LIST", "--nnodes N|MIN:MAX", "--standalone ",
                           "--rdzv-id ID", "--master-addr HOST", "--master-port PORT", "--role NAME",
                           "--max-restarts N", "--kill-grace TIME", "-r, --redirects MAP", "-m, --module ", "--help"})
    EXPECT_THAT(launch_help(), HasSubstr(name));
}

}  // namespace
}  // namespace gradring::train
