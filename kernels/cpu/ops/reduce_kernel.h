// ReduceKernel: the host half of the reductions over any axes (simd_sum.cc, simd_max.cc).
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/simd/convert.h"
#include "halftone/kernels/cpu/simd/reduce_fns.h"
#include "halftone/kernels/kernel.h"
#include "halftone/kernels/reduce_plan.h"

namespace halftone::kernels {

// Op has Acc, kInitial and Combine(Acc, Acc). Op `mean` divides by the number of elements.
//
// Work is cut into tasks by shape alone: (group, tile of columns, chunk of the reduced elements).
// With several chunks each leaves a partial result in the workspace, combined in order.
template <typename Op>
class ReduceKernel : public Kernel {
 public:
  using Acc = typename Op::Acc;

  ReduceKernel(const ir::Node& node, ReduceFns fns)
      : x_dtype_(node.input_type(0).dtype),
        y_dtype_(node.output_type().dtype),
        x_count_(node.input_type(0).num_elements()),
        y_count_(node.output_type().num_elements()),
        fns_(fns) {
    if (node.op().name == "mean") {
      divisor_ = static_cast<double>(x_count_) / static_cast<double>(y_count_);
    }
    if (x_count_ == 0) return;
    plan_ = std::make_unique<ReducePlan>(node.input_type(0), ReducedAxesOf(node));
    tiles_ = (plan_->width + kReduceTile - 1) / kReduceTile;
    const int64_t tile_width = std::min(plan_->width, kReduceTile);
    unit_rows_ = std::min(plan_->rows, (kUnitElements / tile_width + 31) / 32 * 32);
    units_per_block_ = (plan_->rows + unit_rows_ - 1) / unit_rows_;
    const int64_t units = plan_->reduced * units_per_block_;
    if (plan_->kept * tiles_ < kEnoughTasks && x_count_ > 2 * kUnitElements) {
      chunks_ = std::min(units, kMaxChunks);
    }
    if (chunks_ > 1) workspace_bytes_ = chunks_ * y_count_ * sizeof(Acc);
  }

  void Run(const KernelArgs& args) override {
    void* y = args.outputs[0];
    if (x_count_ == 0) {
      // The sum over nothing is 0, not -0; 0 / 0: the mean over nothing is NaN.
      const Acc nothing = Op::kInitial + 0;
      for (int64_t i = 0; i < y_count_; ++i) Store(&nothing, 1, y, i);
      return;
    }
    if (x_count_ == y_count_) {
      if (x_dtype_ != y_dtype_) {
        Convert(args.inputs[0], x_dtype_, y, y_dtype_, x_count_);
      } else {
        std::memcpy(y, args.inputs[0], x_count_ * SizeOf(x_dtype_));
      }
      return;
    }
    auto* partials = static_cast<Acc*>(args.workspace);
    const int64_t tasks = plan_->kept * tiles_ * chunks_;
    const int64_t grain = std::max<int64_t>(1, 2 * kUnitElements * tasks / x_count_);
    ParallelFor(0, tasks, grain, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) {
        const int64_t chunk = task % chunks_, place = task / chunks_;
        const int64_t k = place / tiles_, column = place % tiles_ * kReduceTile;
        const int64_t width = std::min(kReduceTile, plan_->width - column);
        const int64_t at = k * plan_->width + column;
        Acc acc[kReduceTile];
        std::fill_n(acc, width, Op::kInitial);
        Chunk(args.inputs[0], k, column, width, chunk, acc);
        if (chunks_ == 1) {
          Store(acc, width, y, at);
        } else {
          std::copy_n(acc, width, partials + chunk * y_count_ + at);
        }
      }
    });
    if (chunks_ == 1) return;
    ParallelFor(0, y_count_, 1024, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        Acc acc = partials[i];
        for (int64_t c = 1; c < chunks_; ++c) acc = Op::Combine(acc, partials[c * y_count_ + i]);
        Store(&acc, 1, y, i);
      }
    });
  }

 private:
  static constexpr int64_t kUnitElements = 16384;
  static constexpr int64_t kEnoughTasks = 32, kMaxChunks = 64;

  void Chunk(const void* x, int64_t k, int64_t column, int64_t width, int64_t chunk,
             Acc* acc) const {
    const int64_t units = plan_->reduced * units_per_block_;
    const int64_t size = static_cast<int64_t>(SizeOf(x_dtype_));
    for (int64_t u = units * chunk / chunks_; u < units * (chunk + 1) / chunks_; ++u) {
      const int64_t row = u % units_per_block_ * unit_rows_;
      const int64_t rows = std::min(unit_rows_, plan_->rows - row);
      const int64_t at = plan_->Start(k, u / units_per_block_) + row * plan_->width + column;
      const char* from = static_cast<const char*>(x) + at * size;
      if (plan_->width == 1) {
        fns_.run(from, rows, acc);
      } else {
        fns_.columns(from, plan_->width, rows, width, acc);
      }
    }
  }

  void Store(const Acc* acc, int64_t n, void* y, int64_t at) const {
    for (int64_t i = 0; i < n; ++i) {
      const double value = static_cast<double>(acc[i]) / divisor_;
      if (y_dtype_ == DType::kF32) {
        static_cast<float*>(y)[at + i] = static_cast<float>(value);
      } else {
        StoreDouble(y, y_dtype_, at + i, value);
      }
    }
  }

  DType x_dtype_, y_dtype_;
  int64_t x_count_, y_count_;
  double divisor_ = 1;
  std::unique_ptr<ReducePlan> plan_;
  ReduceFns fns_;
  int64_t tiles_ = 1, unit_rows_ = 1, units_per_block_ = 1, chunks_ = 1;
};

}  // namespace halftone::kernels
