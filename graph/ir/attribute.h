// Attributes: the compile-time parameters of a node.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "halftone/core/check.h"
#include "halftone/core/tensor.h"

namespace halftone::ir {

using AttrValue = std::variant<bool, int64_t, double, std::string, DType, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>, Tensor>;

// Index of each alternative in AttrValue; the declared type of an attribute.
enum class AttrType : uint8_t {
  kBool,
  kInt,
  kFloat,
  kString,
  kDType,
  kInts,
  kFloats,
  kStrings,
  kTensor
};
const char* Name(AttrType type);
inline AttrType TypeOf(const AttrValue& value) { return static_cast<AttrType>(value.index()); }
// Tensors compare by dtype, shape and bytes.
bool Equal(const AttrValue& a, const AttrValue& b);

// A few named values, kept sorted by name. Reading an absent name or the wrong type is a bug of
// ours (CHECK): the builder fills in defaults and checks types against the op record before a node
// exists.
class Attributes {
 public:
  using Entry = std::pair<std::string, AttrValue>;
  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries);

  void Set(const std::string& name, AttrValue value);
  void Erase(const std::string& name);
  const AttrValue* Find(const std::string& name) const;
  bool Has(const std::string& name) const { return Find(name) != nullptr; }

  template <typename T>
  const T& Get(const std::string& name) const {
    const AttrValue* value = Find(name);
    HT_CHECK(value != nullptr, "attribute missing");
    const T* typed = std::get_if<T>(value);
    HT_CHECK(typed != nullptr, "attribute has another type");
    return *typed;
  }
  bool GetBool(const std::string& name) const { return Get<bool>(name); }
  int64_t GetInt(const std::string& name) const { return Get<int64_t>(name); }
  double GetFloat(const std::string& name) const { return Get<double>(name); }
  const std::string& GetString(const std::string& name) const { return Get<std::string>(name); }
  DType GetDType(const std::string& name) const { return Get<DType>(name); }
  const std::vector<int64_t>& GetInts(const std::string& name) const {
    return Get<std::vector<int64_t>>(name);
  }

  const std::vector<Entry>& entries() const { return entries_; }
  friend bool operator==(const Attributes& a, const Attributes& b);

 private:
  std::vector<Entry> entries_;
};

}  // namespace halftone::ir
