// SPDX-License-Identifier: Apache-2.0
// Command lines that are refused, and the words for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/train/launch/options/parsed.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;

TEST(ParseLaunch, RejectsWithAMessage) {
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"--nproc-per-node=xpu", "train"}, "xpu is not supported"},
      {{"--nnodes=2", "--standalone", "train"}, "--standalone is for one machine"},
      {{"--nnodes=2", "--rdzv-backend=c10d", "train"}, "c10d over several machines needs --rdzv-endpoint=HOST:PORT"},
      {{"--nnodes=2", "train"}, "--nnodes above 1 needs --master-addr=HOST"},
      {{"--nnodes=2", "--node-rank=2", "train"}, "--node-rank=2 is outside --nnodes=2: nodes go from 0 to 1"},
      {{"--node-rank=1", "train"}, "--node-rank=1 is outside --nnodes=1: nodes go from 0 to 0"},
      {{"--nnodes", "4:2", "train"}, "--nnodes is '4:2', but MIN is above MAX"},
      {{"--nnodes=0", "train"}, "--nnodes is '0', but must be a whole number from 1"},
      {{"--max_restarts=-3", "train"}, "--max-restarts is '-3', but must be a whole number from 0"},
      {{"--backoff=5s..1s", "train"}, "--backoff is '5s..1s', but FIRST is longer than LONGEST"},
      {{"--backoff=soon", "train"}, "--backoff is 'soon', but must be a time"},
      {{"--min-progress-steps=x", "train"}, "must be a whole number"},
      {{"--signals-to-handle=SIGTERM,SIGSEGV", "train"},
       "'SIGSEGV' is not one of SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2"},
      {{"--monitor-interval=often", "train"}, "must be a time"},
      {{"--event-log-handler=console", "train"}, "must be one of null"},
      {{"--start-method=exec", "train"}, "must be one of spawn, fork, forkserver"},
      {{"--numa-binding=node", "train"}, "NUMA binding is not supported"},
      {{"--logs-specs=mine", "train"}, "must be one of default"},
      {{"--log-dir=", "train"}, "must be the path of a folder"},
      {{"--rdzv-backend=etcd", "train"}, "must be static or c10d"},
      {{"--rdzv-conf=join_timeot=3", "train"}, "unknown setting 'join_timeot'. Did you mean 'join_timeout'?"},
      {{"--rdzv-conf=x", "train"}, "must be KEY=VALUE"},
      {{"--rdzv-endpoint=host", "train"}, "--rdzv-endpoint is 'host', but must be HOST:PORT"},
      {{"--rdzv-endpoint=::1", "train"}, "--rdzv-endpoint is '::1', but must be HOST:PORT, or [ADDRESS]:PORT of IPv6"},
      {{"--rdzv-endpoint=:1", "train"}, "--rdzv-endpoint is ':1', but must be HOST:PORT"},
      {{"--rdzv-endpoint=host:x", "train"}, "--rdzv-endpoint is 'x', but must be a whole number"},
      {{"--rdzv-endpoint=a:1", "--master-addr=b", "train"}, "contradicts --master-addr and --master-port"},
      {{"--rdzv-endpoint=a:1", "--master-port=2", "train"}, "contradicts --master-addr and --master-port"},
      {{"--rdzv-endpoint=a b:1", "train"}, "'a b' is neither a host name nor an IPv6 address"},
      {{"--rdzv-conf=is_host=maybe", "train"}, "is_host must be 1 or 0"},
      {{"--nnodes=2", "--master-addr=", "train"},
       "--master-addr is '', but must be a host name or an address, without a port"},
      {{"--nnodes=2", "--master-addr=h:29500", "train"},
       "--master-addr is 'h:29500', but must be a host name or an address"},
      {{"--nnodes=2", "--master-addr=h", "--listen=", "train"},
       "--listen is '', but must be a host name or an address"},
      {{"--nnodes=2", "--master-addr=h", "--local-addr=a/b", "train"},
       "--local-addr is 'a/b', but must be a host name"},
      {{"--nproc-per-node=3", "--devices=0,1", "train"}, "--nproc-per-node=3 is more than the 2 GPUs of --devices"},
      {{"--devices=0,,1", "train"}, "must be a list of GPUs"},
      {{"-r", "4", "train"}, "--redirects is '4', but must be 0 (none)"},
      {{"-t0:1,", "train"}, "--tee is '0:1,', but must be 0 (none)"},
      {{"--tee=0:1,0:2", "train"}, "each once"},
      {{"-r", "2:1", "--nproc-per-node=2", "train"},
       "--redirects names local rank 2, but the 2 workers here go from 0 to 1"},
      {{"-t", "12:1", "train"}, "--tee names local rank 12"},
      {{"--local-ranks-filter=0,1", "train"}, "--local-ranks-filter names local rank 1"},
      {{"-m", "--no-python", "x"}, "exclude each other"},
      {{"-m"}, "no command to run"},
      {{"-x", "train"}, "unknown option -x"},
      {{"-", "train"}, "unknown option -"},
      {{"--nproc-per-node=0", "train"}, "--nproc-per-node is '0', but must be a whole number from 1 to 4096"},
      {{"--nproc-per-node=two", "train"}, "must be a whole number"},
      {{"--nproc-per-node=2x", "train"}, "must be a whole number"},
      {{"--nproc-per-node=gpu", "train"}, "--nproc-per-node is 'gpu', but no GPU was found"},
      {{"--master-port=65536", "train"}, "must be a whole number from 1 to 65535"},
      {{"--kill-grace=-1", "train"}, "must be a time such as 30s"},
      {{"--kill-grace=nan", "train"}, "must be a time such as 30s"},
      {{"--kill-grace=", "train"}, "must be a time such as 30s"},
      {{"--kill-grace=s", "train"}, "must be a time such as 30s"},
      {{"--kill-grace=2h", "train"}, "must be a time such as 30s"},
      {{"--kill-grace=1441m", "train"}, "must be a time such as 30s, 500ms or 2m, at most a day"},
      {{"--standalone=1", "train"}, "--standalone takes no value"},
      {{"--nproc-per-node"}, "--nproc-per-node needs a value; see gradring launch --help"},
      {{"--nproc-per-node", "--standalone", "train"}, "--nproc-per-node needs a value"},
      {{"--nproc_per_nod=2", "train"}, "unknown option --nproc-per-nod. Did you mean '--nproc-per-node'?"},
      {{"--frobnicate", "train"}, "unknown option --frobnicate. See gradring launch --help"},
      {{"-n", "2", "train"}, "unknown option -n"},
      {{}, "no command to run"},
      {{"--standalone"}, "no command to run"},
      {{"--"}, "no command to run"},
      {{"--", ""}, "no command to run"},
      {{"./mine.sh", "x"},
       "'./mine.sh' is neither `train` nor `bench` nor a Python script: to run another program, use `-- ./mine.sh "
       "...`"},
  };
  for (const auto& [words, text] : cases)
    EXPECT_THAT(fault_of(words), HasSubstr(text)) << testing::PrintToString(words);
  EXPECT_THAT(fault_of({"train"}, {{"PET_NNODES", "3:2"}}),
              HasSubstr("PET_NNODES: --nnodes is '3:2', but MIN is above MAX"));
  EXPECT_THAT(fault_of({"train"}, {{"MASTER_PORT", "http"}}),
              HasSubstr("MASTER_PORT: --master-port is 'http', but must be a whole number"));
}

}  // namespace
}  // namespace gradring::train
