// sum mean max argmax sum_to_shape prod. Sums and products of floats accumulate in double, of
// integers exactly.

#include <cmath>
#include <limits>

#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

ops::Axes OtherAxes(const Shape& shape, const ops::Axes& axes) {
  ops::Axes others;
  size_t next = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (next < axes.size() && axes[next] == axis) {
      ++next;
    } else {
      others.push_back(axis);
    }
  }
  return others;
}

// Element numbers of x: kept(o) + reduced(k) for the k-th element that goes into output o.
struct Plan {
  Plan(const Shape& x, const ops::Axes& axes)
      : kept(IndexMap::Over(x, OtherAxes(x, axes))), reduced(IndexMap::Over(x, axes)) {}
  IndexMap kept, reduced;
};

ops::Axes AxesAttr(const RefNode& node) {
  return ops::CheckedAxes(node.attrs.GetInts("axes"), node.in(0).rank());
}

RefRun MakeSum(const RefNode& node, const ops::Axes& axes, bool mean) {
  const Plan plan(node.in(0), axes);
  if (!IsFloat(node.inputs[0].dtype)) {
    return [plan](const RefCall& call) {
      for (int64_t o = 0; o < plan.kept.size(); ++o) {
        uint64_t sum = 0;
        for (int64_t k = 0; k < plan.reduced.size(); ++k) {
          sum += static_cast<uint64_t>(call.LoadInt(0, plan.kept(o) + plan.reduced(k)));
        }
        call.StoreWrapped(0, o, static_cast<int64_t>(sum));
      }
    };
  }
  const double divisor = mean ? static_cast<double>(plan.reduced.size()) : 1;
  return [plan, divisor](const RefCall& call) {
    for (int64_t o = 0; o < plan.kept.size(); ++o) {
      double sum = plan.reduced.size() > 0 ? -0.0 : 0.0;  // a sum of -0 alone is -0
      for (int64_t k = 0; k < plan.reduced.size(); ++k) {
        sum += call.Load(0, plan.kept(o) + plan.reduced(k));
      }
      call.Store(0, o, sum / divisor);
    }
  };
}

RefRun MakeSumToShape(RefNode& node) {
  return MakeSum(node, ops::BroadcastAxes(node.out(0), node.in(0)), false);
}

RefRun MakeMax(RefNode& node) {
  const Plan plan(node.in(0), AxesAttr(node));
  if (!IsFloat(node.inputs[0].dtype)) {
    return [plan](const RefCall& call) {
      for (int64_t o = 0; o < plan.kept.size(); ++o) {
        int64_t best = std::numeric_limits<int64_t>::min();
        for (int64_t k = 0; k < plan.reduced.size(); ++k) {
          best = std::max(best, call.LoadInt(0, plan.kept(o) + plan.reduced(k)));
        }
        call.StoreInt(0, o, best);
      }
    };
  }
  return [plan](const RefCall& call) {
    for (int64_t o = 0; o < plan.kept.size(); ++o) {
      double best = -std::numeric_limits<double>::infinity();
      for (int64_t k = 0; k < plan.reduced.size(); ++k) {
        const double x = call.Load(0, plan.kept(o) + plan.reduced(k));
        if (std::isnan(x) || x > best) best = x;
        if (std::isnan(best)) break;
      }
      call.Store(0, o, best);
    }
  };
}

RefRun MakeArgmax(RefNode& node) {
  const Plan plan(node.in(0), {ops::CheckedAxis(node.attrs.GetInt("axis"), node.in(0).rank())});
  const bool is_float = IsFloat(node.inputs[0].dtype);
  return [plan, is_float](const RefCall& call) {
    for (int64_t o = 0; o < plan.kept.size(); ++o) {
      int64_t best = 0;
      for (int64_t k = 1; k < plan.reduced.size(); ++k) {
        const int64_t at = plan.kept(o) + plan.reduced(k);
        const int64_t best_at = plan.kept(o) + plan.reduced(best);
        if (is_float) {
          const double x = call.Load(0, at), top = call.Load(0, best_at);
          if (!std::isnan(top) && (std::isnan(x) || x > top)) best = k;
        } else if (call.LoadInt(0, at) > call.LoadInt(0, best_at)) {
          best = k;
        }
      }
      call.StoreInt(0, o, best);
    }
  };
}

RefRun MakeProd(RefNode& node) {
  const Plan plan(node.in(0), {ops::CheckedAxis(node.attrs.GetInt("axis"), node.in(0).rank())});
  const bool is_float = IsFloat(node.inputs[0].dtype);
  return [plan, is_float](const RefCall& call) {
    for (int64_t o = 0; o < plan.kept.size(); ++o) {
      double product = 1;
      uint64_t exact = 1;
      for (int64_t k = 0; k < plan.reduced.size(); ++k) {
        const int64_t at = plan.kept(o) + plan.reduced(k);
        if (is_float) {
          product *= call.Load(0, at);
        } else {
          exact *= static_cast<uint64_t>(call.LoadInt(0, at));
        }
      }
      if (is_float) {
        call.Store(0, o, product);
      } else {
        call.StoreWrapped(0, o, static_cast<int64_t>(exact));
      }
    }
  };
}

}  // namespace

void Register_reference_reduction(KernelRegistry& r) {
  AddReference(r, "sum", ir::kNumeric,
               [](RefNode& node) { return MakeSum(node, AxesAttr(node), false); });
  AddReference(r, "mean", ir::kFloats,
               [](RefNode& node) { return MakeSum(node, AxesAttr(node), true); });
  AddReference(r, "sum_to_shape", ir::kNumeric, MakeSumToShape);
  AddReference(r, "max", ir::kNumeric, MakeMax);
  AddReference(r, "argmax", ir::kNumeric, MakeArgmax);
  AddReference(r, "prod", ir::kNumeric, MakeProd);
}

}  // namespace halftone::kernels
