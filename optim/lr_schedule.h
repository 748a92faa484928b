// Learning-rate schedules. A schedule maps the base learning rate and the number of *applied* steps
// to the learning rate of the next step, so it stands still on a step that a grad scaler skips. In
// a graph it is a handful of scalar nodes of the update; At() is the same formula on the
// host. One that follows a metric instead is in reduce_on_plateau.h.
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
  enum class Kind : uint8_t { kStep, kCosine, kWarmup, kRestarts, kPolynomial, kOneCycle };
  struct Term {
    Kind kind;
    std::vector<double> arguments;  // all of them, in the order of the text form
    friend bool operator==(const Term&, const Term&) = default;
  };

  // Every term is a few nodes of the graph. A product of more is an error (Validate) and drops its
  // terms, so that a product of products stays small.
  static constexpr int64_t kMaxTerms = 256;

  LRSchedule() = default;
  explicit LRSchedule(Term term) : terms_{std::move(term)}, num_terms_(1) {}

  bool constant() const { return num_terms_ == 0; }
  const std::vector<Term>& terms() const { return terms_; }

  // The learning rate after `applied_steps` applied steps (0 before the first).
  double At(double base_lr, int64_t applied_steps) const;

  // Errors: InvalidArgument: "StepLR: step_size = 0; expected > 0", likewise every argument;
  // "a product of 300 terms; expected at most 256".
  absl::Status Validate() const;

  // "step(10,0.5)*warmup(5)"; "" if constant. The form of the optimizer marker's `schedule`.
  std::string ToString() const;
  // Reads that form; trailing default arguments may be left out. The result is valid. Errors:
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

// eta_min + (lr - eta_min) * (1 + cos(pi * u / n)) / 2 in cycles of n = t_0, t_0 * t_mult, t_0 *
// t_mult^2, ... steps, of which u were done in this one. Source: Loshchilov, Hutter: "SGDR", 2017,
// equation 5; torch.optim.lr_scheduler.CosineAnnealingWarmRestarts.
LRSchedule CosineAnnealingWarmRestarts(int64_t t_0, int64_t t_mult = 1, double eta_min = 0);

// lr * (1 - min(t, total_iters) / total_iters)^power. Source:
// torch.optim.lr_scheduler.PolynomialLR.
LRSchedule PolynomialLR(int64_t total_iters = 5, double power = 1);

struct OneCycleOptions {
  double pct_start = 0.3;         // part of the steps in which the rate rises, 0..1
  bool linear = false;            // PyTorch's anneal_strategy "linear"; else half a cosine
  double div_factor = 25;         // the rate starts at max_lr / div_factor, > 0
  double final_div_factor = 1e4;  // and ends at that / final_div_factor, > 0
  bool three_phase = false;       // falls as it rose to where it started, and only then to the end
};
// Up to `max_lr`, which is a learning rate, and down again within `total_steps`; after them the rate
// stays at its end. The base rate and what stands to the left in a product have no effect, as in
// PyTorch, whose momentum cycle (cycle_momentum) is left out. Source: Smith, Topin:
// "Super-Convergence", 2017; torch.optim.lr_scheduler.OneCycleLR.
LRSchedule OneCycleLR(double max_lr, int64_t total_steps, const OneCycleOptions& options = {});

}  // namespace halftone::optim
