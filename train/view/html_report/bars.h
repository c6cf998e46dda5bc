// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace gradring::train {

/// A part of a bar.
struct BarPart {
  std::string name;
  double value = 0;
  int color = 0;  ///< as of page::Series
};

/// Parts beside each other in a bar of length `whole`; each has a tooltip with its name and its value as `text`.
std::string stacked_bar(const std::vector<BarPart>& parts, double whole, std::string (*text)(double));

/// Names and colours of parts.
std::string bar_legend(const std::vector<BarPart>& parts);

}  // namespace gradring::train
