#include "halftone/optim/lr_schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>

#include "halftone/core/dtype.h"

namespace halftone::optim {
namespace {

// What differs between the kinds, for printing, parsing and messages.
struct KindInfo {
  LRSchedule::Kind kind;
  const char* word;      // in the text form
  const char* title;     // in messages
  const char* steps;     // name of the first argument
  const char* value;     // name of the second
  double default_value;  // of the second
};
constexpr KindInfo kKinds[] = {
    {LRSchedule::Kind::kStep, "step", "StepLR", "step_size", "gamma", 0.1},
    {LRSchedule::Kind::kCosine, "cosine", "CosineLR", "t_max", "eta_min", 0.0},
    {LRSchedule::Kind::kWarmup, "warmup", "LinearWarmup", "steps", "start_factor",
     kDefaultWarmupStart},
};
const KindInfo& InfoOf(LRSchedule::Kind kind) { return kKinds[static_cast<int>(kind)]; }

// The shortest text that reads back as the same double.
std::string PrintDouble(double x) {
  char buffer[32];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, x).ptr;
  return std::string(buffer, end);
}

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  absl::StatusOr<LRSchedule> Run() {
    LRSchedule result;
    if (text_.empty()) return result;
    while (true) {
      HT_ASSIGN_OR_RETURN(LRSchedule::Term term, ParseTerm());
      result = result * LRSchedule(term);
      if (at_ == text_.size()) break;
      HT_RETURN_IF_ERROR(Expect('*'));
    }
    HT_RETURN_IF_ERROR(result.Validate());
    return result;
  }

 private:
  absl::Status Fail(const std::string& expected) const {
    return InvalidArgument("schedule \"", text_, "\", column ", at_ + 1, ": expected ", expected);
  }

  absl::Status Expect(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return Fail(Concat("'", c, "'"));
    ++at_;
    return absl::OkStatus();
  }

  template <typename T>
  absl::StatusOr<T> ParseNumber(const char* what) {
    T value{};
    auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc()) return Fail(what);
    at_ = end - text_.data();
    return value;
  }

  absl::StatusOr<LRSchedule::Term> ParseTerm() {
    for (const KindInfo& info : kKinds) {
      std::string opening = std::string(info.word) + "(";
      if (text_.compare(at_, opening.size(), opening) != 0) continue;
      at_ += opening.size();
      LRSchedule::Term term{info.kind, 0, info.default_value};
      HT_ASSIGN_OR_RETURN(term.steps, ParseNumber<int64_t>("a whole number"));
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        HT_ASSIGN_OR_RETURN(term.value, ParseNumber<double>("a number"));
      }
      HT_RETURN_IF_ERROR(Expect(')'));
      return term;
    }
    return Fail("step(, cosine( or warmup(");
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

double LRSchedule::At(double base_lr, int64_t applied_steps) const {
  double lr = base_lr;
  const double t = static_cast<double>(applied_steps);
  for (const Term& term : terms_) {
    const double n = static_cast<double>(term.steps);
    switch (term.kind) {
      case Kind::kStep:
        lr *= std::pow(term.value, std::floor(t / n));
        break;
      case Kind::kCosine:
        lr = term.value +
             (lr - term.value) * (1 + std::cos(std::numbers::pi * std::min(t, n) / n)) * 0.5;
        break;
      case Kind::kWarmup:
        lr *= term.value + (1 - term.value) * (std::min(t, n) / n);
        break;
    }
  }
  return lr;
}

absl::Status LRSchedule::Validate() const {
  if (num_terms_ > kMaxTerms) {
    return InvalidArgument("a product of ", num_terms_ < kManyTerms ? "" : "at least ", num_terms_,
                           " terms; expected at most ", kMaxTerms);
  }
  for (const Term& term : terms_) {
    const KindInfo& info = InfoOf(term.kind);
    if (term.steps <= 0) {
      return InvalidArgument(info.title, ": ", info.steps, " = ", term.steps, "; expected > 0");
    }
    if (!(term.value >= 0 && term.value <= MaxFinite(DType::kF32))) {
      return InvalidArgument(info.title, ": ", info.value, " = ", term.value,
                             "; expected a number >= 0 that is finite in f32");
    }
    if (term.kind == Kind::kWarmup && term.value > 1) {
      return InvalidArgument(info.title, ": ", info.value, " = ", term.value, "; expected 0..1");
    }
  }
  return absl::OkStatus();
}

std::string LRSchedule::ToString() const {
  std::string out;
  for (const Term& term : terms_) {
    const KindInfo& info = InfoOf(term.kind);
    out += Concat(out.empty() ? "" : "*", info.word, "(", term.steps);
    if (term.value != info.default_value) out += "," + PrintDouble(term.value);
    out += ")";
  }
  return out;
}

absl::StatusOr<LRSchedule> LRSchedule::Parse(const std::string& text) { return Parser(text).Run(); }

LRSchedule operator*(const LRSchedule& a, const LRSchedule& b) {
  LRSchedule result;
  result.num_terms_ = std::min(a.num_terms_ + b.num_terms_, LRSchedule::kManyTerms);
  if (result.num_terms_ > LRSchedule::kMaxTerms) return result;
  result.terms_ = a.terms_;
  result.terms_.insert(result.terms_.end(), b.terms_.begin(), b.terms_.end());
  return result;
}

LRSchedule StepLR(int64_t step_size, double gamma) {
  return LRSchedule({LRSchedule::Kind::kStep, step_size, gamma});
}

LRSchedule CosineLR(int64_t t_max, double eta_min) {
  return LRSchedule({LRSchedule::Kind::kCosine, t_max, eta_min});
}

LRSchedule LinearWarmup(int64_t steps, double start_factor) {
  return LRSchedule({LRSchedule::Kind::kWarmup, steps, start_factor});
}

}  // namespace halftone::optim
