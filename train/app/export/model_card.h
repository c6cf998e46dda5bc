// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "train/app/export/model_facts.h"
#include "train/core/setup/start.h"
#include "train/records/metrics/run_history.h"

namespace gradring::train {

/// What a model card is made of.
struct CardContents {
  const ModelFacts& facts;
  const NamedTensors& named;          ///< the checkpoint or file
  bool averaged = false;              ///< its averaged weights (--ema)
  std::optional<RunHistory> history;  ///< of the run that saved it, if its metrics.jsonl is there
  std::string file;                   ///< what was exported; empty: nothing
  std::string file_sha256;
};

/// Describes an exported model in Markdown: layers, input and preprocessing, labels, data, metrics with the split that
/// they were measured on, the training command, limits, hashes. What is unknown is said to be unknown; the licence is
/// left to whoever publishes the model.
std::string model_card(const CardContents& contents);

}  // namespace gradring::train
