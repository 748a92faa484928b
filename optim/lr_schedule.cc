#include "halftone/optim/lr_schedule.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "halftone/core/dtype.h"
#include "halftone/optim/schedule_formula.h"

namespace halftone::optim {
namespace {

// What an argument may be.
enum class Range { kSteps, kRate, kUnit, kPositive, kFlag };

struct Argument {
  const char* name;
  Range range;
  std::optional<double> default_value = std::nullopt;  // defaults come last
};

// What differs between the kinds, for printing, parsing and messages.
struct KindInfo {
  LRSchedule::Kind kind;
  const char* word;   // in the text form
  const char* title;  // in messages
  std::vector<Argument> arguments;
};

const std::vector<KindInfo>& Kinds() {
  using Kind = LRSchedule::Kind;
  static const auto* const kinds = new std::vector<KindInfo>{
      {Kind::kStep, "step", "StepLR", {{"step_size", Range::kSteps}, {"gamma", Range::kRate, 0.1}}},
      {Kind::kCosine,
       "cosine",
       "CosineLR",
       {{"t_max", Range::kSteps}, {"eta_min", Range::kRate, 0}}},
      {Kind::kWarmup,
       "warmup",
       "LinearWarmup",
       {{"steps", Range::kSteps}, {"start_factor", Range::kUnit, kDefaultWarmupStart}}},
      {Kind::kRestarts,
       "restarts",
       "CosineAnnealingWarmRestarts",
       {{"t_0", Range::kSteps}, {"t_mult", Range::kSteps, 1}, {"eta_min", Range::kRate, 0}}},
      {Kind::kPolynomial,
       "polynomial",
       "PolynomialLR",
       {{"total_iters", Range::kSteps, 5}, {"power", Range::kRate, 1}}},
      {Kind::kOneCycle,
       "onecycle",
       "OneCycleLR",
       {{"max_lr", Range::kRate},
        {"total_steps", Range::kSteps},
        {"pct_start", Range::kUnit, OneCycleOptions().pct_start},
        {"linear", Range::kFlag, OneCycleOptions().linear},
        {"div_factor", Range::kPositive, OneCycleOptions().div_factor},
        {"final_div_factor", Range::kPositive, OneCycleOptions().final_div_factor},
        {"three_phase", Range::kFlag, OneCycleOptions().three_phase}}}};
  return *kinds;
}
const KindInfo& InfoOf(LRSchedule::Kind kind) { return Kinds()[static_cast<size_t>(kind)]; }

// Up to here a double has every whole number.
constexpr int64_t kMaxWhole = int64_t{1} << 53;

double Whole(int64_t value) {
  return static_cast<double>(std::clamp(value, -kMaxWhole, kMaxWhole));
}

bool IsWhole(Range range) { return range == Range::kSteps || range == Range::kFlag; }

// Whoever makes a term by hand may get the number of arguments wrong.
bool IsComplete(const LRSchedule::Term& term) {
  return term.arguments.size() == InfoOf(term.kind).arguments.size();
}

// Null if the value is in the range, else what was expected.
const char* Expected(Range range, double value) {
  const bool finite = value >= 0 && value <= MaxFinite(DType::kF32);
  switch (range) {
    case Range::kSteps:
      if (!(value > 0)) return "> 0";
      if (value > static_cast<double>(kMaxWhole)) return "at most 2^53";
      return value == std::floor(value) ? nullptr : "a whole number";
    case Range::kRate:
      return finite ? nullptr : "a number >= 0 that is finite in f32";
    case Range::kUnit:
      if (!finite) return "a number >= 0 that is finite in f32";
      return value <= 1 ? nullptr : "0..1";
    case Range::kPositive:
      return finite && value > 0 ? nullptr : "a number > 0 that is finite in f32";
    case Range::kFlag:
      return value == 0 || value == 1 ? nullptr : "0 or 1";
  }
  return nullptr;
}

// The shortest text that reads back as the same number.
std::string PrintNumber(Range range, double x) {
  if (IsWhole(range) && x == std::floor(x) && std::abs(x) <= static_cast<double>(kMaxWhole)) {
    return Concat(static_cast<int64_t>(x));
  }
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

  absl::StatusOr<double> ParseArgument(const Argument& argument) {
    if (!IsWhole(argument.range)) return ParseNumber<double>("a number");
    HT_ASSIGN_OR_RETURN(const int64_t whole, ParseNumber<int64_t>("a whole number"));
    return Whole(whole);
  }

  absl::StatusOr<LRSchedule::Term> ParseTerm() {
    std::string words;
    for (const KindInfo& info : Kinds()) {
      const std::string opening = std::string(info.word) + "(";
      words += Concat(words.empty() ? "" : &info == &Kinds().back() ? " or " : ", ", opening);
      if (text_.compare(at_, opening.size(), opening) != 0) continue;
      at_ += opening.size();
      LRSchedule::Term term{info.kind, {}};
      for (const Argument& argument : info.arguments) {
        const bool more = at_ < text_.size() && text_[at_] != ')';
        if (argument.default_value.has_value() && !more) {
          term.arguments.push_back(*argument.default_value);
          continue;
        }
        if (!term.arguments.empty()) HT_RETURN_IF_ERROR(Expect(','));
        HT_ASSIGN_OR_RETURN(const double value, ParseArgument(argument));
        term.arguments.push_back(value);
      }
      HT_RETURN_IF_ERROR(Expect(')'));
      return term;
    }
    return Fail(words);
  }

  const std::string& text_;
  size_t at_ = 0;
};

struct HostMath {
  using Number = double;
  static double Like(double, double c) { return c; }
  static double Minimum(double x, double c) { return std::min(x, c); }
  static double Maximum(double x, double c) { return std::max(x, c); }
  static double Floor(double x) { return std::floor(x); }
  static double Cos(double x) { return std::cos(x); }
  static double Log(double x) { return std::log(x); }
  static double Pow(double x, double y) { return std::pow(x, y); }
};

}  // namespace

double LRSchedule::At(double base_lr, int64_t applied_steps) const {
  const ScheduleFormula<HostMath> formula(static_cast<double>(applied_steps));
  double lr = base_lr;
  for (const Term& term : terms_) {
    if (!IsComplete(term)) return std::nan("");
    lr = formula.Rate(term, lr);
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
    if (!IsComplete(term)) {
      return InvalidArgument(info.title, ": ", term.arguments.size(), " arguments; expected ",
                             info.arguments.size());
    }
    for (size_t i = 0; i < info.arguments.size(); ++i) {
      const Argument& argument = info.arguments[i];
      const char* expected = Expected(argument.range, term.arguments[i]);
      if (expected == nullptr) continue;
      return InvalidArgument(info.title, ": ", argument.name, " = ",
                             PrintNumber(argument.range, term.arguments[i]), "; expected ",
                             expected);
    }
  }
  return absl::OkStatus();
}

std::string LRSchedule::ToString() const {
  std::string out;
  for (const Term& term : terms_) {
    const KindInfo& info = InfoOf(term.kind);
    size_t printed = std::min(info.arguments.size(), term.arguments.size());
    while (IsComplete(term) && printed > 0 &&
           info.arguments[printed - 1].default_value == term.arguments[printed - 1]) {
      --printed;
    }
    out += Concat(out.empty() ? "" : "*", info.word, "(");
    for (size_t i = 0; i < printed; ++i) {
      out += (i == 0 ? "" : ",") + PrintNumber(info.arguments[i].range, term.arguments[i]);
    }
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
  return LRSchedule({LRSchedule::Kind::kStep, {Whole(step_size), gamma}});
}

LRSchedule CosineLR(int64_t t_max, double eta_min) {
  return LRSchedule({LRSchedule::Kind::kCosine, {Whole(t_max), eta_min}});
}

LRSchedule LinearWarmup(int64_t steps, double start_factor) {
  return LRSchedule({LRSchedule::Kind::kWarmup, {Whole(steps), start_factor}});
}

LRSchedule CosineAnnealingWarmRestarts(int64_t t_0, int64_t t_mult, double eta_min) {
  return LRSchedule({LRSchedule::Kind::kRestarts, {Whole(t_0), Whole(t_mult), eta_min}});
}

LRSchedule PolynomialLR(int64_t total_iters, double power) {
  return LRSchedule({LRSchedule::Kind::kPolynomial, {Whole(total_iters), power}});
}

LRSchedule OneCycleLR(double max_lr, int64_t total_steps, const OneCycleOptions& options) {
  return LRSchedule(
      {LRSchedule::Kind::kOneCycle,
       {max_lr, Whole(total_steps), options.pct_start, options.linear ? 1.0 : 0.0,
        options.div_factor, options.final_div_factor, options.three_phase ? 1.0 : 0.0}});
}

}  // namespace halftone::optim
