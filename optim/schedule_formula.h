// The formulas of learning-rate schedules, once for the host and for the nodes of a graph.
#pragma once

#include <algorithm>
#include <numbers>
#include <vector>

#include "halftone/optim/lr_schedule.h"

namespace halftone::optim {

// `Math` has the type Number, whose arithmetic takes doubles too, and the functions Like (a
// constant beside a number), Minimum and Maximum (with a double), Floor, Cos, Log, Pow.
template <typename Math>
class ScheduleFormula {
 public:
  using Number = typename Math::Number;

  // `t`: applied steps.
  explicit ScheduleFormula(Number t) : t_(t) {}

  Number Rate(const LRSchedule::Term& term, Number lr) const {
    const std::vector<double>& a = term.arguments;
    switch (term.kind) {
      case LRSchedule::Kind::kStep: {
        const Number gamma = Math::Like(t_, a[1]);
        return lr * Math::Pow(gamma, Math::Floor(t_ / a[0]));
      }
      case LRSchedule::Kind::kCosine:
        return Cosine(lr, std::numbers::pi * Math::Minimum(t_, a[0]) / a[0], a[1]);
      case LRSchedule::Kind::kWarmup:
        return lr * ((Math::Minimum(t_, a[0]) / a[0]) * (1 - a[1]) + a[1]);
      case LRSchedule::Kind::kRestarts:
        return Cosine(lr, std::numbers::pi * PartOfCycle(a[0], a[1]), a[2]);
      case LRSchedule::Kind::kPolynomial: {
        const Number left = 1.0 - Math::Minimum(t_, a[0]) / a[0];
        return lr * Math::Pow(left, Math::Like(t_, a[1]));
      }
      case LRSchedule::Kind::kOneCycle:
        return OneCycle(a[0], a[1], a[2], a[3] != 0, a[4], a[5], a[6] != 0);
    }
    return lr;
  }

 private:
  // From lr at angle 0 to `lowest` at pi.
  static Number Cosine(Number lr, Number angle, double lowest) {
    return (lr - lowest) * (1.0 + Math::Cos(angle)) * 0.5 + lowest;
  }

  // How much of its cycle is done at t, below 1. Cycles have `first` steps, then each `factor`
  // times as many. Which one it is is asked half a step later: at a boundary the logarithm may be
  // rounded to either side.
  Number PartOfCycle(double first, double factor) const {
    if (factor == 1) {
      const Number cycles = t_ / first;
      return cycles - Math::Floor(cycles);
    }
    const Number grown = (t_ + 0.5) * ((factor - 1) / first) + 1.0;
    const Number cycle = Math::Floor(Math::Log(grown) / Math::Log(Math::Like(t_, factor)));
    const Number length = Math::Pow(Math::Like(t_, factor), cycle) * first;
    const Number begin = (length - first) / (factor - 1);
    return (t_ - begin) / length;
  }

  // Phases that follow each other: the rate is where the first starts, and what each has added.
  Number OneCycle(double highest, double steps, double part, bool linear, double div_factor,
                  double final_div_factor, bool three_phase) const {
    const double start = highest / div_factor, end = start / final_div_factor;
    const double last = steps - 1, peak = part * steps - 1;
    const Number t = Math::Minimum(t_, last);
    Number rate = Part(t, 0, peak, linear) * (highest - start) + start;
    if (three_phase) {
      const double fallen = 2 * peak;
      rate = rate + Part(t, peak, fallen, linear) * (start - highest);
      return rate + Part(t, fallen, last, linear) * (end - start);
    }
    return rate + Part(t, peak, last, linear) * (end - highest);
  }

  // How much of the way from `begin` to `end` is gone at t, 0..1. Of a phase without a step, all if
  // it lies before the first one, else none.
  static Number Part(Number t, double begin, double end, bool linear) {
    if (begin >= end) return Math::Like(t, end <= 0 ? 1 : 0);
    const Number part = Math::Minimum(Math::Maximum((t - begin) / (end - begin), 0), 1);
    return linear ? part : (1.0 - Math::Cos(std::numbers::pi * part)) * 0.5;
  }

  Number t_;
};

}  // namespace halftone::optim
