// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gradring::train {

/// A loss for lines and tables: "0.1234"; "8.750e+29" from 10 million on; "nan" or "inf" if it is not finite.
std::string loss_text(double loss);

}  // namespace gradring::train
