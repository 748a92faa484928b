#include "halftone/graph/ops/support/all_reduce.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::ops {

int64_t AllReduceBufferElements(int64_t elements, int64_t ranks) {
  if (ranks == 1) return elements;
  const int64_t chunk = (elements + 1 + ranks - 1) / ranks;
  return 2 * ranks * ((chunk + 31) / 32 * 32);
}

absl::Status CheckRanks(const ir::InferContext& ctx) {
  const int64_t ranks = ctx.attrs.GetInt("ranks");
  if (ranks >= 1 && ranks <= kMaxRanks) return absl::OkStatus();
  return InvalidArgument(ctx.op, ": ranks is ", ranks, "; expected 1..", kMaxRanks);
}

absl::Status CheckReduction(const ir::InferContext& ctx) {
  const std::string& reduction = ctx.attrs.GetString("reduction");
  if (reduction != "mean" && reduction != "sum") {
    return OpError(ctx, "reduction is \"", reduction, "\"; expected mean or sum");
  }
  return absl::OkStatus();
}

absl::StatusOr<DType> NamedFloat(const ir::InferContext& ctx, DType usual) {
  const std::string& name = ctx.attrs.GetString("dtype");
  if (name.empty()) return usual;
  const auto dtype = ParseDType(name);
  if (dtype.has_value() && ir::kFloats.Contains(*dtype)) return *dtype;
  return OpError(ctx, "dtype is \"", name, "\"; expected f64, f32, f16 or bf16");
}

// Of one rank there is nobody to add: its gradients, one after the other, and apart again.
absl::Status CheckAlone(const char* op, const ir::Attributes& attrs) {
  if (attrs.GetInt("ranks") == 1) return absl::OkStatus();
  return Unimplemented(op, ": this device has no kernel that exchanges data between the ",
                       attrs.GetInt("ranks"), " ranks; expected the CPU");
}

absl::StatusOr<std::vector<int64_t>> ParseExtents(const std::string& op, const std::string& text) {
  std::vector<int64_t> extents;
  const bool closed = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (closed && text.size() == 2) return extents;
  if (closed) {
    for (const auto part : absl::StrSplit(text.substr(1, text.size() - 2), ',')) {
      int64_t extent = 0;
      if (!absl::SimpleAtoi(part, &extent) || extent < 0) {
        extents.clear();
        break;
      }
      extents.push_back(extent);
    }
  }
  if (!extents.empty()) return extents;
  return InvalidArgument(op, ": shape \"", text, "\"; expected extents such as [8,16]");
}

}  // namespace halftone::ops
