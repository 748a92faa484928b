// Sums of products by an equation, as products of matrices.
#include <algorithm>
#include <map>

#include "halftone/graph/onnx/rules/formulas.h"

namespace halftone::onnx {
namespace {

// A value whose axes have letters; those that "..." stands for are '0', '1', ... from the last.
struct Lettered {
  Expr x;
  std::string letters;
};

constexpr char kMostOpenAxes = 8;

// "a...b" of a rank as "a10b"; "" where it does not fit.
std::string Spelled(const std::string& term, size_t rank) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term.size() == rank ? term : "";
  if (term.size() - 3 > rank || rank - (term.size() - 3) > size_t{kMostOpenAxes}) return "";
  std::string open;
  for (size_t i = rank - (term.size() - 3); i-- > 0;) open += static_cast<char>('0' + i);
  return term.substr(0, dots) + open + term.substr(dots + 3);
}

bool Has(const std::string& letters, char c) { return letters.find(c) != std::string::npos; }

// Sums over the axes whose letter `wanted` lacks.
Lettered Summed(const Lettered& a, const std::string& wanted) {
  Ints axes;
  std::string left;
  for (size_t i = 0; i < a.letters.size(); ++i) {
    if (Has(wanted, a.letters[i])) {
      left += a.letters[i];
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  return {Reduce("sum", a.x, axes, false), left};
}

// Axes in the order of `letters`.
Expr Ordered(const Lettered& a, const std::string& letters) {
  Ints perm;
  for (const char c : letters) perm.push_back(static_cast<int64_t>(a.letters.find(c)));
  return Transpose(a.x, perm);
}

// sum of a b over the letters that both have and `wanted` lacks: one product of matrices for each
// value of those that both have and keep.
Lettered Multiplied(Lettered a, Lettered b, const std::string& wanted,
                    const std::map<char, int64_t>& extents) {
  a = Summed(a, wanted + b.letters);
  b = Summed(b, wanted + a.letters);
  std::string batch, inner, left, right;
  for (const char c : a.letters) (!Has(b.letters, c) ? left : Has(wanted, c) ? batch : inner) += c;
  for (const char c : b.letters) right += Has(a.letters, c) ? "" : std::string(1, c);
  const auto sizes = [&](const std::string& letters) {
    Ints values;
    for (const char c : letters) values.push_back(extents.at(c));
    return values;
  };
  const auto size = [&](const std::string& letters) { return Product(sizes(letters)); };
  const Expr x = Reshape(Ordered(a, batch + left + inner), {size(batch), size(left), size(inner)});
  const Expr y =
      Reshape(Ordered(b, batch + inner + right), {size(batch), size(inner), size(right)});
  if (!x.valid() || !y.valid()) return {x, ""};
  const std::string letters = batch + left + right;
  return {Reshape(x.builder()->Op("matmul", {x, y}), sizes(letters)), letters};
}

// "ij,jk->ik" as {"ij", "jk"} and "ik"; without an arrow the letters that occur once, in order.
bool Parse(NodeImport& n, std::vector<std::string>& terms, std::string& result, bool& has_result) {
  std::string equation = n.String("equation", "");
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  has_result = arrow != std::string::npos;
  if (has_result) result = equation.substr(arrow + 2);
  std::string rest = equation.substr(0, arrow);
  for (size_t comma = rest.find(','); comma != std::string::npos; comma = rest.find(',')) {
    terms.push_back(rest.substr(0, comma));
    rest = rest.substr(comma + 1);
  }
  terms.push_back(rest);
  const bool fits = static_cast<int>(terms.size()) == n.num_inputs();
  if (!fits) n.Fail("equation has ", terms.size(), " terms for ", n.num_inputs(), " operands");
  return n.ok();
}

Exprs ImportEinsum(NodeImport& n) {
  std::vector<std::string> terms;
  std::string result;
  bool has_result = false;
  if (!Parse(n, terms, result, has_result)) return {};
  std::vector<Lettered> operands;
  std::map<char, int64_t> extents;
  std::map<char, int> counts;
  for (size_t i = 0; i < terms.size() && n.ok(); ++i) {
    const Ints shape = n.shape(static_cast<int>(i));
    const std::string letters = Spelled(terms[i], shape.size());
    if (letters.size() != shape.size()) n.Fail("term ", terms[i], " does not fit operand ", i);
    for (size_t k = 0; k < letters.size() && n.ok(); ++k) {
      const char c = letters[k];
      if (std::count(letters.begin(), letters.end(), c) > 1) n.Fail("a diagonal is not covered");
      const int64_t known = extents.emplace(c, shape[k]).first->second;
      if (known != shape[k]) n.Fail("extents of '", c, "' differ: ", known, " and ", shape[k]);
      ++counts[c];
    }
    operands.push_back({n.in(static_cast<int>(i)), letters});
  }
  if (!n.ok()) return {};
  std::string dots;
  for (const auto& [c, extent] : extents) {
    if (c >= '0' && c < '0' + kMostOpenAxes) dots.insert(dots.begin(), c);
    if (!has_result && counts[c] == 1 && (c < '0' || c >= '0' + kMostOpenAxes)) result += c;
  }
  const size_t at = has_result ? result.find("...") : std::string::npos;
  if (at != std::string::npos) result.replace(at, 3, dots);
  if (!has_result) result = dots + result;
  for (const char c : result) {
    if (!extents.contains(c) || std::count(result.begin(), result.end(), c) > 1) {
      n.Fail("result letter '", c, "' occurs in no term, or twice");
    }
  }
  if (!n.ok()) return {};
  Lettered product = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    std::string wanted = result;
    for (size_t k = i + 1; k < operands.size(); ++k) wanted += operands[k].letters;
    product = Multiplied(product, operands[i], wanted, extents);
  }
  if (!product.x.valid() || !n.ok()) return {};
  product = Summed(product, result);
  return {Ordered(product, result)};
}

}  // namespace

void AddEinsumRules(Rules& rules) {
  rules.Import("Einsum", "transpose, reshape, matmul, sum", ImportEinsum,
               "diagonals; broadcasting");
}

}  // namespace halftone::onnx
