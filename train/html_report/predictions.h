// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/html_report/model_pictures.h"

namespace gradring::train {

/// Confusion matrix, worst misclassified samples and filters as HTML.
std::string predictions_of(const ModelPictures& pictures);

}  // namespace gradring::train
