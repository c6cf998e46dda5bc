// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "train/app/commands/commands.h"
#include "train/core/config/simulated_gpu_option.h"
#include "train/core/doctor/doctor.h"
#include "train/options/environment_variable.h"
#include "train/options/print_text.h"

namespace gradring::train {
namespace {

using Sections = std::vector<doctor::Section>;

void print(const Sections& sections) {
  for (const doctor::Section& section : sections) {
    print_text("{}\n", section.title);
    for (const doctor::Finding& finding : section.findings) {
      print_text("  {:<15} {}\n", finding.name, finding.found);
      if (!finding.advice.empty()) print_text("  {:<15} -> {}\n", "", finding.advice);
    }
  }
}

/// {"Built in": {"curl": {"found": ..., "advice": ...}}, ...}
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

struct DoctorOptions {
  std::string simulate_gpu = kRealGpus;
  bool json = false;
};

CommandLine command_line(DoctorOptions& options) {
  return {.command = "gradring doctor",
          .purpose = "features of this program and this machine, and remedies for what is missing",
          .usage = {"gradring doctor [OPTIONS]"},
          .options = {simulated_gpu_option("card whose simulated GPU is examined as the device (default none)",
                                           options.simulate_gpu),
                      json_switch(options.json)}};
}

void run(DoctorOptions& options) {
  const Sections sections = doctor::examine(system_variable, options.simulate_gpu);
  if (options.json)
    print_json(to_json(sections));
  else
    print(sections);
}

}  // namespace

const Command kDoctorCommand = make_command<DoctorOptions>("doctor", "features of this program and this machine");

}  // namespace gradring::train
