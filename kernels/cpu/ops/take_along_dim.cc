// take_along_dim and its gradient: elements picked, or added in f64, by an index each. All indices
// are checked before any is used. Lines along the axis are independent, so the order of a sum is
// that of the picks whatever the threads.
#include <algorithm>

#include "halftone/core/threads.h"
#include "halftone/kernels/axis_split.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/numeric_types.h"
#include "halftone/kernels/cpu/support/row_index.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

class TakeKernel : public Kernel {
 public:
  explicit TakeKernel(const ir::Node& node)
      : indices_(node.input_type(1)),
        x_(node.input_type(0).shape, node.attrs().GetInt("axis")),
        picks_(node.output_type().shape, node.attrs().GetInt("axis")),
        size_(SizeOf(node.output_type().dtype)) {}

  void Run(const KernelArgs& args) override {
    if (!indices_.Check(args.inputs[1], x_.size, args.state)) return;
    ForElementSize(size_, [&](auto zero) {
      using T = decltype(zero);
      const T* x = static_cast<const T*>(args.inputs[0]);
      T* y = static_cast<T*>(args.outputs[0]);
      const int64_t inner = picks_.inner;
      const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / std::max<int64_t>(1, inner));
      ParallelFor(0, picks_.outer * picks_.size, grain, [&](int64_t first, int64_t last) {
        for (int64_t row = first; row < last; ++row) {
          const T* from = x + row / picks_.size * x_.size * inner;
          for (int64_t j = 0; j < inner; ++j) {
            const int64_t at = row * inner + j;
            y[at] = from[indices_.At(args.inputs[1], at) * inner + j];
          }
        }
      });
    });
  }

 private:
  RowIndices indices_;
  AxisSplit x_, picks_;
  size_t size_;
};

class TakeGradKernel : public Kernel {
 public:
  explicit TakeGradKernel(const ir::Node& node)
      : indices_(node.input_type(1)),
        picks_(node.input_type(0).shape, node.attrs().GetInt("axis")),
        dx_(node.output_type().shape, node.attrs().GetInt("axis")),
        dtype_(node.output_type().dtype) {
    columns_ = std::min(dx_.inner, kColumns);
    const int64_t tiles = (dx_.inner + kColumns - 1) / kColumns;
    slots_ = std::min<int64_t>(dx_.outer * tiles, NumThreads());
    workspace_bytes_ = static_cast<size_t>(slots_ * dx_.size * columns_) * sizeof(double);
  }

  void Run(const KernelArgs& args) override {
    if (!indices_.Check(args.inputs[1], dx_.size, args.state) || dx_.elements() == 0) return;
    const int64_t tiles = (dx_.inner + kColumns - 1) / kColumns, tasks = dx_.outer * tiles;
    const bool small = dx_.elements() + indices_.count() < kElementwiseGrain;
    ForNumericType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      ParallelFor(0, slots_, small ? slots_ : 1, [&](int64_t first, int64_t last) {
        for (int64_t slot = first; slot < last; ++slot) {
          double* sums = static_cast<double*>(args.workspace) + slot * dx_.size * columns_;
          for (int64_t task = slot; task < tasks; task += slots_) {
            const int64_t column = task % tiles * kColumns;
            AddTile<T>(args, task / tiles, column, std::min(kColumns, dx_.inner - column), sums);
          }
        }
      });
    });
  }

 private:
  static constexpr int64_t kColumns = 64;

  template <typename T>
  void AddTile(const KernelArgs& args, int64_t outer, int64_t column, int64_t width,
               double* sums) const {
    const T* dy = static_cast<const T*>(args.inputs[0]);
    T* dx = static_cast<T*>(args.outputs[0]) + outer * dx_.size * dx_.inner + column;
    std::fill_n(sums, dx_.size * width, 0.0);
    for (int64_t k = 0; k < picks_.size; ++k) {
      const int64_t row = (outer * picks_.size + k) * dx_.inner + column;
      for (int64_t j = 0; j < width; ++j) {
        sums[indices_.At(args.inputs[1], row + j) * width + j] += static_cast<double>(dy[row + j]);
      }
    }
    for (int64_t k = 0; k < dx_.size; ++k) {
      for (int64_t j = 0; j < width; ++j) {
        dx[k * dx_.inner + j] = static_cast<T>(sums[k * width + j]);
      }
    }
  }

  RowIndices indices_;
  AxisSplit picks_, dx_;
  DType dtype_;
  int64_t columns_ = 1, slots_ = 1;
};

}  // namespace

void Register_cpu_take_along_dim(KernelRegistry& r) {
  AddNativeCandidate<TakeKernel>(r, "copy", "take_along_dim", ir::kAnyDType, PlainInputs);
  AddNativeCandidate<TakeGradKernel>(r, "lines", "take_along_dim_grad", ir::kFloats, PlainInputs);
}

}  // namespace halftone::kernels
