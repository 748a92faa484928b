// where and cast.

#include <bit>
#include <cmath>

#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

// x as a double whose later rounding to a narrower float equals one rounding of x: bits beyond the
// significand are folded into its last one (round to odd).
double ForNarrowing(int64_t x) {
  const uint64_t magnitude = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  const int excess = std::bit_width(magnitude) - 53;
  if (excess <= 0) return static_cast<double>(x);
  const uint64_t lost = magnitude & ((uint64_t{1} << excess) - 1);
  const uint64_t kept = magnitude >> excess | (lost != 0);
  return std::copysign(std::ldexp(static_cast<double>(kept), excess), static_cast<double>(x));
}

RefRun MakeCast(RefNode& node) {
  const DType from = node.inputs[0].dtype, to = node.outputs[0].dtype;
  const int64_t size = node.out(0).num_elements();
  if (from == to) {
    return [=](const RefCall& call) {
      for (int64_t i = 0; i < size; ++i) call.Copy(0, i, 0, i);
    };
  }
  if (IsFloat(from)) {
    return [=](const RefCall& call) {
      for (int64_t i = 0; i < size; ++i) call.Store(0, i, call.Load(0, i));
    };
  }
  if (IsFloat(to) && to != DType::kF64) {
    return [=](const RefCall& call) {
      for (int64_t i = 0; i < size; ++i) call.Store(0, i, ForNarrowing(call.LoadInt(0, i)));
    };
  }
  return [=](const RefCall& call) {
    for (int64_t i = 0; i < size; ++i) call.StoreInt(0, i, call.LoadInt(0, i));
  };
}

RefRun MakeWhere(RefNode& node) {
  const IndexMap condition = IndexMap::Broadcast(node.in(0), node.out(0));
  const IndexMap a = IndexMap::Broadcast(node.in(1), node.out(0));
  const IndexMap b = IndexMap::Broadcast(node.in(2), node.out(0));
  return [=](const RefCall& call) {
    for (int64_t i = 0; i < condition.size(); ++i) {
      if (call.LoadInt(0, condition(i)) != 0) {
        call.Copy(1, a(i), 0, i);
      } else {
        call.Copy(2, b(i), 0, i);
      }
    }
  };
}

}  // namespace

void Register_reference_select(KernelRegistry& r) {
  AddReference(r, "cast", ir::kStorable, MakeCast);
  AddReference(r, "where", ir::kAnyDType, MakeWhere);
}

}  // namespace halftone::kernels
