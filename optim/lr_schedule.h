// Learning-rate schedules. A schedule maps the base learning rate and the number of *applied* steps
// to the learning rate of the next step, so it stands still on a step that a grad scaler skips. In
// a graph it is a handful of scalar nodes of the update; At() is the same formula on the
// host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/core/status.h"

namespace halftone::optim {

// A chain of terms, applied left to right; the empty chain is a constant learning rate.
// Example: LRSchedule s = StepLR(30, 0.1) * LinearWarmup(500);
class LRSchedule {
 public:
  enum class Kind : uint8_t { kStep, kCosine, kWarmup };
  struct Term {
    Kind kind;
    int64_t steps;  // step_size, t_max, warm-up steps
    double value;   // gamma, eta_min, start_factor
    friend bool operator==(const Term&, const Term&) = default;
  };

  // Every term is a few nodes of the graph. A product of more is an error (Validate) and drops its
  // terms, so that a product of products stays small.
  static constexpr int64_t kMaxTerms = 256;

  LRSchedule() = default;
  explicit LRSchedule(Term term) : terms_{term}, num_terms_(1) {}

  bool constant() const { return num_terms_ == 0; }
  const std::vector<Term>& terms() const { return terms_; }

  // The learning rate after `applied_steps` applied steps (0 before the first).
  double At(double base_lr, int64_t applied_steps) const;

  // Errors: InvalidArgument: "StepLR: step_size = 0; expected > 0", likewise gamma, t_max, eta_min,
  // start_factor; "a product of 300 terms; expected at most 256".
  absl::Status Validate() const;

  // "step(10,0.5)*warmup(5)"; "" if constant. The form of the optimizer marker's `schedule`.
  std::string ToString() const;
  // Reads that form; a trailing default argument may be left out. The result is valid. Errors:
  // InvalidArgument with the position.
  static absl::StatusOr<LRSchedule> Parse(const std::string& text);

  friend LRSchedule operator*(const LRSchedule& a, const LRSchedule& b);
  friend bool operator==(const LRSchedule&, const LRSchedule&) = default;

 private:
  static constexpr int64_t kManyTerms = 1'000'000;  // counted no further

  std::vector<Term> terms_;
  int64_t num_terms_ = 0;
};

// lr * gamma^floor(t / step_size). Source: torch.optim.lr_scheduler.StepLR.
LRSchedule StepLR(int64_t step_size, double gamma = 0.1);

// eta_min + (lr - eta_min) * (1 + cos(pi * min(t, t_max) / t_max)) / 2. `eta_min` is a learning
// rate, not a factor. After t_max the rate stays at eta_min; PyTorch's CosineAnnealingLR rises
// again. Source: Loshchilov, Hutter: "SGDR", 2017, equation 5 without restarts.
LRSchedule CosineLR(int64_t t_max, double eta_min = 0);

inline constexpr double kDefaultWarmupStart = 1.0 / 3.0;
// lr * (start_factor + (1 - start_factor) * min(t, steps) / steps). Source:
// torch.optim.lr_scheduler.LinearLR with end_factor 1.
LRSchedule LinearWarmup(int64_t steps, double start_factor = kDefaultWarmupStart);

}  // namespace halftone::optim
