// cumsum and prod: along one axis, in f64 for floats. An inner axis of several elements is walked
// in tiles of columns, side by side; a run along the axis itself in one chain (a product in four).
#include <algorithm>

#include "halftone/core/threads.h"
#include "halftone/kernels/axis_split.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/numeric_types.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

constexpr int64_t kScanColumns = 64;  // of a tile

// Calls walk(outer, column, width) for the tiles of all columns, on several threads.
template <typename Walk>
void ForTiles(const AxisSplit& split, const Walk& walk) {
  const int64_t tiles = (split.inner + kScanColumns - 1) / kScanColumns;
  const int64_t of_tile = std::max<int64_t>(1, split.size * std::min(split.inner, kScanColumns));
  ParallelFor(0, split.outer * tiles, std::max<int64_t>(1, kElementwiseGrain / of_tile),
              [&](int64_t first, int64_t last) {
                for (int64_t task = first; task < last; ++task) {
                  const int64_t column = task % tiles * kScanColumns;
                  walk(task / tiles, column, std::min(kScanColumns, split.inner - column));
                }
              });
}

template <typename T>
WideOf<T> WideValue(T x) {
  return static_cast<WideOf<T>>(x);
}

class CumsumKernel : public Kernel {
 public:
  explicit CumsumKernel(const ir::Node& node)
      : split_(node.input_type(0).shape, node.attrs().GetInt("axis")),
        dtype_(node.input_type(0).dtype),
        reverse_(node.attrs().GetBool("reverse")) {}

  void Run(const KernelArgs& args) override {
    if (split_.elements() == 0) return;
    ForNumericType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      RunAs(static_cast<const T*>(args.inputs[0]), static_cast<T*>(args.outputs[0]));
    });
  }

 private:
  template <typename T>
  void RunAs(const T* x, T* y) const {
    const int64_t step = reverse_ ? -split_.inner : split_.inner;
    ForTiles(split_, [&](int64_t outer, int64_t column, int64_t width) {
      int64_t at = (outer * split_.size + (reverse_ ? split_.size - 1 : 0)) * split_.inner + column;
      if (split_.inner == 1) {
        auto sum = WideValue(x[at]);
        y[at] = x[at];
        for (int64_t k = 1; k < split_.size; ++k) {
          at += step;
          sum += WideValue(x[at]);
          y[at] = static_cast<T>(sum);
        }
        return;
      }
      WideOf<T> sums[kScanColumns];
      for (int64_t j = 0; j < width; ++j) {
        sums[j] = WideValue(x[at + j]);
        y[at + j] = x[at + j];
      }
      for (int64_t k = 1; k < split_.size; ++k) {
        at += step;
        for (int64_t j = 0; j < width; ++j) {
          sums[j] += WideValue(x[at + j]);
          y[at + j] = static_cast<T>(sums[j]);
        }
      }
    });
  }

  AxisSplit split_;
  DType dtype_;
  bool reverse_;
};

class ProdKernel : public Kernel {
 public:
  explicit ProdKernel(const ir::Node& node)
      : split_(node.input_type(0).shape, node.attrs().GetInt("axis")),
        dtype_(node.input_type(0).dtype) {}

  void Run(const KernelArgs& args) override {
    ForNumericType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      RunAs(static_cast<const T*>(args.inputs[0]), static_cast<T*>(args.outputs[0]));
    });
  }

 private:
  template <typename T>
  static WideOf<T> OfRun(const T* x, int64_t n) {
    WideOf<T> chains[4] = {1, 1, 1, 1};
    int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
      for (int i = 0; i < 4; ++i) chains[i] *= WideValue(x[k + i]);
    }
    for (; k < n; ++k) chains[0] *= WideValue(x[k]);
    return chains[0] * chains[1] * (chains[2] * chains[3]);
  }

  template <typename T>
  void RunAs(const T* x, T* y) const {
    ForTiles(split_, [&](int64_t outer, int64_t column, int64_t width) {
      const T* from = x + outer * split_.size * split_.inner + column;
      T* to = y + outer * split_.inner + column;
      if (split_.inner == 1) {
        *to = static_cast<T>(OfRun(from, split_.size));
        return;
      }
      WideOf<T> products[kScanColumns];
      std::fill_n(products, width, WideOf<T>{1});
      for (int64_t k = 0; k < split_.size; ++k, from += split_.inner) {
        for (int64_t j = 0; j < width; ++j) products[j] *= WideValue(from[j]);
      }
      for (int64_t j = 0; j < width; ++j) to[j] = static_cast<T>(products[j]);
    });
  }

  AxisSplit split_;
  DType dtype_;
};

}  // namespace

void Register_cpu_scan(KernelRegistry& r) {
  AddNativeCandidate<CumsumKernel>(r, "lines", "cumsum", ir::kNumeric, PlainInputs);
  AddNativeCandidate<ProdKernel>(r, "lines", "prod", ir::kNumeric, PlainInputs);
}

}  // namespace halftone::kernels
