// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/runtime/cpu_level.h"
#include "kernels/runtime/nearest_name.h"
#include "kernels/runtime/write_all.h"
#include "train/cli/bench_command.h"
#include "train/cli/ckpt_command.h"
#include "train/cli/data_command.h"
#include "train/cli/doctor_command.h"
#include "train/cli/eval_command.h"
#include "train/cli/exit_code.h"
#include "train/cli/export_command.h"
#include "train/cli/plan_command.h"
#include "train/cli/predict_command.h"
#include "train/cli/standard_output.h"
#include "train/cli/train_command.h"
#include "train/launch/launch_main.h"

namespace {

using gradring::print_to_stderr;
using Arguments = std::span<const std::string>;

struct Command {
  std::string_view name;
  std::string_view help;
  int (*run)(Arguments);
};

constexpr Command kCommands[] = {
    {"train", "train a model, as one rank or with --nprocs N", gradring::train::train_main},
    {"plan", "what memory a training takes on each rank", gradring::train::plan_main},
    {"eval", "judge a checkpoint on a test set", gradring::train::eval_main},
    {"predict", "say what a checkpoint sees in image files", gradring::train::predict_main},
    {"ckpt", "list, verify, compare, look into and prune checkpoints", gradring::train::ckpt_main},
    {"export", "write a checkpoint's weights as a file for PyTorch or NumPy", gradring::train::export_main},
    {"bench", "measure kernels, collectives, training steps", gradring::train::bench_main},
    {"data", "fetch, verify and describe data sets", gradring::train::data_main},
    {"launch", "start, watch and stop the ranks of a run, as torchrun does", gradring::train::launch_main},
    {"doctor", "what this program and this machine have, and what would mend what is missing",
     gradring::train::doctor_main},
};

std::string help() {
  std::string text = fmt::format(
      "gradring {}: a data-parallel trainer that a person can read\n\nUsage: gradring COMMAND [OPTIONS]\n\n",
      GRADRING_VERSION);
  for (const Command& command : kCommands) text += fmt::format("  {:<8} {}\n", command.name, command.help);
  return text + "\ngradring COMMAND --help says more. gradrun is gradring launch.\nFirst try: gradring train\n";
}

int run(std::string_view name, Arguments rest) {
  if (name == "--help" || name == "-h" || name == "help") {
    fmt::print("{}", help());
    return gradring::train::kOk;
  }
  if (name == "--version") {
    fmt::print("gradring {}\n", GRADRING_VERSION);
    return gradring::train::kOk;
  }
  std::vector<std::string_view> names;
  for (const Command& command : kCommands) {
    if (command.name == name) return command.run(rest);
    names.push_back(command.name);
  }
  print_to_stderr(fmt::format("gradring: there is no command '{}'.{} Try gradring --help\n", name,
                              gradring::did_you_mean(name, names)));
  return gradring::train::kUsage;
}

int run(const std::vector<std::string>& args, std::string_view program) {
  try {
    gradring::kernels::cpu_level();  // fail before any code of a level runs
  } catch (const std::exception& error) {
    print_to_stderr(fmt::format("gradring: {}\n", error.what()));
    return gradring::train::exit_code_of(error);
  }
  if (program == "gradrun") return run("launch", args);
  if (args.empty()) {
    print_to_stderr(help());
    return gradring::train::kUsage;
  }
  return run(args.front(), Arguments(args).subspan(1));
}

}  // namespace

int main(int argc, char** argv) {
  gradring::train::reserve_standard_streams();
  const std::vector<std::string> args(argv + 1, argv + argc);
  try {
    return gradring::train::finish_standard_output(run(args, std::filesystem::path(argv[0]).filename().string()));
  } catch (const std::exception& error) {
    if (!gradring::train::is_output_failure(error)) throw;
    return gradring::train::finish_standard_output(gradring::train::kOk, &error);
  }
}
