// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "nn/backend/backend.h"

namespace gradring::train {

/// A backend whose losses give gradients without a number now and then: what a broken sample, or an overflow, comes to. (A
/// NaN among the pixels would not do: max(x, 0) is 0 there.)
///
/// Threads   as the backend behind it, which must outlive this.
class NanBackend final : public nn::Backend {
 public:
  /// `now` is asked at each loss, on the thread that enqueues it.
  NanBackend(nn::Backend& inner, std::function<bool()> now) : inner_(inner), now_(std::move(now)) {}

  std::string_view name() const override { return inner_.name(); }
  std::unique_ptr<nn::Plan> plan(std::span<const nn::NodeSpec> nodes) override { return inner_.plan(nodes); }
  std::unique_ptr<nn::LossPlan> plan_cross_entropy(const nn::CrossEntropySpec& spec, const nn::NodeSpec* last) override;

 private:
  nn::Backend& inner_;
  std::function<bool()> now_;
};

}  // namespace gradring::train
