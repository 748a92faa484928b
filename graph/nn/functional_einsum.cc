// einsum: an equation lowered to transpose, reshape, matmul, mul and sum. Terms are contracted from
// left to right; an axis is summed over as soon as no later term and no result needs it.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/functional_formula.h"

namespace halftone::nn {
namespace {

using internal::At;

// Axes by name, in the order of an implicit result: those of "..." are -n..-1, then A..Z, then a..z.
using Labels = std::vector<int>;
constexpr int kDots = std::numeric_limits<int>::min();  // "..." before the operand is known
constexpr int kLetters = 26;

struct Equation {
  std::vector<Labels> terms;
  std::optional<Labels> result;
};

// A value and the names of its axes.
struct Term {
  Value value;
  Labels labels;

  int64_t extent(int label) const {
    const auto at = std::find(labels.begin(), labels.end(), label);
    return value.shape()[static_cast<int>(at - labels.begin())];
  }
};

bool Has(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

std::string LabelText(int label) {
  if (label < 0) return "an axis of \"...\"";
  const int letter = label < kLetters ? 'A' + label : 'a' + label - kLetters;
  return Concat("'", std::string(1, static_cast<char>(letter)), "'");
}

absl::StatusOr<Labels> ParseTerm(std::string_view text) {
  Labels labels;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= 'A' && c <= 'Z') {
      labels.push_back(c - 'A');
    } else if (c >= 'a' && c <= 'z') {
      labels.push_back(c - 'a' + kLetters);
    } else if (text.substr(i, 3) == "..." && !Has(labels, kDots)) {
      labels.push_back(kDots);
      i += 2;
    } else {
      return InvalidArgument("einsum: term \"", std::string(text),
                             "\"; expected letters and at most one \"...\"");
    }
  }
  return labels;
}

absl::StatusOr<Equation> Parse(const std::string& equation) {
  std::string text = equation;
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  Equation parsed;
  const size_t arrow = text.find("->");
  if (arrow != std::string::npos) {
    HT_ASSIGN_OR_RETURN(parsed.result, ParseTerm(std::string_view(text).substr(arrow + 2)));
    text.resize(arrow);
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    HT_ASSIGN_OR_RETURN(Labels term, ParseTerm(std::string_view(text).substr(begin, end - begin)));
    parsed.terms.push_back(std::move(term));
    begin = end + 1;
  }
  return parsed;
}

// "..." as the last `dots` axes of all that it may stand for.
Labels WithoutDots(const Labels& labels, int dots) {
  Labels all;
  for (int label : labels) {
    if (label != kDots) {
      all.push_back(label);
      continue;
    }
    for (int axis = -dots; axis < 0; ++axis) all.push_back(axis);
  }
  return all;
}

absl::StatusOr<Term> TermOf(const Labels& labels, const Value& x) {
  const int named = static_cast<int>(labels.size()) - (Has(labels, kDots) ? 1 : 0);
  if (named > x.rank() || (named < x.rank() && !Has(labels, kDots))) {
    return InvalidArgument("einsum: a term names ", named, " axes of ", Name(x.dtype()), x.shape(),
                           "; expected ", x.rank());
  }
  return Term{x, WithoutDots(labels, x.rank() - named)};
}

// Extents of one name agree or are 1; of one term they are equal.
absl::Status CheckExtents(const std::vector<Term>& terms) {
  std::map<int, int64_t> all;
  for (const Term& term : terms) {
    std::map<int, int64_t> own;
    for (size_t i = 0; i < term.labels.size(); ++i) {
      const int label = term.labels[i];
      const int64_t extent = term.value.shape()[static_cast<int>(i)];
      const int64_t before = own.try_emplace(label, extent).first->second;
      int64_t& elsewhere = all.try_emplace(label, extent).first->second;
      if (elsewhere == 1) elsewhere = extent;
      if (before == extent && (extent == 1 || elsewhere == extent)) continue;
      return InvalidArgument("einsum: ", LabelText(label), " has extent ", extent, " in ",
                             Name(term.value.dtype()), term.value.shape(), "; expected ",
                             before != extent ? before : elsewhere, ", as before");
    }
  }
  return absl::OkStatus();
}

// What the result is made of: that which was written, or the names that stand once.
absl::StatusOr<Labels> ResultOf(const Equation& equation, const std::vector<Term>& terms) {
  std::map<int, int> uses;
  for (const Term& term : terms) {
    for (int label : term.labels) ++uses[label];
  }
  Labels result;
  if (!equation.result) {
    for (const auto& [label, count] : uses) {
      if (label < 0 || count == 1) result.push_back(label);
    }
    return result;
  }
  const int dots = uses.empty() ? 0 : std::max(0, -uses.begin()->first);
  result = WithoutDots(*equation.result, dots);
  for (size_t i = 0; i < result.size(); ++i) {
    const Labels before(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(i));
    if (uses.count(result[i]) == 0 || Has(before, result[i])) {
      return InvalidArgument("einsum: ", LabelText(result[i]), " stands ",
                             Has(before, result[i]) ? "twice in the result" : "in the result alone",
                             "; expected axes of the operands, each once");
    }
  }
  return result;
}

// Lowers terms, whose equation was checked.
class Lowering {
 public:
  explicit Lowering(Loc loc) : loc_(loc) {}

  // The diagonal of every name that stands twice.
  Term Diagonal(Term x) const {
    for (size_t i = 0; i < x.labels.size(); ++i) {
      const auto again = std::find(x.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                   x.labels.end(), x.labels[i]);
      if (again == x.labels.end()) continue;
      const auto second = static_cast<size_t>(again - x.labels.begin());
      std::vector<int64_t> perm, extents;
      Labels labels;
      for (size_t k = 0; k < x.labels.size(); ++k) {
        if (k == i || k == second) continue;
        perm.push_back(static_cast<int64_t>(k));
        extents.push_back(x.value.shape()[static_cast<int>(k)]);
        labels.push_back(x.labels[k]);
      }
      perm.push_back(static_cast<int64_t>(i));
      perm.push_back(static_cast<int64_t>(second));
      const int64_t n = x.extent(x.labels[i]);
      extents.push_back(n * n);
      labels.push_back(x.labels[i]);
      const Value flat = reshape(permute(x.value, perm, loc_), extents, loc_);
      return Diagonal({slice(flat, -1, 0, n * n, n + 1, loc_), std::move(labels)});
    }
    return x;
  }

  // Sums over the names for which `is_over` holds.
  template <typename F>
  Term SumOver(const Term& x, const F& is_over) const {
    std::vector<int64_t> axes;
    Labels kept;
    for (size_t i = 0; i < x.labels.size(); ++i) {
      if (is_over(x.labels[i])) {
        axes.push_back(static_cast<int64_t>(i));
      } else {
        kept.push_back(x.labels[i]);
      }
    }
    return axes.empty() ? x : Term{sum(x.value, axes, false, loc_), std::move(kept)};
  }

  // The axes of x in this order, which has all of them.
  Value Ordered(const Term& x, const Labels& order) const {
    if (order == x.labels) return x.value;
    std::vector<int64_t> perm;
    for (int label : order) {
      perm.push_back(std::find(x.labels.begin(), x.labels.end(), label) - x.labels.begin());
    }
    return permute(x.value, perm, loc_);
  }

  // The product of a and b, summed over what `needed` lacks.
  Term Contract(Term a, Term b, const Labels& needed) const {
    // Beside an extent of 1, or none, a sum needs no product.
    const auto without_lone_sums = [&](const Term& x, const Term& other) {
      return SumOver(x, [&](int label) {
        return !Has(needed, label) &&
               (!Has(other.labels, label) || x.extent(label) != other.extent(label));
      });
    };
    Term a_left = without_lone_sums(a, b);
    b = without_lone_sums(b, a);
    a = std::move(a_left);
    Labels batch, inner, rows, columns;
    for (int label : a.labels) {
      Labels& group = !Has(b.labels, label) ? rows : Has(needed, label) ? batch : inner;
      group.push_back(label);
    }
    for (int label : b.labels) {
      if (!Has(a.labels, label)) columns.push_back(label);
    }
    Labels labels = Joined(batch, Joined(rows, columns));
    if (inner.empty() || !IsFloat(a.value.dtype())) {
      const Labels product = Joined(labels, inner);
      const At at(loc_);
      const Term y{at(Spread(a, product)) * at(Spread(b, product)), product};
      return SumOver(y, [&inner](int label) { return Has(inner, label); });
    }
    const bool same_batch = std::all_of(
        batch.begin(), batch.end(), [&](int label) { return a.extent(label) == b.extent(label); });
    const auto matrices = [&](const Term& x, const Labels& outer, const Labels& last) {
      std::vector<int64_t> extents;
      for (int label : batch) extents.push_back(x.extent(label));
      if (same_batch && batch.size() > 1) extents = {Count(x, batch)};
      extents.push_back(Count(x, outer));
      extents.push_back(Count(x, last));
      return reshape(Ordered(x, Joined(batch, Joined(outer, last))), extents, loc_);
    };
    std::vector<int64_t> extents;
    for (int label : batch) {
      const int64_t of_a = a.extent(label);
      extents.push_back(of_a == 1 ? b.extent(label) : of_a);
    }
    for (int label : rows) extents.push_back(a.extent(label));
    for (int label : columns) extents.push_back(b.extent(label));
    const Value y = matmul(matrices(a, rows, inner), matrices(b, inner, columns), loc_);
    return {reshape(y, extents, loc_), std::move(labels)};
  }

 private:
  static Labels Joined(Labels first, const Labels& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  }

  static int64_t Count(const Term& x, const Labels& labels) {
    int64_t count = 1;
    for (int label : labels) count *= x.extent(label);
    return count;
  }

  // x with all of these axes, those that it lacks of extent 1.
  Value Spread(const Term& x, const Labels& all) const {
    Labels own;
    std::vector<int64_t> extents;
    for (int label : all) {
      if (Has(x.labels, label)) own.push_back(label);
      extents.push_back(Has(x.labels, label) ? x.extent(label) : 1);
    }
    return reshape(Ordered(x, own), extents, loc_);
  }

  Loc loc_;
};

// What is needed of the terms up to `last`: by the result and by the terms behind.
Labels NeededBehind(const std::vector<Term>& terms, size_t last, Labels result) {
  for (size_t i = last + 1; i < terms.size(); ++i) {
    result.insert(result.end(), terms[i].labels.begin(), terms[i].labels.end());
  }
  return result;
}

}  // namespace

Value einsum(const std::string& equation, const std::vector<Value>& operands, Loc loc) {
  const absl::StatusOr<Equation> parsed = Parse(equation);
  if (!parsed.ok()) return Fail(loc, parsed.status());
  if (parsed->terms.size() != operands.size()) {
    return Fail(loc,
                InvalidArgument("einsum: \"", equation, "\" has ", parsed->terms.size(),
                                " terms; expected one for each of ", operands.size(), " operands"));
  }
  const std::vector<Value> values = internal::PromoteAll(operands, loc);
  std::vector<Term> terms;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].valid()) return {};
    absl::StatusOr<Term> term = TermOf(parsed->terms[i], values[i]);
    if (!term.ok()) return Fail(loc, term.status());
    terms.push_back(*std::move(term));
  }
  const absl::Status extents = CheckExtents(terms);
  if (!extents.ok()) return Fail(loc, extents);
  const absl::StatusOr<Labels> result = ResultOf(*parsed, terms);
  if (!result.ok()) return Fail(loc, result.status());

  const Lowering lower(loc);
  Term y = lower.Diagonal(terms[0]);
  for (size_t i = 1; i < terms.size(); ++i) {
    y = lower.Contract(std::move(y), lower.Diagonal(terms[i]), NeededBehind(terms, i, *result));
    if (!y.value.valid()) return {};
  }
  y = lower.SumOver(y, [&](int label) { return !Has(*result, label); });
  return lower.Ordered(y, *result);
}

}  // namespace halftone::nn
