// max_pool2d and its gradient. Channels-last: vectors of channels; plain: one element at a time.
//
// The gradient gathers: each position of dx sums, in f32, the windows that picked it, and is
// written once, rounded once. No clearing pass, no order that threads could change.
#include <cmath>
#include <limits>

#include "halftone/core/threads.h"
#include "halftone/graph/ops/support/window.h"
#include "halftone/kernels/cpu/ops/max_pool_fns.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

using V = F32Vec;
using Ints = hn::Vec<I32Tag>;

constexpr int64_t kFewChannels = 4;

HWY_INLINE void StoreOffsets(Ints v, uint8_t* p) {
  const hn::Rebind<uint8_t, I32Tag> d;
  hn::StoreU(hn::DemoteTo(d, v), d, p);
}
HWY_INLINE void StoreOffsets(Ints v, int32_t* p) { hn::StoreU(v, I32Tag(), p); }
HWY_INLINE Ints LoadOffsets(const uint8_t* p) {
  return hn::PromoteTo(I32Tag(), hn::LoadU(hn::Rebind<uint8_t, I32Tag>(), p));
}
HWY_INLINE Ints LoadOffsets(const int32_t* p) { return hn::LoadU(I32Tag(), p); }

// The best of the points at one channel: NaN wins, and the first of equals; -inf and 0 of none.
template <typename Load>
HWY_INLINE void BestOf(const WindowPoint* points, int count, const Load& load, V* best, Ints* at) {
  *best = count > 0 ? load(points[0].element)
                    : hn::Set(F32Tag(), -std::numeric_limits<float>::infinity());
  *at = hn::Set(I32Tag(), count > 0 ? points[0].offset : 0);
  for (int k = 1; k < count; ++k) {
    const V x = load(points[k].element);
    // Once the best is NaN nothing is greater.
    const auto better = hn::Or(hn::Gt(x, *best), hn::AndNot(hn::IsNaN(*best), hn::IsNaN(x)));
    *best = hn::IfThenElse(better, x, *best);
    *at =
        hn::IfThenElse(hn::RebindMask(I32Tag(), better), hn::Set(I32Tag(), points[k].offset), *at);
  }
}

// As BestOf, one channel: for the few that fill no vector.
template <typename T, typename I>
void BestScalar(const T* x, const WindowPoint* points, int count, T* y, I* index) {
  float best = -std::numeric_limits<float>::infinity();
  int first = 0;
  for (int k = 0; k < count && !std::isnan(best); ++k) {
    const auto v = static_cast<float>(x[points[k].element]);
    if (k > 0 && !(v > best) && !std::isnan(v)) continue;
    best = v;
    first = k;
  }
  *y = static_cast<T>(best);
  *index = static_cast<I>(count > 0 ? points[first].offset : 0);
}

template <typename T, typename I>
HWY_INLINE void SheetWindow(const T* x, const WindowPoint* points, int count, int64_t channels,
                            T* y, I* index) {
  constexpr int64_t kStep = kLanes;
  int64_t c = 0;
  if (channels <= kFewChannels) {
    for (; c < channels; ++c) {
      BestScalar(x + c, points, count, y + c, index + c);
    }
    return;
  }
  V best;
  Ints at;
  for (; c + kStep <= channels; c += kStep) {
    BestOf(
        points, count, [&](int64_t e) { return LoadVec(x + e + c); }, &best, &at);
    StoreVec(best, y + c);
    StoreOffsets(at, index + c);
  }
  if (c >= channels) return;
  const size_t rest = channels - c;
  BestOf(
      points, count, [&](int64_t e) { return LoadPart(x + e + c, rest); }, &best, &at);
  StorePart(best, y + c, rest);
  I part[kLanes];
  StoreOffsets(at, part);
  for (int64_t i = 0; c + i < channels; ++i) index[c + i] = part[i];
}

template <typename T, typename I>
void PoolWindow(const void* x, const WindowPoint* points, int count, const PoolSheets& sheets,
                void* y, void* index) {
  for (int64_t s = 0; s < sheets.count; ++s) {
    SheetWindow(static_cast<const T*>(x) + s * sheets.source, points, count, sheets.channels,
                static_cast<T*>(y) + s * sheets.target, static_cast<I*>(index) + s * sheets.target);
  }
}

template <typename T, typename I>
HWY_INLINE void SheetPosition(const T* dy, const I* index, const WindowPoint* windows, int count,
                              int64_t channels, T* dx) {
  constexpr int64_t kStep = kLanes;
  int64_t c = 0;
  for (; c + kStep <= channels; c += kStep) {
    V sum = hn::Zero(F32Tag());
    for (int k = 0; k < count; ++k) {
      const int64_t e = windows[k].element + c;
      const auto mine = hn::Eq(LoadOffsets(index + e), hn::Set(I32Tag(), windows[k].offset));
      sum = hn::Add(sum, hn::IfThenElseZero(hn::RebindMask(F32Tag(), mine), LoadVec(dy + e)));
    }
    StoreVec(sum, dx + c);
  }
  for (; c < channels; ++c) {
    float sum = 0;
    for (int k = 0; k < count; ++k) {
      const int64_t e = windows[k].element + c;
      if (index[e] == static_cast<I>(windows[k].offset)) sum += static_cast<float>(dy[e]);
    }
    dx[c] = static_cast<T>(sum);
  }
}

template <typename T, typename I>
void PoolPosition(const void* dy, const void* index, const WindowPoint* windows, int count,
                  const PoolSheets& sheets, void* dx) {
  for (int64_t s = 0; s < sheets.count; ++s) {
    SheetPosition(static_cast<const T*>(dy) + s * sheets.source,
                  static_cast<const I*>(index) + s * sheets.source, windows, count, sheets.channels,
                  static_cast<T*>(dx) + s * sheets.target);
  }
}

template <typename T>
MaxPoolFns MaxPoolFnsOf(bool bytes) {
  return bytes ? MaxPoolFns{PoolWindow<T, uint8_t>, PoolPosition<T, uint8_t>}
               : MaxPoolFns{PoolWindow<T, int32_t>, PoolPosition<T, int32_t>};
}

MaxPoolFns FindMaxPoolFns(DType dtype, bool bytes) {
  return dtype == DType::kF16    ? MaxPoolFnsOf<F16>(bytes)
         : dtype == DType::kBF16 ? MaxPoolFnsOf<BF16>(bytes)
                                 : MaxPoolFnsOf<float>(bytes);
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindMaxPoolFns);

// One axis of the window seen from one position: (position on the other side, offset) pairs.
struct AxisLinks {
  struct Link {
    int64_t position;
    int64_t offset;
  };
  std::vector<std::vector<Link>> at;
};

// From output positions to the inputs in their windows.
AxisLinks ToInputs(const ops::WindowAxis& axis) {
  AxisLinks links;
  links.at.resize(axis.output);
  for (int64_t o = 0; o < axis.output; ++o) {
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t position = axis.Position(o, k);
      if (position >= 0 && position < axis.input) links.at[o].push_back({position, k});
    }
  }
  return links;
}

// From input positions to the windows that contain them.
AxisLinks ToOutputs(const ops::WindowAxis& axis) {
  AxisLinks links;
  links.at.resize(axis.input);
  for (int64_t o = 0; o < axis.output; ++o) {
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t position = axis.Position(o, k);
      if (position >= 0 && position < axis.input) links.at[position].push_back({o, k});
    }
  }
  return links;
}

// Forward and gradient alike: for each (image, row, column) of the target, `call` gets the linked
// points of the source. Plain layouts take one channel at a time, channels in blocks a block.
class PoolLoop {
 public:
  PoolLoop(const ops::PoolGeometry& g, bool forward, ir::Layout layout)
      : rows_(forward ? ToInputs(g.h) : ToOutputs(g.h)),
        columns_(forward ? ToInputs(g.w) : ToOutputs(g.w)),
        kernel_width_(g.w.kernel),
        source_width_(forward ? g.w.input : g.w.output) {
    const int64_t source_height = forward ? g.h.input : g.h.output;
    if (layout == ir::Layout::kPlain) {
      images_ = g.n * g.c;
    } else {
      sheets_.channels = layout == ir::Layout::kChannelsLast ? g.c : ir::kChannelBlock;
      sheets_.count = sheets_.channels == 0 ? 0 : g.c / sheets_.channels;
      images_ = g.n;
    }
    sheets_.source = source_height * source_width_ * sheets_.channels;
    sheets_.target = (forward ? g.h.output * g.w.output : g.h.input * g.w.input) * sheets_.channels;
  }
  const PoolSheets& sheets() const { return sheets_; }

  // call(source element where the image starts, target element in its first sheet, points, count)
  template <typename Call>
  void Run(int64_t grain, const Call& call) const {
    const auto height = static_cast<int64_t>(rows_.at.size());
    const auto width = static_cast<int64_t>(columns_.at.size());
    const int64_t line_elements = width * sheets_.channels * sheets_.count;
    const int64_t line_grain = std::max<int64_t>(1, grain / std::max<int64_t>(1, line_elements));
    ParallelFor(0, images_ * height, line_grain, [&](int64_t first, int64_t last) {
      WindowPoint points[kMaxPoints];
      for (int64_t line = first; line < last; ++line) {
        const int64_t sheet = line / height * sheets_.count, row = line % height;
        for (int64_t w = 0; w < width; ++w) {
          const int count = Points(rows_.at[row], columns_.at[w], points);
          call(sheet * sheets_.source, ((sheet * height + row) * width + w) * sheets_.channels,
               points, count);
        }
      }
    });
  }

  // Of a window, so that they fit on the stack.
  static constexpr int64_t kMaxPoints = 1024;

 private:
  int Points(const std::vector<AxisLinks::Link>& row, const std::vector<AxisLinks::Link>& column,
             WindowPoint* points) const {
    int count = 0;
    for (const AxisLinks::Link& r : row) {
      for (const AxisLinks::Link& c : column) {
        points[count++] = {(r.position * source_width_ + c.position) * sheets_.channels,
                           static_cast<int32_t>(r.offset * kernel_width_ + c.offset)};
      }
    }
    return count;
  }

  AxisLinks rows_, columns_;
  int64_t kernel_width_, source_width_, images_ = 0;
  PoolSheets sheets_;
};

MaxPoolFns FnsFor(const ir::Node& node, DType index) {
  return HWY_DYNAMIC_DISPATCH(FindMaxPoolFns)(node.input_type(0).dtype, index == DType::kU8);
}

class MaxPoolKernel : public Kernel {
 public:
  explicit MaxPoolKernel(const ir::Node& node)
      : loop_(ops::PoolGeometryOf(node), true, node.input_type(0).layout),
        fn_(FnsFor(node, node.output_type(1).dtype).window),
        size_(static_cast<int64_t>(SizeOf(node.input_type(0).dtype))),
        index_size_(static_cast<int64_t>(SizeOf(node.output_type(1).dtype))) {}

  void Run(const KernelArgs& args) override {
    loop_.Run(kElementwiseGrain,
              [&](int64_t from, int64_t to, const WindowPoint* points, int count) {
                fn_(static_cast<const char*>(args.inputs[0]) + from * size_, points, count,
                    loop_.sheets(), static_cast<char*>(args.outputs[0]) + to * size_,
                    static_cast<char*>(args.outputs[1]) + to * index_size_);
              });
  }

 private:
  PoolLoop loop_;
  PoolWindowFn fn_;
  int64_t size_, index_size_;
};

class MaxPoolGradKernel : public Kernel {
 public:
  explicit MaxPoolGradKernel(const ir::Node& node)
      : loop_(ops::PoolGeometryOf(node), false, node.output_type().layout),
        fn_(FnsFor(node, node.input_type(1).dtype).position),
        size_(static_cast<int64_t>(SizeOf(node.input_type(0).dtype))),
        index_size_(static_cast<int64_t>(SizeOf(node.input_type(1).dtype))) {}

  void Run(const KernelArgs& args) override {
    loop_.Run(kElementwiseGrain,
              [&](int64_t from, int64_t to, const WindowPoint* points, int count) {
                fn_(static_cast<const char*>(args.inputs[0]) + from * size_,
                    static_cast<const char*>(args.inputs[1]) + from * index_size_, points, count,
                    loop_.sheets(), static_cast<char*>(args.outputs[0]) + to * size_);
              });
  }

 private:
  PoolLoop loop_;
  PoolPositionFn fn_;
  int64_t size_, index_size_;
};

absl::Status OneOrderAndSmallWindow(const ir::Node& node) {
  HT_RETURN_IF_ERROR(OneLayout(node));
  const ops::PoolGeometry g = ops::PoolGeometryOf(node);
  if (g.h.kernel * g.w.kernel > PoolLoop::kMaxPoints) {
    return Unimplemented("window of more than ", PoolLoop::kMaxPoints, " points");
  }
  return absl::OkStatus();
}

}  // namespace

void Register_cpu_simd_max_pool(KernelRegistry& r) {
  AddSimdCandidate<MaxPoolKernel>(r, "max_pool2d", OneOrderAndSmallWindow);
  AddSimdCandidate<MaxPoolGradKernel>(r, "max_pool2d_grad", OneOrderAndSmallWindow);
}

}  // namespace halftone::kernels
#endif
