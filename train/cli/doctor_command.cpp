// SPDX-License-Identifier: Apache-2.0
#include "train/cli/doctor_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "train/cli/command_line.h"
#include "train/cli/exit_code.h"
#include "train/cli/print_json.h"
#include "train/cli/run_command.h"
#include "train/doctor/examine.h"

namespace gradring::train {
namespace {

using Sections = std::vector<doctor::Section>;

void print(const Sections& sections) {
  for (const doctor::Section& section : sections) {
    fmt::print("{}\n", section.title);
    for (const doctor::Finding& finding : section.findings) {
      fmt::print("  {:<15} {}\n", finding.name, finding.found);
      if (!finding.advice.empty()) fmt::print("  {:<15} -> {}\n", "", finding.advice);
    }
  }
}

/// {"Built in": {"libcurl": {"found": ..., "advice": ...}}, ...}
nlohmann::ordered_json to_json(const Sections& sections) {
  nlohmann::ordered_json json;
  for (const doctor::Section& section : sections)
    for (const doctor::Finding& finding : section.findings) {
      nlohmann::ordered_json& entry = json[section.title][finding.name];
      entry["found"] = finding.found;
      if (!finding.advice.empty()) entry["advice"] = finding.advice;
    }
  return json;
}

void run(std::span<const std::string> args) {
  bool json = false;
  CommandLine line{.command = "gradring doctor", .options = {}};
  line.options.push_back({.name = "json", .help = "as JSON, for programs", .read = set_switch("json", json)});
  if (read_command_line(line, args).help) {
    fmt::print("gradring doctor: what this program and this machine have, and what would mend what is missing\n\n{}",
               help_of(line.options));
    return;
  }
  const Sections sections = doctor::examine(system_variable);
  if (json)
    print_json(to_json(sections));
  else
    print(sections);
}

}  // namespace

int doctor_main(std::span<const std::string> args) {
  return run_command("gradring doctor", [args] {
    run(args);
    return kOk;
  });
}

}  // namespace gradring::train
