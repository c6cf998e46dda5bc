// SPDX-License-Identifier: Apache-2.0
#include "train/bench/machine_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/temp_folder.h"

namespace gradring::train::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Files of a machine with two cores.
class PlantedMachine {
 public:
  void write(const std::filesystem::path& file, const std::string& text) const {
    std::filesystem::create_directories((folder_.path() / file).parent_path());
    std::ofstream(folder_.path() / file) << text;
  }
  /// In seconds since the boot.
  void write_times(int user, int idle, int steal) const {
    const long second = ::sysconf(_SC_CLK_TCK);
    write("proc/stat", "cpu  " + std::to_string(user * second) + " 0 0 " + std::to_string(idle * second) + " 0 0 0 " +
                           std::to_string(steal * second) + " 0 0\ncpu0 1 2 3\n");
  }
  MachineState state() const { return read_machine_state(folder_.path()); }

 private:
  tests::TempFolder folder_;
};

TEST(MachineState, ReadsLoadClocksAndGovernor) {
  const PlantedMachine machine;
  machine.write("proc/loadavg", "1.50 0.75 0.25 3/120 4711\n");
  machine.write("proc/cpuinfo", "processor : 0\ncpu MHz\t\t: 2000.5\nprocessor : 1\ncpu MHz\t\t: 3000.5\n");
  machine.write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  const MachineState state = machine.state();
  EXPECT_THAT(*state.load_averages, ElementsAre(1.5, 0.75, 0.25));
  EXPECT_EQ(state.runnable, 2);
  EXPECT_EQ(state.cpu_mhz, 2500.5);
  EXPECT_EQ(state.governor, "powersave");
  EXPECT_THAT(warnings_at_start(state, 2), ElementsAre(HasSubstr("load average 1.50 on 2 core(s), 2 other thread(s)")));
  EXPECT_THAT(warnings_at_start(state, 64), IsEmpty());
}

TEST(MachineState, LeavesOutWhatCannotBeRead) {
  const MachineState state = PlantedMachine().state();
  EXPECT_FALSE(state.load_averages);
  EXPECT_FALSE(state.cpu_mhz);
  EXPECT_EQ(state.governor, "");
  EXPECT_THAT(warnings_at_start(state, 2), IsEmpty());
}

TEST(MachineState, TellsOtherProgramsFromTheBenchmarkItself) {
  const PlantedMachine machine;
  machine.write_times(100, 900, 10);
  const MachineState start = machine.state();
  machine.write_times(115, 904, 11);  // 20 core-seconds in 10 s
  const Interference found = interference(start, machine.state(), 9, 10);
  EXPECT_NEAR(found.other_cores, 0.6, 1e-9);
  EXPECT_NEAR(found.stolen_share, 0.05, 1e-9);
  EXPECT_THAT(warnings_at_end(found, 2), ElementsAre(HasSubstr("0.60 of 2 core(s)"), HasSubstr("5.0 %")));
  EXPECT_THAT(warnings_at_end(interference(start, machine.state(), 9, 0.01), 2), IsEmpty()) << "too short to judge";
  EXPECT_THAT(warnings_at_end({.other_cores = 0.02, .stolen_share = 0}, 2), IsEmpty());
}

TEST(MachineState, AsksNvidiaSmiForTheVisibleGpu) {
  const tests::TempFolder folder;
  const auto program = folder.path() / "nvidia-smi";
  std::ofstream(program) << "#!/bin/sh\n[ \"$1\" = --id=GPU-b ] && echo 'NVIDIA H100, 1755, 1980, 2619, 41, 7'\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", (folder.path().string() + ":" + path).c_str(), 1);
  ::setenv("CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b", 1);
  const auto gpu = read_gpu_state(1);
  const auto other = read_gpu_state(0);
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ::setenv("PATH", path.c_str(), 1);
  ASSERT_TRUE(gpu);
  EXPECT_FALSE(other);
  EXPECT_EQ(gpu->name, "NVIDIA H100");
  EXPECT_EQ(gpu->sm_mhz, 1755);
  EXPECT_EQ(gpu->most_sm_mhz, 1980);
  MachineState state;
  state.gpu = gpu;
  EXPECT_THAT(warnings_at_start(state, 2), ElementsAre(HasSubstr("utilization 7 %")));
}

}  // namespace
}  // namespace gradring::train::bench
