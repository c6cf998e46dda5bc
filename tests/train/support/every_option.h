// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gradring::tests {

/// An option of `gradring train` with another value than its default.
struct OneOption {
  std::string name;
  std::string value;
  std::vector<std::pair<std::string, std::string>> with = {};  ///< options without which it has no effect
};

/// All of them: options_test.cpp fails if one is missing.
inline std::vector<OneOption> every_option() {
  return {{"preset", "cifar10-94", {{"data-dir", "/data"}}},
          {"dataset", "mnist", {{"data-dir", "/data"}}},
          {"data-dir", "/data"},
          {"normalize", "0.25:0.5"},
          {"val-split", "0.25"},
          {"stratify", "on", {{"val-split", "0.25"}}},
          {"augment", "crop=2,flip"},
          {"sampler", "sharded"},
          {"shard-size", "2", {{"sampler", "sharded"}}},
          {"model", "convnet-deep"},
          {"model-text", "layers = [{ flatten = 'f' }, { linear = 'fc', out = 'classes' }]", {{"model", "net.toml"}}},
          {"weights", "w.pt"},
          {"reinit", "fc_layers.2.*,conv*.bias", {{"weights", "w.pt"}}},
          {"optimizer-state", "o.pt", {{"weights", "w.pt"}}},
          {"checkpoint-activations", "2"},
          {"activation-budget-mb", "64", {{"checkpoint-activations", "auto"}}},
          {"epochs", "3"},
          {"steps", "5"},
          {"early-stop", "2", {{"val-split", "0.25"}}},
          {"batch-size", "3"},
          {"accumulate", "2"},
          {"global-batch", "6"},
          {"gradient-mean", "ranks"},
          {"clip-norm", "0.5"},
          {"label-smoothing", "0.2"},
          {"on-nan", "rollback"},
          {"seed", "7"},
          {"optimizer", "sgd"},
          {"lr", "0.002"},
          {"momentum", "0.9", {{"optimizer", "sgd"}}},
          {"dampening", "0.1", {{"optimizer", "sgd"}, {"momentum", "0.9"}}},
          {"nesterov", "true", {{"optimizer", "sgd"}, {"momentum", "0.9"}}},
          {"betas", "0.8,0.99"},
          {"eps", "1e-06"},
          {"muon-scale", "normalize", {{"optimizer", "muon"}}},
          {"muon-steps", "3", {{"optimizer", "muon"}}},
          {"weight-decay", "0.01"},
          {"no-bias-decay", "true", {{"weight-decay", "0.01"}}},
          {"group", "*.bias:optimizer=sgd"},
          {"ema", "0.5"},
          {"schedule", "cosine"},
          {"warmup-steps", "2"},
          {"schedule-step-size", "2", {{"schedule", "step"}}},
          {"schedule-gamma", "0.5", {{"schedule", "step"}, {"schedule-step-size", "2"}}},
          {"min-lr", "0.0001", {{"schedule", "cosine"}}},
          {"precision", "fp16"},
          {"loss-scale", "1024", {{"precision", "fp16"}}},
          {"loss-scale-interval", "2", {{"precision", "fp16"}}},
          {"reproducible", "true"},
          {"nprocs", "2"},
          {"data-parallel", "2"},
          {"zero", "1"},
          {"sync-every-pass", "true", {{"zero", "2"}}},
          {"check-replicas", "1"},
          {"inject", "delay:rank=0,step=1,ms=1"},
          {"comm", "tcp"},
          {"allreduce", "ring"},
          {"wire-dtype", "bf16"},
          {"overlap", "off"},
          {"sync-batchnorm", "true"},
          {"bucket-mb", "1"},
          {"first-bucket-mb", "2"},
          {"timeout", "20s"},
          {"save-every-steps", "1"},
          {"keep-last", "1"},
          {"keep-best", "2"},
          {"on-save-error", "continue"},
          {"resume", "auto", {{"run-dir", "run"}}},
          {"run-dir", "run"},
          {"name", "first"},
          {"tags", "a,b"},
          {"eval-every", "2"},
          {"tta", "flip"},
          {"log-every", "1"},
          {"trace", "t.json"},
          {"trace-steps", "1:2", {{"trace", "t.json"}}},
          {"log", "tensorboard"},
          {"progress", "none"},
          {"device", "cpu"},
          {"simulate-gpu", "h100", {{"device", "cuda"}}},
          {"simulate-seed", "3", {{"device", "cuda"}, {"simulate-gpu", "h100"}}},
          {"backend", "reference"},
          {"conv", "direct"},
          {"gemm", "direct"},
          {"autotune", "true"},
          {"cuda-graph", "off"},
          {"resident", "on"},
          {"threads", "2"},
          {"loader-threads", "2"},
          {"pin", "true"},
          {"allow-shared-gpu", "true"}};
}

}  // namespace gradring::tests
