// cumsum, sort, take_along_dim and its gradient: ops that go along one axis, line by line.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "halftone/kernels/reference/support/nn.h"

namespace halftone::kernels {
namespace {

AxisSplit SplitOf(const RefNode& node, const Shape& shape) {
  return AxisSplit(shape, ops::CheckedAxis(node.attrs.GetInt("axis"), shape.rank()));
}

RefRun MakeCumsum(RefNode& node) {
  const AxisSplit split = SplitOf(node, node.in(0));
  const bool reverse = node.attrs.GetBool("reverse");
  const bool is_float = IsFloat(node.inputs[0].dtype);
  return [=](const RefCall& call) {
    for (int64_t line = 0; line < split.lines(); ++line) {
      double sum = -0.0;
      uint64_t exact = 0;
      for (int64_t k = 0; k < split.size; ++k) {
        const int64_t at = split(line, reverse ? split.size - 1 - k : k);
        if (is_float) {
          sum += call.Load(0, at);
          call.Store(0, at, sum);
        } else {
          exact += static_cast<uint64_t>(call.LoadInt(0, at));
          call.StoreWrapped(0, at, static_cast<int64_t>(exact));
        }
      }
    }
  };
}

// Whether element a of input 0 stands before b in ascending order; NaN counts as largest.
bool IsBelow(const RefCall& call, bool is_float, int64_t a, int64_t b) {
  if (!is_float) return call.LoadInt(0, a) < call.LoadInt(0, b);
  const double x = call.Load(0, a), y = call.Load(0, b);
  return std::isnan(y) ? !std::isnan(x) : x < y;
}

// By element, of equals by place.
RefRun MakeSort(RefNode& node) {
  const AxisSplit from = SplitOf(node, node.in(0)), to = SplitOf(node, node.out(0));
  const bool descending = node.attrs.GetBool("descending");
  const bool is_float = IsFloat(node.inputs[0].dtype);
  node.workspace_bytes = static_cast<size_t>(from.size) * sizeof(int64_t);
  return [=](const RefCall& call) {
    auto* places = call.workspace<int64_t>();
    for (int64_t line = 0; line < to.lines() && to.size > 0; ++line) {
      std::iota(places, places + from.size, 0);
      std::sort(places, places + from.size, [&](int64_t a, int64_t b) {
        const int64_t first = from(line, descending ? b : a);
        const int64_t second = from(line, descending ? a : b);
        if (IsBelow(call, is_float, first, second)) return true;
        return !IsBelow(call, is_float, second, first) && a < b;
      });
      for (int64_t k = 0; k < to.size; ++k) {
        call.Copy(0, from(line, places[k]), 0, to(line, k));
        call.StoreInt(1, to(line, k), places[k]);
      }
    }
  };
}

RefRun MakeTake(RefNode& node) {
  const AxisSplit x = SplitOf(node, node.in(0)), y = SplitOf(node, node.out(0));
  return [=, size = node.out(0).num_elements()](const RefCall& call) {
    for (int64_t i = 0; i < size; ++i) {
      if (!call.CheckIndex(i, x.size)) return;
    }
    for (int64_t line = 0; line < y.lines(); ++line) {
      for (int64_t k = 0; k < y.size; ++k) {
        call.Copy(0, x(line, call.LoadInt(1, y(line, k))), 0, y(line, k));
      }
    }
  };
}

RefRun MakeTakeGrad(RefNode& node) {
  const AxisSplit dy = SplitOf(node, node.in(0)), dx = SplitOf(node, node.out(0));
  node.workspace_bytes = static_cast<size_t>(dx.size) * sizeof(double);
  return [=, size = node.in(0).num_elements()](const RefCall& call) {
    for (int64_t i = 0; i < size; ++i) {
      if (!call.CheckIndex(i, dx.size)) return;
    }
    auto* sums = call.workspace<double>();
    for (int64_t line = 0; line < dx.lines(); ++line) {
      std::fill_n(sums, dx.size, 0.0);
      for (int64_t k = 0; k < dy.size; ++k) {
        sums[call.LoadInt(1, dy(line, k))] += call.Load(0, dy(line, k));
      }
      for (int64_t k = 0; k < dx.size; ++k) call.Store(0, dx(line, k), sums[k]);
    }
  };
}

}  // namespace

void Register_reference_lines(KernelRegistry& r) {
  AddReference(r, "cumsum", ir::kNumeric, MakeCumsum);
  AddReference(r, "sort", ir::kNumeric, MakeSort);
  AddReference(r, "take_along_dim", ir::kAnyDType, MakeTake);
  AddReference(r, "take_along_dim_grad", ir::kFloats, MakeTakeGrad);
}

}  // namespace halftone::kernels
