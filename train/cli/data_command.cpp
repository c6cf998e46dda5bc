// SPDX-License-Identifier: Apache-2.0
#include "train/cli/data_command.h"

#include <fmt/format.h>

#include <cstdio>
#include <string_view>
#include <vector>

#include "kernels/runtime/nearest_name.h"
#include "train/cli/data_fetch.h"
#include "train/cli/data_info.h"
#include "train/cli/data_verify.h"
#include "train/cli/exit_code.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

using Arguments = std::span<const std::string>;

struct Action {
  std::string_view name;
  std::string_view help;
  void (*run)(Arguments);
};

constexpr Action kActions[] = {
    {"fetch", "get a data set; goes on where a transfer broke off, and checks what came", data_fetch},
    {"verify", "compare a data set's files with what they should be, to the last bit", data_verify},
    {"info", "what there is to fetch, or what a data set holds", data_info},
};

void print_help(std::FILE* out) {
  fmt::print(out, "gradring data: data sets to train on\n\nUsage: gradring data ACTION [NAME] [OPTIONS]\n\n");
  for (const Action& action : kActions) fmt::print(out, "  {:<8} {}\n", action.name, action.help);
  fmt::print(out, "\ngradring data ACTION --help says more.\n");
}

void run(const std::string& name, Arguments rest) {
  if (name == "--help" || name == "-h" || name == "help") return print_help(stdout);
  std::vector<std::string_view> names;
  for (const Action& action : kActions) {
    if (action.name == name) return action.run(rest);
    names.push_back(action.name);
  }
  throw UsageError(fmt::format("there is no action '{}'.{} Try gradring data --help", name, did_you_mean(name, names)));
}

}  // namespace

int data_main(Arguments args) {
  if (args.empty()) {
    print_help(stderr);
    return kUsage;
  }
  try {
    run(args.front(), args.subspan(1));
    return kOk;
  } catch (const std::exception& error) {
    std::fflush(stdout);  // what went well stands above what did not
    fmt::print(stderr, "gradring data: {}\n", message_of(error));
    return exit_code_of(error);
  }
}

}  // namespace gradring::train
