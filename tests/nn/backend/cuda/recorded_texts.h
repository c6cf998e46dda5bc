// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::tests {

/// What scripts/cudnn_plans.sh --write wrote before this build.
extern const char* const kCudnnRecord;    ///< tests/nn/backend/cuda/cudnn_record.txt
extern const char* const kCudnnDocument;  ///< docs/results/cudnn.md

}  // namespace gradring::tests
