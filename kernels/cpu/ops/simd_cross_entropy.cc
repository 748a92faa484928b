// cross_entropy and its gradient: one pass over a line for the maximum, one for the sum of
// exponentials; the losses are added in f64 in the order of lines, so a mean over many lines of
// 16-bit logits neither overflows nor depends on the threads. Lanes are classes where those are
// contiguous, otherwise lines, in tiles (lines.h).
#include <cmath>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/ops/cross_entropy_rows.h"
#include "halftone/kernels/cpu/simd/lines-inl.h"
#include "halftone/kernels/cpu/simd/math-inl.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

template <typename T>
LineSums RowSums(const void* row, int64_t classes) {
  const T* x = static_cast<const T*>(row);
  constexpr int64_t kStep = kLanes;
  const int64_t whole = classes / kStep * kStep;
  V max = Splat(kLowest);
  for (int64_t i = 0; i < whole; i += kStep) max = hn::Max(max, LoadVec(x + i));
  float top = hn::GetLane(hn::MaxOfLanes(F32Tag(), max));
  for (int64_t i = whole; i < classes; ++i) top = std::max(top, static_cast<float>(x[i]));
  LineSums sums{top, 0, 0};
  // f32 over short blocks, f64 over all: a vocabulary has 10^5 classes.
  constexpr int64_t kBlock = kLaneTerms * kStep;
  for (int64_t begin = 0; begin < whole; begin += kBlock) {
    V sum_exp = Splat(0), sum = Splat(0);
    for (int64_t i = begin; i < std::min(begin + kBlock, whole); i += kStep) {
      const V v = hn::Sub(LoadVec(x + i), Splat(top));
      sum_exp = hn::Add(sum_exp, ExpOfScore(v));
      sum = hn::Add(sum, v);
    }
    sums.sum_exp += SumOf(sum_exp);
    sums.sum += SumOf(sum);
  }
  for (int64_t i = whole; i < classes; ++i) {
    const float v = static_cast<float>(x[i]) - top;
    sums.sum_exp += std::exp(v);
    sums.sum += v;
  }
  return sums;
}

HWY_INLINE V GradOf(V x, V max, V log_sum, V scale, V smooth) {
  return hn::Mul(scale, hn::Sub(ExpOfScore(hn::Sub(hn::Sub(x, max), log_sum)), smooth));
}

template <typename T>
void RowGrad(const void* row, void* grad, int64_t classes, const LineSlope& s, float smooth) {
  const V max = Splat(s.max), log_sum = Splat(s.log_sum), scale = Splat(s.scale);
  MapVec(static_cast<const T*>(row), static_cast<T*>(grad), classes,
         [&](V v) { return GradOf(v, max, log_sum, scale, Splat(smooth)); });
}

template <typename T>
void StripSums(const T* x, const Strip& s, LineSums* sums) {
  float max[kMaxTileWidth], powers[kMaxTileWidth] = {}, plain[kMaxTileWidth] = {};
  double power_sums[kMaxTileWidth] = {}, plain_sums[kMaxTileWidth] = {};
  MaxOfLines(x, s, max);
  ForStrip(
      s,
      [&](int64_t at, auto load, auto store) {
        const V v = hn::Sub(load(x + at), load(max));
        store(hn::Add(load(powers), ExpOfScore(v)), powers);
        store(hn::Add(load(plain), v), plain);
      },
      [&] {
        FlushSums(powers, power_sums, s.count);
        FlushSums(plain, plain_sums, s.count);
      });
  for (int64_t i = 0; i < s.count; ++i) sums[i] = {max[i], power_sums[i], plain_sums[i]};
}

template <typename T>
void TileSums(const void* logits, const LineShape& shape, int64_t first, int64_t count,
              int64_t width, float* tile, LineSums* sums) {
  const T* x = static_cast<const T*>(logits);
  if (shape.in_place()) {
    return ForStrips(shape, first, count, [&](int64_t at, int64_t column, const Strip& s) {
      StripSums(x + at, s, sums + column);
    });
  }
  ReadLines(x, shape, first, count, width, tile);
  StripSums(tile, {shape.size, width, count}, sums);
}

template <typename T>
void StripGrad(const T* x, T* grad, const Strip& s, const LineSlope* slopes, float smooth) {
  float max[kMaxTileWidth], log_sum[kMaxTileWidth], scale[kMaxTileWidth];
  for (int64_t i = 0; i < s.count; ++i) {
    max[i] = slopes[i].max;
    log_sum[i] = slopes[i].log_sum;
    scale[i] = slopes[i].scale;
  }
  ForStrip(s, [&](int64_t at, auto load, auto store) {
    store(GradOf(load(x + at), load(max), load(log_sum), load(scale), Splat(smooth)), grad + at);
  });
}

template <typename T>
void TileGrad(const void* logits, void* grad_data, const LineShape& shape, int64_t first,
              int64_t count, int64_t width, float* tile, const LineSlope* slopes, float smooth) {
  const T* x = static_cast<const T*>(logits);
  T* grad = static_cast<T*>(grad_data);
  if (shape.in_place()) {
    return ForStrips(shape, first, count, [&](int64_t at, int64_t column, const Strip& s) {
      StripGrad(x + at, grad + at, s, slopes + column, smooth);
    });
  }
  ReadLines(x, shape, first, count, width, tile);
  StripGrad(tile, tile, {shape.size, width, count}, slopes, smooth);
  WriteLines(tile, shape, first, count, width, grad);
}

template <typename T>
CrossEntropyFns CrossEntropyFnsOf() {
  return {RowSums<T>, RowGrad<T>, TileSums<T>, TileGrad<T>};
}
CrossEntropyFns FindCrossEntropyFns(DType dtype) {
  return dtype == DType::kF32   ? CrossEntropyFnsOf<float>()
         : dtype == DType::kF16 ? CrossEntropyFnsOf<F16>()
                                : CrossEntropyFnsOf<BF16>();
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindCrossEntropyFns);

// Everything that both ops need to know, read from the node once.
struct CrossEntropy {
  explicit CrossEntropy(const ir::Node& node)
      : shape(node.input_type(0).shape, node.attrs().GetInt("axis")),
        dtype(node.input_type(0).dtype),
        target_dtype(node.input_type(1).dtype),
        smoothing(node.attrs().GetFloat("label_smoothing")),
        ignore_index(node.attrs().GetInt("ignore_index")),
        each(node.attrs().GetString("reduction") == "none"),
        mean(node.attrs().GetString("reduction") == "mean"),
        fns(HWY_DYNAMIC_DISPATCH(FindCrossEntropyFns)(dtype)) {}

  int64_t Target(const void* targets, int64_t line) const {
    return target_dtype == DType::kI64 ? static_cast<const int64_t*>(targets)[line]
                                       : static_cast<const int32_t*>(targets)[line];
  }
  // Element of a line's own class.
  int64_t Own(int64_t line, int64_t target) const {
    return shape.Start(line) + target * shape.inner;
  }
  float At(const void* data, int64_t i) const {
    switch (dtype) {
      case DType::kF16:
        return static_cast<float>(static_cast<const F16*>(data)[i]);
      case DType::kBF16:
        return static_cast<float>(static_cast<const BF16*>(data)[i]);
      default:
        return static_cast<const float*>(data)[i];
    }
  }
  void Put(void* data, int64_t i, float x) const {
    switch (dtype) {
      case DType::kF16:
        static_cast<F16*>(data)[i] = F16(x);
        break;
      case DType::kBF16:
        static_cast<BF16*>(data)[i] = BF16(x);
        break;
      default:
        static_cast<float*>(data)[i] = x;
    }
  }
  // Calls lines(first, count, tile) so that all lines are covered: those of a tile, or a single one
  // of contiguous classes, without a tile.
  template <typename Lines>
  void ForLines(const LineTiles& tiles, void* workspace, const Lines& lines) const {
    if (shape.inner > 1) return tiles.Run(workspace, lines);
    constexpr int64_t kGrain = 64;
    ParallelFor(0, shape.outer, kGrain, [&](int64_t first, int64_t last) {
      for (int64_t line = first; line < last; ++line) lines(line, 1, nullptr);
    });
  }
  size_t tile_bytes(const LineTiles& tiles) const {
    return shape.inner > 1 ? tiles.workspace_bytes() : 0;
  }
  // The number of lines that count, or -1 after raising a fault.
  int64_t CheckTargets(const void* targets, Fault* fault) const {
    int64_t counted = 0;
    for (int64_t line = 0; line < shape.lines(); ++line) {
      const int64_t t = Target(targets, line);
      if (t == ignore_index) continue;
      if (t < 0 || t >= shape.size) {
        if (!fault->raised) *fault = {true, t, shape.size, line};
        return -1;
      }
      ++counted;
    }
    return counted;
  }

  LineShape shape;
  DType dtype, target_dtype;
  double smoothing;
  int64_t ignore_index;
  bool each, mean;
  CrossEntropyFns fns;
};

class CrossEntropyKernel : public Kernel {
 public:
  explicit CrossEntropyKernel(const ir::Node& node) : c_(node), tiles_(c_.shape, 1) {
    workspace_bytes_ = c_.tile_bytes(tiles_) + (c_.each ? 0 : c_.shape.lines() * sizeof(float));
  }

  void Run(const KernelArgs& args) override {
    const int64_t counted = c_.CheckTargets(args.inputs[1], &args.state->fault);
    if (counted < 0) return;
    auto* losses = static_cast<float*>(
        c_.each ? args.outputs[0] : static_cast<char*>(args.workspace) + c_.tile_bytes(tiles_));
    auto* max = static_cast<float*>(args.outputs[1]);
    float* log_sum = max + c_.shape.lines();
    c_.ForLines(tiles_, args.workspace, [&](int64_t first, int64_t count, float* tile) {
      LineSums sums[kMaxTileWidth];
      if (c_.shape.inner == 1) {
        const int64_t at = c_.shape.Start(first) * static_cast<int64_t>(SizeOf(c_.dtype));
        sums[0] = c_.fns.row_sums(static_cast<const char*>(args.inputs[0]) + at, c_.shape.size);
      } else {
        c_.fns.tile_sums(args.inputs[0], c_.shape, first, count, tiles_.width(), tile, sums);
      }
      for (int64_t i = 0; i < count; ++i) {
        const double log = std::log(sums[i].sum_exp);
        max[first + i] = sums[i].max;
        log_sum[first + i] = static_cast<float>(log);
        losses[first + i] = static_cast<float>(Loss(args, first + i, sums[i], log));
      }
    });
    if (c_.each) return;
    double sum = 0;
    for (int64_t line = 0; line < c_.shape.lines(); ++line) sum += losses[line];
    // 0 / 0 is NaN where no line counts, as in PyTorch.
    if (c_.mean) sum /= static_cast<double>(counted);
    *static_cast<float*>(args.outputs[0]) = static_cast<float>(sum);
  }

 private:
  // In f64: the loss of a confident line is a small difference.
  double Loss(const KernelArgs& args, int64_t line, const LineSums& sums, double log_sum) const {
    const int64_t target = c_.Target(args.inputs[1], line);
    if (target == c_.ignore_index) return 0;
    const double max = sums.max;
    const double own = max - c_.At(args.inputs[0], c_.Own(line, target)) + log_sum;
    if (c_.smoothing == 0) return own;
    const double uniform = log_sum - sums.sum / static_cast<double>(c_.shape.size);
    return (1 - c_.smoothing) * own + c_.smoothing * uniform;
  }

  CrossEntropy c_;
  LineTiles tiles_;
};

class CrossEntropyGradKernel : public Kernel {
 public:
  explicit CrossEntropyGradKernel(const ir::Node& node) : c_(node), tiles_(c_.shape, 1) {
    workspace_bytes_ = c_.tile_bytes(tiles_);
  }

  void Run(const KernelArgs& args) override {
    const int64_t counted = c_.CheckTargets(args.inputs[1], &args.state->fault);
    if (counted < 0) return;
    const auto* max = static_cast<const float*>(args.inputs[2]);
    const float* log_sum = max + c_.shape.lines();
    const auto* dloss = static_cast<const float*>(args.inputs[3]);
    const double share = c_.mean ? 1.0 / static_cast<double>(counted) : 1.0;
    const auto smooth = static_cast<float>(c_.smoothing / static_cast<double>(c_.shape.size));
    void* grad = args.outputs[0];
    c_.ForLines(tiles_, args.workspace, [&](int64_t first, int64_t count, float* tile) {
      LineSlope slopes[kMaxTileWidth];
      float own[kMaxTileWidth];
      for (int64_t i = 0; i < count; ++i) {
        const int64_t line = first + i, target = c_.Target(args.inputs[1], line);
        const auto scale = static_cast<float>(dloss[c_.each ? line : 0] * share);
        slopes[i] = {max[line], log_sum[line], scale};
        if (target == c_.ignore_index) continue;
        // Read before the line is written: the gradient may lie over the logits. Put after it, so
        // that it too is rounded once.
        const float x = c_.At(args.inputs[0], c_.Own(line, target));
        const float p = std::exp(x - max[line] - log_sum[line]);
        own[i] = scale * (p - smooth - static_cast<float>(1 - c_.smoothing));
      }
      if (c_.shape.inner == 1) {
        const int64_t at = c_.shape.Start(first) * static_cast<int64_t>(SizeOf(c_.dtype));
        c_.fns.row_grad(static_cast<const char*>(args.inputs[0]) + at,
                        static_cast<char*>(grad) + at, c_.shape.size, slopes[0], smooth);
      } else {
        c_.fns.tile_grad(args.inputs[0], grad, c_.shape, first, count, tiles_.width(), tile, slopes,
                         smooth);
      }
      for (int64_t i = 0; i < count; ++i) {
        const int64_t target = c_.Target(args.inputs[1], first + i);
        if (target != c_.ignore_index) {
          c_.Put(grad, c_.Own(first + i, target), own[i]);
          continue;
        }
        for (int64_t k = 0; k < c_.shape.size; ++k) c_.Put(grad, c_.Own(first + i, k), 0);
      }
    });
  }

 private:
  CrossEntropy c_;
  LineTiles tiles_;
};

}  // namespace

void Register_cpu_simd_cross_entropy(KernelRegistry& r) {
  AddSimdCandidate<CrossEntropyKernel>(r, "cross_entropy", PlainInputs);
  AddSimdCandidate<CrossEntropyGradKernel>(r, "cross_entropy_grad", PlainInputs);
}

}  // namespace halftone::kernels
#endif
