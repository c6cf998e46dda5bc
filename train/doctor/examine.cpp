// SPDX-License-Identifier: Apache-2.0
#include "train/doctor/examine.h"

#include "train/doctor/built_in.h"
#include "train/doctor/machine.h"
#include "train/doctor/used.h"

namespace gradring::train::doctor {

std::vector<Section> examine(const VariableLookup& environment) {
  return {{"Built in", built_in()}, {"Found", found_here(environment)}, {"Used", used_here(environment)}};
}

}  // namespace gradring::train::doctor
