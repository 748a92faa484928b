#include "halftone/graph/ir/attribute.h"

#include <algorithm>
#include <cstring>

namespace halftone::ir {
namespace {

bool SameBits(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

auto LowerBound(auto& entries, const std::string& name) {
  return std::lower_bound(
      entries.begin(), entries.end(), name,
      [](const Attributes::Entry& entry, const std::string& key) { return entry.first < key; });
}

}  // namespace

const char* Name(AttrType type) {
  switch (type) {
    case AttrType::kBool:
      return "bool";
    case AttrType::kInt:
      return "int";
    case AttrType::kFloat:
      return "float";
    case AttrType::kString:
      return "string";
    case AttrType::kDType:
      return "dtype";
    case AttrType::kInts:
      return "ints";
    case AttrType::kFloats:
      return "floats";
    case AttrType::kStrings:
      return "strings";
    case AttrType::kTensor:
      return "tensor";
  }
  return "?";
}

// Floats compare by bits, so that NaN equals itself and -0 is not 0: what is equal may be merged.
bool Equal(const AttrValue& a, const AttrValue& b) {
  if (a.index() != b.index()) return false;
  switch (TypeOf(a)) {
    case AttrType::kFloat:
      return SameBits(std::get<double>(a), std::get<double>(b));
    case AttrType::kFloats: {
      const auto& x = std::get<std::vector<double>>(a);
      const auto& y = std::get<std::vector<double>>(b);
      return std::equal(x.begin(), x.end(), y.begin(), y.end(), SameBits);
    }
    case AttrType::kTensor: {
      const Tensor& x = std::get<Tensor>(a);
      const Tensor& y = std::get<Tensor>(b);
      if (!x.defined() || !y.defined()) return x.defined() == y.defined();
      return BitEqual(x, y);
    }
    case AttrType::kBool:
      return std::get<bool>(a) == std::get<bool>(b);
    case AttrType::kInt:
      return std::get<int64_t>(a) == std::get<int64_t>(b);
    case AttrType::kString:
      return std::get<std::string>(a) == std::get<std::string>(b);
    case AttrType::kDType:
      return std::get<DType>(a) == std::get<DType>(b);
    case AttrType::kInts:
      return std::get<std::vector<int64_t>>(a) == std::get<std::vector<int64_t>>(b);
    case AttrType::kStrings:
      return std::get<std::vector<std::string>>(a) == std::get<std::vector<std::string>>(b);
  }
  return false;
}

Attributes::Attributes(std::initializer_list<Entry> entries) {
  for (const Entry& entry : entries) Set(entry.first, entry.second);
}

void Attributes::Set(const std::string& name, AttrValue value) {
  auto it = LowerBound(entries_, name);
  if (it != entries_.end() && it->first == name) {
    it->second = std::move(value);
  } else {
    entries_.emplace(it, name, std::move(value));
  }
}

void Attributes::Erase(const std::string& name) {
  auto it = LowerBound(entries_, name);
  if (it != entries_.end() && it->first == name) entries_.erase(it);
}

const AttrValue* Attributes::Find(const std::string& name) const {
  auto it = LowerBound(entries_, name);
  return it != entries_.end() && it->first == name ? &it->second : nullptr;
}

bool operator==(const Attributes& a, const Attributes& b) {
  return std::equal(a.entries_.begin(), a.entries_.end(), b.entries_.begin(), b.entries_.end(),
                    [](const Attributes::Entry& x, const Attributes::Entry& y) {
                      return x.first == y.first && Equal(x.second, y.second);
                    });
}

}  // namespace halftone::ir
