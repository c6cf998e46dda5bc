// SPDX-License-Identifier: Apache-2.0
#include "train/cli/subcommands.h"

#include <fmt/format.h>

#include <vector>

#include "kernels/runtime/nearest_name.h"
#include "kernels/runtime/write_all.h"
#include "train/config/usage_error.h"
#include "train/launch/exit_code.h"

namespace gradring::train {
namespace {

std::string help_of(const CommandGroup& group) {
  std::string text =
      fmt::format("{}: {}\n\nUsage: {} {}\n\n", group.command, group.purpose, group.command, group.usage);
  for (const Subcommand& subcommand : group.subcommands)
    text += fmt::format("  {:<10} {}\n", subcommand.name, subcommand.help);
  return text + fmt::format("\n{} {} --help says more.\n", group.command, group.usage.substr(0, group.usage.find(' ')));
}

}  // namespace

int run_subcommand(const CommandGroup& group, std::span<const std::string> args) {
  if (args.empty()) {
    print_to_stderr(help_of(group));
    return kUsage;
  }
  const std::string& name = args.front();
  if (name == "--help" || name == "-h" || name == "help") {
    fmt::print("{}", help_of(group));
    return kOk;
  }
  std::vector<std::string_view> names;
  for (const Subcommand& subcommand : group.subcommands) {
    if (subcommand.name == name) {
      subcommand.run(args.subspan(1));
      return kOk;
    }
    names.push_back(subcommand.name);
  }
  throw UsageError(
      fmt::format("there is no {} '{}'.{} Try {} --help", group.kind, name, did_you_mean(name, names), group.command));
}

}  // namespace gradring::train
