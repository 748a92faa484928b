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
void PoolWindow(const void* data, const WindowPoint* points, int count, int64_t channels, void* y,
                void* index) {
  const T* x = static_cast<const T*>(data);
  constexpr int64_t kStep = kLanes;
  int64_t c = 0;
  if (channels <= kFewChannels) {
    for (; c < channels; ++c) {
      BestScalar(x + c, points, count, static_cast<T*>(y) + c, static_cast<I*>(index) + c);
    }
    return;
  }
  V best;
  Ints at;
  for (; c + kStep <= channels; c += kStep) {
    BestOf(
        points, count, [&](int64_t e) { return LoadVec(x + e + c); }, &best, &at);
    StoreVec(best, static_cast<T*>(y) + c);
    StoreOffsets(at, static_cast<I*>(index) + c);
  }
  if (c >= channels) return;
  const size_t rest = channels - c;
  BestOf(
      points, count, [&](int64_t e) { return LoadPart(x + e + c, rest); }, &best, &at);
  StorePart(best, static_cast<T*>(y) + c, rest);
  I part[kLanes];
  StoreOffsets(at, part);
  for (int64_t i = 0; c + i < channels; ++i) static_cast<I*>(index)[c + i] = part[i];
}

template <typename T, typename I>
void PoolPosition(const void* data, const void* offsets, const WindowPoint* windows, int count,
                  int64_t channels, void* gradient) {
  const T* dy = static_cast<const T*>(data);
  const I* index = static_cast<const I*>(offsets);
  T* dx = static_cast<T*>(gradient);
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
// points of the source. Plain layouts take one channel at a time.
class PoolLoop {
 public:
  PoolLoop(const ops::PoolGeometry& g, bool forward, bool channels_last)
      : rows_(forward ? ToInputs(g.h) : ToOutputs(g.h)),
        columns_(forward ? ToInputs(g.w) : ToOutputs(g.w)),
        kernel_width_(g.w.kernel),
        source_width_(forward ? g.w.input : g.w.output) {
    const int64_t source_height = forward ? g.h.input : g.h.output;
    planes_ = channels_last ? g.n : g.n * g.c;
    channels_ = channels_last ? g.c : 1;
    source_plane_ = source_height * source_width_ * channels_;
  }
  int64_t channels() const { return channels_; }

  // call(source_plane_offset, target_element, points, count)
  template <typename Call>
  void Run(int64_t grain, const Call& call) const {
    const auto height = static_cast<int64_t>(rows_.at.size());
    const auto width = static_cast<int64_t>(columns_.at.size());
    const int64_t row_grain = std::max<int64_t>(1, grain / std::max<int64_t>(1, width * channels_));
    ParallelFor(0, planes_ * height, row_grain, [&](int64_t first, int64_t last) {
      WindowPoint points[kMaxPoints];
      for (int64_t line = first; line < last; ++line) {
        const auto& row = rows_.at[line % height];
        for (int64_t w = 0; w < width; ++w) {
          const auto& column = columns_.at[w];
          const int count = Points(row, column, points);
          call(line / height * source_plane_, (line * width + w) * channels_, points, count);
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
        points[count++] = {(r.position * source_width_ + c.position) * channels_,
                           static_cast<int32_t>(r.offset * kernel_width_ + c.offset)};
      }
    }
    return count;
  }

  AxisLinks rows_, columns_;
  int64_t kernel_width_, source_width_, source_plane_ = 0;
  int64_t planes_ = 0, channels_ = 1;
};

MaxPoolFns FnsFor(const ir::Node& node, DType index) {
  return HWY_DYNAMIC_DISPATCH(FindMaxPoolFns)(node.input_type(0).dtype, index == DType::kU8);
}

class MaxPoolKernel : public Kernel {
 public:
  explicit MaxPoolKernel(const ir::Node& node)
      : loop_(ops::PoolGeometryOf(node), true,
              node.input_type(0).layout == ir::Layout::kChannelsLast),
        fn_(FnsFor(node, node.output_type(1).dtype).window),
        size_(static_cast<int64_t>(SizeOf(node.input_type(0).dtype))),
        index_size_(static_cast<int64_t>(SizeOf(node.output_type(1).dtype))) {}

  void Run(const KernelArgs& args) override {
    loop_.Run(kElementwiseGrain,
              [&](int64_t from, int64_t to, const WindowPoint* points, int count) {
                fn_(static_cast<const char*>(args.inputs[0]) + from * size_, points, count,
                    loop_.channels(), static_cast<char*>(args.outputs[0]) + to * size_,
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
      : loop_(ops::PoolGeometryOf(node), false,
              node.output_type().layout == ir::Layout::kChannelsLast),
        fn_(FnsFor(node, node.input_type(1).dtype).position),
        size_(static_cast<int64_t>(SizeOf(node.input_type(0).dtype))),
        index_size_(static_cast<int64_t>(SizeOf(node.input_type(1).dtype))) {}

  void Run(const KernelArgs& args) override {
    loop_.Run(kElementwiseGrain,
              [&](int64_t from, int64_t to, const WindowPoint* points, int count) {
                fn_(static_cast<const char*>(args.inputs[0]) + from * size_,
                    static_cast<const char*>(args.inputs[1]) + from * index_size_, points, count,
                    loop_.channels(), static_cast<char*>(args.outputs[0]) + to * size_);
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
