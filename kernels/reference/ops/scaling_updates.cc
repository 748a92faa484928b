// grad_stats, grad_squares, grad_stats_of_squares and loss_scale_update.
#include <algorithm>
#include <cmath>
#include <limits>

#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

// The sum of squares of an unscaled gradient; clears *finite on inf or NaN.
double SquaresOf(const RefCall& call, int port, const ir::ValueType& type, bool* finite) {
  const float inv_scale = static_cast<float>(call.Load(0, 0));
  double sum = 0;
  for (int64_t i = 0; i < type.num_elements(); ++i) {
    const double g = call.Load(port, i);
    const double u = type.dtype == DType::kF64
                         ? g * static_cast<double>(inv_scale)
                         : static_cast<double>(static_cast<float>(g) * inv_scale);
    *finite = *finite && std::isfinite(u);
    sum += u * u;
  }
  return sum;
}

void StoreStats(const RefCall& call, double sum, int64_t first_bad) {
  const double infinity = std::numeric_limits<double>::infinity();
  call.StoreInt(0, 0, first_bad < 0);
  call.Store(1, 0, first_bad < 0 ? std::sqrt(sum) : infinity);
  call.StoreInt(2, 0, first_bad);
}

RefRun MakeGradStats(RefNode& node) {
  const std::vector<ir::ValueType> types = node.inputs;
  return [=](const RefCall& call) {
    double sum = 0;
    int first_bad = -1;
    for (int port = 1; port < static_cast<int>(types.size()); ++port) {
      bool finite = true;
      sum += SquaresOf(call, port, types[port], &finite);
      if (!finite && first_bad < 0) first_bad = port - 1;
    }
    StoreStats(call, sum, first_bad);
  };
}

RefRun MakeGradSquares(RefNode& node) {
  const std::vector<ir::ValueType> types = node.inputs;
  return [=](const RefCall& call) {
    const auto gradients = static_cast<int64_t>(types.size()) - 1;
    for (int port = 1; port <= gradients; ++port) {
      bool finite = true;
      call.Store(0, port - 1, SquaresOf(call, port, types[port], &finite));
      call.Store(0, gradients + port - 1, finite ? 0 : 1);
    }
  };
}

RefRun MakeGradStatsOfSquares(RefNode& node) {
  const int64_t gradients = node.in(0)[1];
  return [=](const RefCall& call) {
    double sum = 0;
    int64_t first_bad = -1;
    for (int64_t i = 0; i < gradients; ++i) {
      sum += call.Load(0, i);
      if (call.Load(0, gradients + i) > 0 && first_bad < 0) first_bad = i;
    }
    StoreStats(call, sum, first_bad);
  };
}

RefRun MakeLossScaleUpdate(RefNode& node) {
  const double growth = node.attrs.GetFloat("growth_factor");
  const double backoff = node.attrs.GetFloat("backoff_factor");
  const double min_scale = node.attrs.GetFloat("min_scale");
  const double max_scale = node.attrs.GetFloat("max_scale");
  const int64_t interval = node.attrs.GetInt("growth_interval");
  const int64_t hysteresis = node.attrs.GetInt("hysteresis");
  const bool dynamic = node.attrs.GetBool("dynamic");
  return [=](const RefCall& call) {
    float scale = static_cast<float>(call.Load(0, 0));
    int64_t tracker = call.LoadInt(1, 0), left = call.LoadInt(2, 0);
    const int64_t total = call.LoadInt(3, 0), skipped = call.LoadInt(4, 0);
    const int64_t consecutive = call.LoadInt(5, 0);
    const bool finite = call.LoadInt(6, 0) != 0;
    if (dynamic && finite) {
      left = hysteresis;
      if (++tracker >= interval) {
        tracker = 0;
        const float grown = static_cast<float>(scale * growth);
        if (std::isfinite(grown) && static_cast<double>(grown) <= max_scale) scale = grown;
      }
    } else if (dynamic) {
      tracker = 0;
      left = std::max<int64_t>(left - 1, 0);
      const double floor = std::min<double>(scale, min_scale);  // never raises
      if (left == 0) scale = static_cast<float>(std::max(scale * backoff, floor));
    }
    call.Store(0, 0, scale);
    call.StoreInt(1, 0, tracker);
    call.StoreInt(2, 0, left);
    call.StoreInt(3, 0, total + 1);
    call.StoreInt(4, 0, skipped + !finite);
    call.StoreInt(5, 0, finite ? 0 : consecutive + 1);
  };
}

}  // namespace

void Register_reference_scaling_updates(KernelRegistry& r) {
  AddReference(r, "grad_stats", {DType::kF32}, MakeGradStats);
  AddReference(r, "grad_squares", {DType::kF32, DType::kF64}, MakeGradSquares);
  AddReference(r, "grad_stats_of_squares", {DType::kF64}, MakeGradStatsOfSquares);
  AddReference(r, "loss_scale_update", {DType::kF32}, MakeLossScaleUpdate);
}

}  // namespace halftone::kernels
