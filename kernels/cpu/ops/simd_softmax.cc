// softmax, log_softmax and their gradients. Along contiguous classes lanes are classes; otherwise
// lanes are lines (lines.h).
#include <cmath>
#include <type_traits>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/ops/softmax_fns.h"
#include "halftone/kernels/cpu/simd/lines-inl.h"
#include "halftone/kernels/cpu/simd/math-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// Lanes from `count` on become `fill`.
HWY_INLINE V Filled(V v, size_t count, float fill) {
  return count == kLanes ? v : Select(hn::FirstN(F32Tag(), count), v, Splat(fill));
}

template <bool kLog, typename T>
void SoftmaxRow(const void* x_data, void* y_data, int64_t n) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  V highest = Splat(kLowest);
  ForBlocks(
      n,
      [&](auto load, size_t count) { highest = hn::Max(highest, Filled(load(x), count, kLowest)); },
      [] {});
  const V max = Splat(hn::GetLane(hn::MaxOfLanes(F32Tag(), highest)));
  double total = 0;
  V sum = Splat(0);
  ForBlocks(
      n,
      [&](auto load, size_t count) {
        sum = hn::Add(sum, Filled(ExpOfScore(hn::Sub(load(x), max)), count, 0));
      },
      [&] {
        total += SumOf(sum);
        sum = Splat(0);
      });
  const V scale = Splat(static_cast<float>(kLog ? std::log(total) : 1 / total));
  ForRow(n, [&](auto load, auto store) {
    const V shifted = hn::Sub(load(x), max);
    store(kLog ? hn::Sub(shifted, scale) : hn::Mul(ExpOfScore(shifted), scale), y);
  });
}

// The row of a result that is too large for the caches goes past them: to fetch lines that are then
// overwritten took as long as the rest.
template <typename T>
HWY_INLINE bool GoesPastCaches(const T* row, const LineShape& shape) {
  constexpr int64_t kLarge = int64_t{2} << 20, kStep = kLanes;  // elements
  return shape.lines() * shape.size >= kLarge && shape.inner % kStep == 0 &&
         reinterpret_cast<uintptr_t>(row) % (kStep * sizeof(T)) == 0;
}

// Of each line the largest element and sum of e^(element - largest), in one reading of x. Piece by
// piece of rows: the largest so far, then exponentials relative to it; a new largest rescales the
// sum so far. Source: Milakov, Gimelshein: "Online normalizer calculation for softmax", 2018,
// algorithm 3, over pieces.
template <typename T>
void MaxAndSum(const T* x, const Strip& s, float* max, double* sums) {
  float before[kMaxTileWidth], shift[kMaxTileWidth], terms[kMaxTileWidth] = {};
  std::fill_n(max, s.count, kLowest);
  std::fill_n(sums, s.count, 0.0);
  // As many rows as a lane adds in f32: with the widest strip, 64 KiB.
  constexpr int64_t kPiece = kLaneTerms;
  for (int64_t k = 0; k < s.size; k += kPiece) {
    const int64_t rows = std::min(kPiece, s.size - k);
    const T* piece = x + k * s.stride;
    std::copy_n(max, s.count, before);
    ForStrip({rows, s.stride, s.count}, [&](int64_t at, auto load, auto store) {
      store(hn::Max(load(max), load(piece + at)), max);
    });
    for (int64_t i = 0; i < s.count; ++i) {
      if (max[i] != before[i]) {
        sums[i] *= std::exp(static_cast<double>(before[i]) - static_cast<double>(max[i]));
      }
      // Elements so far may all be -inf.
      shift[i] = max[i] == kLowest ? 0 : max[i];
    }
    // Two rows at a time: their sums are read and written once.
    for (int64_t row = 0; row < rows; row += 2) {
      const T* values = piece + row * s.stride;
      const bool two = row + 1 < rows;
      ForRow(s.count, [&](auto load, auto store) {
        const V low = load(shift);
        V power = ExpOfScore(hn::Sub(load(values), low));
        if (two) power = hn::Add(power, ExpOfScore(hn::Sub(load(values + s.stride), low)));
        store(hn::Add(load(terms), power), terms);
      });
    }
    FlushSums(terms, sums, s.count);
  }
}

// y may be x.
template <bool kLog, typename T>
void SoftmaxStrip(const T* x, T* y, const Strip& s, bool past_caches) {
  float max[kMaxTileWidth], scale[kMaxTileWidth];
  double sums[kMaxTileWidth];
  MaxAndSum(x, s, max, sums);
  for (int64_t i = 0; i < s.count; ++i) {
    scale[i] = static_cast<float>(kLog ? std::log(sums[i]) : 1 / sums[i]);
  }
  for (int64_t k = 0; k < s.size; ++k) {
    const T* values = x + k * s.stride;
    T* result = y + k * s.stride;
    const auto value = [&](auto load) {
      const V shifted = hn::Sub(load(values), load(max));
      return kLog ? hn::Sub(shifted, load(scale)) : hn::Mul(ExpOfScore(shifted), load(scale));
    };
    if (past_caches && s.count % static_cast<int64_t>(kLanes) == 0) {
      StreamRow(s.count, value, result);
    } else {
      ForRow(s.count, [&](auto load, auto store) { store(value(load), result); });
    }
  }
  if (past_caches) hwy::FlushStream();
}

template <bool kLog, typename T>
void SoftmaxTile(const void* x_data, void* y_data, const LineShape& shape, int64_t first,
                 int64_t count, int64_t width, float* tile) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  if (shape.in_place()) {
    return ForStrips(shape, first, count, [&](int64_t at, int64_t, const Strip& s) {
      SoftmaxStrip<kLog>(x + at, y + at, s, GoesPastCaches(y + at, shape));
    });
  }
  ReadLines(x, shape, first, count, width, tile);
  SoftmaxStrip<kLog>(tile, tile, {shape.size, width, count}, false);
  WriteLines(tile, shape, first, count, width, y);
}

// softmax: dx = y (dy - sum of y dy). log_softmax: dx = dy - e^y sum of dy.
template <bool kLog>
HWY_INLINE V SumTerm(V y, V dy) {
  return kLog ? dy : hn::Mul(y, dy);
}
template <bool kLog>
HWY_INLINE V GradOf(V y, V dy, V sum) {
  return kLog ? hn::Sub(dy, hn::Mul(ExpV(y), sum)) : hn::Mul(y, hn::Sub(dy, sum));
}

template <bool kLog, typename T>
void SoftmaxGradRow(const void* y_data, const void* dy_data, void* dx_data, int64_t n) {
  const T* y = static_cast<const T*>(y_data);
  const T* dy = static_cast<const T*>(dy_data);
  T* dx = static_cast<T*>(dx_data);
  double total = 0;
  V sum = Splat(0);
  ForBlocks(
      n, [&](auto load, size_t) { sum = hn::Add(sum, SumTerm<kLog>(load(y), load(dy))); },
      [&] {
        total += SumOf(sum);
        sum = Splat(0);
      });
  const V all = Splat(static_cast<float>(total));
  ForRow(n, [&](auto load, auto store) { store(GradOf<kLog>(load(y), load(dy), all), dx); });
}

// dx may be y or dy.
template <bool kLog, typename T>
void SoftmaxGradStrip(const T* y, const T* dy, T* dx, const Strip& s) {
  float terms[kMaxTileWidth] = {}, sums[kMaxTileWidth];
  double totals[kMaxTileWidth] = {};
  ForStrip(
      s,
      [&](int64_t at, auto load, auto store) {
        store(hn::Add(load(terms), SumTerm<kLog>(load(y + at), load(dy + at))), terms);
      },
      [&] { FlushSums(terms, totals, s.count); });
  for (int64_t i = 0; i < s.count; ++i) sums[i] = static_cast<float>(totals[i]);
  ForStrip(s, [&](int64_t at, auto load, auto store) {
    store(GradOf<kLog>(load(y + at), load(dy + at), load(sums)), dx + at);
  });
}

template <bool kLog, typename T>
void SoftmaxGradTile(const void* y_data, const void* dy_data, void* dx_data, const LineShape& shape,
                     int64_t first, int64_t count, int64_t width, float* tile) {
  const T* y = static_cast<const T*>(y_data);
  const T* dy = static_cast<const T*>(dy_data);
  T* dx = static_cast<T*>(dx_data);
  if (shape.in_place()) {
    return ForStrips(shape, first, count, [&](int64_t at, int64_t, const Strip& s) {
      SoftmaxGradStrip<kLog>(y + at, dy + at, dx + at, s);
    });
  }
  float* dy_tile = tile + shape.size * width;
  ReadLines(y, shape, first, count, width, tile);
  ReadLines(dy, shape, first, count, width, dy_tile);
  SoftmaxGradStrip<kLog>(tile, dy_tile, dy_tile, {shape.size, width, count});
  WriteLines(dy_tile, shape, first, count, width, dx);
}

template <bool kLog, typename T>
SoftmaxFns SoftmaxFnsOf() {
  return {SoftmaxRow<kLog, T>, SoftmaxTile<kLog, T>, SoftmaxGradRow<kLog, T>,
          SoftmaxGradTile<kLog, T>};
}
template <bool kLog>
SoftmaxFns SoftmaxFnsOf(DType dtype) {
  return dtype == DType::kF32   ? SoftmaxFnsOf<kLog, float>()
         : dtype == DType::kF16 ? SoftmaxFnsOf<kLog, F16>()
                                : SoftmaxFnsOf<kLog, BF16>();
}
SoftmaxFns FindSoftmaxFns(bool log, DType dtype) {
  return log ? SoftmaxFnsOf<true>(dtype) : SoftmaxFnsOf<false>(dtype);
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindSoftmaxFns);

// Forward: x to y; backward: y and dy to dx. The result may lie over an operand: a line is read
// before it is written.
class SoftmaxKernel : public Kernel {
 public:
  explicit SoftmaxKernel(const ir::Node& node)
      : shape_(node.output_type().shape, node.attrs().GetInt("axis")),
        size_(static_cast<int64_t>(SizeOf(node.output_type().dtype))),
        backward_(node.num_inputs() == 2),
        tiles_(shape_, backward_ ? 2 : 1) {
    const bool log = node.op().name.rfind("log_", 0) == 0;
    fns_ = HWY_DYNAMIC_DISPATCH(FindSoftmaxFns)(log, node.output_type().dtype);
    if (shape_.inner > 1) workspace_bytes_ = tiles_.workspace_bytes();
  }

  void Run(const KernelArgs& args) override {
    if (shape_.lines() * shape_.size == 0) return;
    const auto* a = static_cast<const char*>(args.inputs[0]);
    const auto* b = backward_ ? static_cast<const char*>(args.inputs[1]) : nullptr;
    auto* y = static_cast<char*>(args.outputs[0]);
    if (shape_.inner > 1) {
      tiles_.Run(args.workspace, [&](int64_t first, int64_t count, float* tile) {
        if (backward_) {
          fns_.grad_tile(a, b, y, shape_, first, count, tiles_.width(), tile);
        } else {
          fns_.tile(a, y, shape_, first, count, tiles_.width(), tile);
        }
      });
      return;
    }
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / 8 / shape_.size);
    ParallelFor(0, shape_.outer, grain, [&](int64_t first, int64_t last) {
      for (int64_t line = first; line < last; ++line) {
        const int64_t at = line * shape_.size * size_;
        if (backward_) {
          fns_.grad_row(a + at, b + at, y + at, shape_.size);
        } else {
          fns_.row(a + at, y + at, shape_.size);
        }
      }
    });
  }

 private:
  LineShape shape_;
  int64_t size_;
  bool backward_;
  LineTiles tiles_;
  SoftmaxFns fns_;
};

absl::Status PlainLines(const ir::Node& node) {
  if (node.output_type().shape.rank() == 0) return Unimplemented("rank 0");
  return PlainInputs(node);
}

}  // namespace

void Register_cpu_simd_softmax(KernelRegistry& r) {
  for (const char* op : {"softmax", "log_softmax", "softmax_grad", "log_softmax_grad"}) {
    AddSimdCandidate<SoftmaxKernel>(r, op, PlainLines);
  }
}

}  // namespace halftone::kernels
#endif
